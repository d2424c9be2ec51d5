// Between channels and blocks of pixels.
#include "runtime/ops/composer.h"
#include "runtime/ops/elementwise.h"

namespace kiln::ops {
namespace {

Status require_factor(const InferContext &c) {
  if (c.attr("factor").i64() < 1) return c.fail("factor is ", c.attr("factor").i64(), ", expected at least 1");
  if (c.inputs[0].rank() < 3) return c.fail("x is ", c.inputs[0].text(), ", expected [..., C, H, W]");
  return {};
}
Status infer_pixel_shuffle(InferContext &c) {
  KILN_TRY(require_factor(c));
  const int64_t factor = c.attr("factor").i64();
  Shape shape = c.inputs[0].dims;
  Dim *last = shape.data() + shape.size() - 3;
  KILN_TRY(c.require_equal(mod(last[0], factor * factor), 0, "channels modulo factor^2 and 0"));
  last[0] = floor_div(last[0], factor * factor);
  for (int d = 1; d < 3; ++d) last[d] = last[d] * factor;
  c.results = {make_type(c.inputs[0].dtype, std::move(shape))};
  return {};
}
Status infer_pixel_unshuffle(InferContext &c) {
  KILN_TRY(require_factor(c));
  const int64_t factor = c.attr("factor").i64();
  Shape shape = c.inputs[0].dims;
  Dim *last = shape.data() + shape.size() - 3;
  for (int d = 1; d < 3; ++d) {
    KILN_TRY(c.require_equal(mod(last[d], factor), 0, str_cat(d == 1 ? "height" : "width", " modulo factor and 0")));
    last[d] = floor_div(last[d], factor);
  }
  last[0] = last[0] * (factor * factor);
  c.results = {make_type(c.inputs[0].dtype, std::move(shape))};
  return {};
}

// Reshapes to [L, C, ...], where the blocks' dims stand apart, puts these elsewhere, and reshapes to the result.
template <bool is_shuffle>
Status decompose_shuffle(DecomposeContext &c) {
  Composer g(c);
  const ValueId x = c.node.inputs[0];
  const Shape dims = c.type(x).dims;
  const int64_t factor = c.attr("factor").i64();
  const Dim *last = dims.data() + dims.size() - 3;
  Dim leading = 1;
  for (size_t d = 0; d + 3 < dims.size(); ++d) leading *= dims[d];
  Shape apart, result(dims.begin(), dims.end() - 3);
  if (is_shuffle) {
    const Dim channels = floor_div(last[0], factor * factor);
    apart = {leading, channels, factor, factor, last[1], last[2]};
    result.insert(result.end(), {channels, last[1] * factor, last[2] * factor});
  } else {
    const Dim height = floor_div(last[1], factor), width = floor_div(last[2], factor);
    apart = {leading, last[0], height, factor, width, factor};
    result.insert(result.end(), {last[0] * (factor * factor), height, width});
  }
  const ValueId parts = g("reshape", {x}, {{"shape", AttrValue(std::move(apart))}});
  const auto order = is_shuffle ? ints({0, 1, 4, 2, 5, 3}) : ints({0, 1, 3, 5, 2, 4});
  return g.give({g("reshape", {g("permute", {parts}, {{"dims", order}})}, {{"shape", AttrValue(std::move(result))}})});
}
template <bool is_shuffle>
Status reference_shuffle(ReferenceContext &c) {
  const RefTensor &x = *c.inputs[0], &large = is_shuffle ? c.results[0] : x;
  const int64_t factor = c.attr("factor").i64(), height = large.shape[large.shape.size() - 2],
                width = large.shape.back();
  return dispatch(x, [&](auto zero) -> Status {
    using T = decltype(zero);
    for (int64_t k = 0; k < large.size(); ++k) {
      const int64_t column = k % width, row = k / width % height, plane = k / width / height;  // of all leading dims
      const int64_t block = row % factor * factor + column % factor;
      const int64_t at =
          ((plane * factor * factor + block) * (height / factor) + row / factor) * (width / factor) + column / factor;
      elements<T>(c.results[0])[static_cast<size_t>(is_shuffle ? k : at)] =
          elements<T>(x)[static_cast<size_t>(is_shuffle ? at : k)];
    }
    return {};
  });
}

void samples_pixel_shuffle(SampleSink &out) {
  const Dim n = sym("n");
  out.push_back(sample_of("image", {2, 12, 3, 5}, {{"factor", 2}}, {}));
  out.push_back(sample_of("by_three", {9, 4, 2}, {{"factor", 3}}, {}));
  out.push_back(sample_of("by_one", {2, 3, 4, 5}, {{"factor", 1}}, {}));
  out.push_back(sample_of("more_dims", {2, 3, 4, 3, 3}, {{"factor", 2}}, {}));
  out.push_back(sample_of("empty", {0, 4, 3, 3}, {{"factor", 2}}, {}));
  out.push_back(sample_of("symbolic", {n, 8, n, 3}, {{"factor", 2}}, {{"n", 3}}));
}
void samples_pixel_unshuffle(SampleSink &out) {
  const Dim n = sym("n");
  out.push_back(sample_of("image", {2, 3, 6, 10}, {{"factor", 2}}, {}));
  out.push_back(sample_of("by_three", {2, 12, 6}, {{"factor", 3}}, {}));
  out.push_back(sample_of("by_one", {2, 3, 4, 5}, {{"factor", 1}}, {}));
  out.push_back(sample_of("more_dims", {2, 3, 1, 4, 4}, {{"factor", 2}}, {}));
  out.push_back(sample_of("symbolic", {n, 2, 2 * n, 4}, {{"factor", 2}}, {{"n", 3}}));
}

Op shuffle(std::string_view name, std::string_view doc, std::string_view x, Status (*infer)(InferContext &),
           OpMeaning meaning) {
  Op op = unary(name, doc, any_type, meaning,
                {{.name = "factor", .doc = "the blocks' height and width", .kind = AttrKind::i64, .required = true}});
  op.flags = op_flags::moves;
  op.args[0].doc = x;
  op.infer = infer;
  return op;
}

const Op records[] = {
    shuffle(
        "pixel_shuffle", "Channels as blocks of pixels: [..., C, H f, W f].", "[..., C f^2, H, W]", infer_pixel_shuffle,
        {.decompose = decompose_shuffle<true>, .reference = reference_shuffle<true>, .samples = samples_pixel_shuffle}),
    shuffle("pixel_unshuffle", "Blocks of pixels as channels: [..., C f^2, H, W].", "[..., C, H f, W f]",
            infer_pixel_unshuffle,
            {.decompose = decompose_shuffle<false>,
             .reference = reference_shuffle<false>,
             .samples = samples_pixel_unshuffle}),
};

}  // namespace

std::span<const Op> shuffle_ops() { return records; }

}  // namespace kiln::ops
