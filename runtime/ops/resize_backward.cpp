// The gradients of what resizes: those of the result, put where their elements came from, one dim after the other.
#include "runtime/ops/backward.h"
#include "runtime/ops/resizing.h"

namespace kiln::ops {
namespace {

Status infer_nearest_backward(InferContext &c) {
  KILN_ASSIGN(Shape shape, resized_shape(c, c.inputs[0], "dy"));
  c.results = {make_type(c.inputs[0].dtype, std::move(shape))};
  return {};
}
Status infer_weighed_backward(InferContext &c) {
  KILN_TRY(require_filter(c));
  return infer_nearest_backward(c);
}

// dy with `size` elements along dim d, to which those of `source` are added at `indices`.
ValueId added(DecomposeContext &c, Composer &g, ValueId dy, size_t d, const Dim &size, ValueId source,
              ValueId indices) {
  if (!g.ok()) return dy;
  TensorType type = c.type(dy);
  type.dims[d] = size;
  return g("index_put_add", {g.full(type.dtype, type.dims, 0), source, indices}, {{"dim", static_cast<int64_t>(d)}});
}
ValueId given(DecomposeContext &c, Composer &g, ValueId dx) { return dx == c.node.inputs[0] ? g("clone", {dx}) : dx; }

// As resize_nearest says; of a size that a call tells in 64-bit integers, too.
Status decompose_nearest_backward(DecomposeContext &c) {
  Composer g(c);
  const bool half = c.attr("half_pixel").boolean();
  ValueId dx = c.node.inputs[0];
  const Shape dims = c.type(dx).dims;
  for (size_t d = 2; d < dims.size(); ++d) {
    const Dim &from = c.attr("size").dim_list()[d - 2], &to = dims[d];
    if (!resizes(c.node.attrs, d - 2, from, to)) continue;
    const ValueId place = g("iota", {}, {{"shape", AttrValue(Shape{to})}, {"dim", 0}});
    const ValueId twice = g("add", {g("mul", {place, g.number(place, 2)}), g.number(place, half ? 1 : 0)});
    ValueId index;
    if (const double scale = resize_scale(c.node.attrs, d - 2); scale != 0) {
      const ValueId exact = g.convert(twice, DType::f64);
      const ValueId down = g("floor", {g("div", {exact, g.number(exact, 2 * scale)})});
      index = g("minimum", {g.convert(down, DType::i64), g.count(place, from - 1)});
    } else {
      index = g("floor_divide", {g("mul", {twice, g.count(place, from)}), g.count(place, to * 2)});
    }
    dx = added(c, g, dx, d, from, dx, index);
  }
  return g.give({given(c, g, dx)});
}

Status decompose_weighed_backward(DecomposeContext &c) {
  Composer g(c);
  ValueId dx = c.node.inputs[0];
  const TensorType type = c.type(dx);
  for (size_t d = 2; d < type.rank(); ++d) {
    const Dim &from = c.attr("size").dim_list()[d - 2], &to = type.dims[d];
    if (!resizes(c.node.attrs, d - 2, from, to)) continue;
    const ResizeTable table = resize_table(c, g, d - 2, from, to, type.dtype);
    std::vector<int64_t> behind;
    for (size_t k = d + 1; k < type.rank(); ++k) behind.push_back(static_cast<int64_t>(2 + k - d - 1));
    const ValueId weights = behind.empty() ? table.weights : g("unsqueeze", {table.weights}, {{"dims", ints(behind)}});
    const ValueId each = g("unsqueeze", {dx}, {{"dims", ints({static_cast<int64_t>(d) + 1})}});
    // What has the weight 0 adds nothing, be it infinite.
    const ValueId none = g("eq", {weights, g.number(weights, 0)});
    const ValueId source = g("where", {none, g.number(weights, 0), g("mul", {each, weights})});
    dx = added(c, g, dx, d, from, source, table.indices);
  }
  return g.give({given(c, g, dx)});
}

Status reference_nearest_backward(ReferenceContext &c) {
  const RefTensor &dy = *c.inputs[0];
  RefTensor &dx = c.results[0];
  const std::vector<int64_t> strides = dense_strides(dx.shape), places = dense_strides(dy.shape);
  const ReadElements<double> in(dy);
  std::vector<Wide> sums(static_cast<size_t>(dx.size()));
  for (int64_t k = 0; k < dy.size(); ++k) {
    int64_t to = 0;
    for (size_t d = 0; d < dy.shape.size(); ++d) {
      const int64_t at = k / places[d] % dy.shape[d];
      to += (d < 2 ? at : nearest_at(c.attrs, d - 2, at, dx.shape[d], dy.shape[d])) * strides[d];
    }
    sums[static_cast<size_t>(to)] += in[static_cast<size_t>(k)];
  }
  give_all(dx, sums);
  return {};
}

Status reference_weighed_backward(ReferenceContext &c) {
  const RefTensor &dy = *c.inputs[0];
  RefTensor &dx = c.results[0];
  const ResizeTerms terms(c.attrs, is_cubic(c.op), dx.shape, dy.shape);
  const ReadElements<double> in(dy);
  std::vector<Wide> sums(static_cast<size_t>(dx.size()));
  for (int64_t k = 0; k < dy.size(); ++k)
    for (const auto &[at, weight] : terms.at(k)) sums[at] += weight * in[static_cast<size_t>(k)];
  give_all(dx, sums);
  return {};
}

// ---- samples

void samples_nearest_backward(SampleSink &out) {
  add_resize_samples(out, {{"doubled", "2, 3, 4, 6", "2, 3"},
                           {"fewer", "1, 2, 3, 2", "5, 7"},
                           {"halves", "1, 2, 3, 6", "7, 4", {{"half_pixel", true}}},
                           {"sequence", "2, 3, 9", "5"},
                           {"volume", "1, 2, 3, 3, 5", "2, 3, 2"},
                           {"same", "1, 2, 3", "3"},
                           {"by_scale", "1, 2, 7, 6", "5, 4", {{"scale", reals({1.5, 1.625})}}},
                           {"no_images", "0, 2, 6, 6", "3, 3"},
                           {"symbolic", "n, 2, h, w", "h + 1, 2 * w", {}, {{"n", 2}, {"h", 4}, {"w", 3}}}});
}
void samples_weighed_backward(SampleSink &out) {
  const AttrMap corners = {{"align_corners", true}}, edges = {{"half_pixel", false}}, smooth = {{"antialias", true}};
  add_resize_samples(out, {{"doubled", "2, 2, 4, 6", "2, 3"},
                           {"fewer", "1, 2, 3, 2", "5, 7"},
                           {"aligned", "1, 2, 5, 1", "3, 4", corners},
                           {"from_edges", "1, 1, 7, 4", "4, 6", edges},
                           {"one_dim_alone", "1, 2, 4, 5", "4, 3"},
                           {"same", "1, 2, 3, 3", "3, 3"},
                           {"by_scale", "1, 1, 7, 6", "5, 4", {{"scale", reals({1.5, 1.625})}}},
                           {"smooth_fewer", "1, 1, 3, 4", "7, 9", smooth},
                           {"no_images", "0, 2, 6, 6", "3, 3"},
                           {"symbolic", "n, 2, h, 4", "h + 1, 2", {}, {{"n", 2}, {"h", 3}}}});
}
void samples_linear_backward(SampleSink &out) {
  samples_weighed_backward(out);
  add_resize_samples(out, {{"sequence", "2, 3, 9", "5"}, {"volume", "1, 1, 3, 3, 4", "2, 3, 2"}});
}

// ---- records

Op resizing_backward(std::string_view name, std::string_view doc, std::vector<AttrDef> more,
                     Status (*infer)(InferContext &), OpMeaning meaning) {
  return {{.name = name,
           .doc = doc,
           .args = {{"dy", "[N, C, W], [N, C, H, W] or [N, C, D, H, W]", float_types}},
           .result_names = {"dx"},
           .attrs = resize_attrs("of x's dims of space, at least 1", std::move(more)),
           .infer = infer},
          meaning};
}

const Op resize_backward_records[] = {
    resizing_backward("resize_nearest_backward", "The gradient of resize_nearest's x.",
                      {half_pixel_attr("as resize_nearest has it", false)}, infer_nearest_backward,
                      {.decompose = decompose_nearest_backward,
                       .reference = reference_nearest_backward,
                       .gradient = through_decomposition(),
                       .samples = samples_nearest_backward}),
    resizing_backward("resize_linear_backward", "The gradient of resize_linear's x.", filter_attrs(),
                      infer_weighed_backward,
                      {.decompose = decompose_weighed_backward,
                       .reference = reference_weighed_backward,
                       .gradient = through_decomposition(),
                       .samples = samples_linear_backward}),
    resizing_backward("resize_cubic_backward", "The gradient of resize_cubic's x.", filter_attrs(),
                      infer_weighed_backward,
                      {.decompose = decompose_weighed_backward,
                       .reference = reference_weighed_backward,
                       .gradient = through_decomposition(),
                       .samples = samples_weighed_backward}),
};

}  // namespace

std::span<const Op> resize_backward_ops() { return resize_backward_records; }

}  // namespace kiln::ops
