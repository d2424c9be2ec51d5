// The gradients of convolutions: that of x is a transposed convolution, that of the weight a correlation of x with dy.
// The bias' is the sum of dy.
#include "runtime/ops/backward.h"
#include "runtime/ops/convolving.h"

namespace kiln::ops {
namespace {

std::vector<int64_t> integers_of(const AttrMap &attrs, std::string_view name) {
  return attrs.find(name)->second.i64_list();
}
ValueId permute(Composer &g, ValueId x, std::vector<int64_t> dims) {
  return g("permute", {x}, {{"dims", ints(std::move(dims))}});
}
// The first `size` elements along dim d.
ValueId begin_of(DecomposeContext &c, Composer &g, ValueId x, size_t d, const Dim &size) {
  if (!g.ok() || c.type(x).dims[d] == size) return x;
  return g("slice", {x}, {{"dim", static_cast<int64_t>(d)}, {"start", Dim(0)}, {"end", size}});
}

// That the windows of a convolution are as many as dy has elements, along each dim of space of size `size`.
Status require_windows(InferContext &c, std::span<const Dim> size, std::span<const Dim> kernel) {
  const size_t n = size.size();
  const std::vector<Ends> padding = padding_of(c.attrs, n);
  for (size_t d = 0; d < n; ++d) {
    const std::string which = str_cat("x dim ", 2 + d);
    KILN_TRY(require_at_most(c, 1, size[d], str_cat("1 <= ", which, by_size(c.op))));
    const Dim extent = window_extent(kernel[d], integers_of(c.attrs, "dilation")[d]);
    KILN_ASSIGN(const Dim count,
                window_count(c, size[d], extent, integers_of(c.attrs, "stride")[d], padding[d], which));
    KILN_TRY(c.require_equal(c.inputs[1].dims[2 + d], count, str_cat("dy dim ", 2 + d, " and ", windows_by(c.op))));
  }
  return {};
}

// ---- of x

Status infer_input(InferContext &c) {
  const size_t n = space_of(c.op);
  KILN_TRY(require_steps(c, n));
  const Shape &weight = c.inputs[0].dims, &dy = c.inputs[1].dims, &size = c.attr("size").dim_list();
  const int64_t groups = c.attr("groups").i64();
  if (size.size() != n) return c.fail("size has ", size.size(), " values, expected ", n);
  KILN_TRY(require_shape(c, size, "size"));
  KILN_TRY(c.require_equal(dy[1], weight[0], "dy dim 1 and weight dim 0"));
  KILN_TRY(c.require_equal(mod(weight[0], groups), 0, "weight dim 0 modulo groups and 0"));
  for (size_t d = 2; d < 2 + n; ++d)
    if (!weight[d].is_integer() || weight[d].integer() < 1)
      return c.fail("weight dim ", d, " is ", weight[d].text(), ", expected a number above 0");
  KILN_TRY(require_windows(c, size, std::span(weight).subspan(2)));
  Shape shape = {dy[0], weight[1] * groups};
  shape.insert(shape.end(), size.begin(), size.end());
  c.results = {make_type(c.inputs[1].dtype, std::move(shape))};
  return {};
}

Status decompose_input(DecomposeContext &c) {
  Composer g(c);
  const size_t n = space_of(c.op);
  const Shape weight = c.type(c.node.inputs[0]).dims, dy = c.type(c.node.inputs[1]).dims;
  const Shape &size = c.attr("size").dim_list();
  const std::vector<Ends> padding = padding_of(c.node.attrs, n);
  const std::vector<int64_t> stride = integers_of(c.node.attrs, "stride");
  AttrMap attrs = c.node.attrs;
  attrs.erase("size");
  // What no window reached is as many zeros, less than a stride: where that is not known, all.
  std::vector<int64_t> behind;
  for (size_t d = 0; d < n; ++d) {
    const Dim extent = window_extent(weight[2 + d], integers_of(attrs, "dilation")[d]);
    const Dim rest = size[d] + padding[d].before + padding[d].after - (dy[2 + d] - 1) * stride[d] - extent;
    behind.push_back(rest.is_integer() ? rest.integer() : stride[d] - 1);
  }
  attrs.insert_or_assign("output_padding", ints(std::move(behind)));
  ValueId dx = g(str_cat("conv_transpose", n, "d"), {c.node.inputs[1], c.node.inputs[0]}, std::move(attrs));
  for (size_t d = 0; d < n; ++d) dx = begin_of(c, g, dx, 2 + d, size[d]);
  return g.give({dx});
}

// ---- of the weight

Status infer_weight(InferContext &c) {
  const size_t n = space_of(c.op);
  KILN_TRY(require_steps(c, n));
  KILN_TRY(require_integers(c, "kernel", n, 1));
  const Shape &x = c.inputs[0].dims, &dy = c.inputs[1].dims;
  const int64_t groups = c.attr("groups").i64();
  KILN_TRY(c.require_equal(x[0], dy[0], "x dim 0 and dy dim 0"));
  for (const auto &[dim, name] : {std::pair(x[1], "x"), std::pair(dy[1], "dy")})
    KILN_TRY(c.require_equal(mod(dim, groups), 0, str_cat(name, " dim 1 modulo groups and 0")));
  const std::vector<int64_t> kernel = integers_of(c.attrs, "kernel");
  const Shape window(kernel.begin(), kernel.end());
  KILN_TRY(require_windows(c, std::span(x).subspan(2), window));
  Shape shape = {dy[1], floor_div(x[1], groups)};
  shape.insert(shape.end(), window.begin(), window.end());
  c.results = {make_type(c.inputs[0].dtype, std::move(shape))};
  return {};
}

// An element of the weight is the sum of what it was multiplied by: dy slides over x, whose channels are the images now
// and whose images the channels, in groups as they were. Strides and dilations change places.
Status decompose_weight(DecomposeContext &c) {
  Composer g(c);
  const size_t n = space_of(c.op);
  const Shape x = c.type(c.node.inputs[0]).dims, result = c.node.results[0].dims;
  const int64_t groups = c.attr("groups").i64();
  std::vector<int64_t> swapped = {1, 0}, moved = {2, 1, 0};
  Shape split = {x[0], groups, result[1]}, joined = {result[1], x[0] * groups};
  for (size_t d = 2; d < 2 + n; ++d) {
    swapped.push_back(static_cast<int64_t>(d));
    moved.push_back(static_cast<int64_t>(d) + 1);
    split.push_back(x[d]);
    joined.push_back(x[d]);
  }
  const ValueId images = g.reshape(permute(g, g.reshape(c.node.inputs[0], split), moved), joined);
  const ValueId windows = permute(g, c.node.inputs[1], swapped);
  AttrMap attrs = c.node.attrs;
  attrs.erase("kernel");
  std::swap(attrs.find("stride")->second, attrs.find("dilation")->second);
  ValueId dweight = permute(g, g(str_cat("correlate", n, "d"), {images, windows}, std::move(attrs)), swapped);
  for (size_t d = 2; d < 2 + n; ++d)
    dweight = begin_of(c, g, dweight, d, result[d]);  // x may be longer by a part of a stride
  return g.give({dweight});
}

// ---- reference kernels

// Calls add(x, weight, dy) with the elements that meet.
void for_each_product(const ReferenceContext &c, const std::vector<int64_t> &x, const std::vector<int64_t> &weight,
                      const std::vector<int64_t> &dy, const std::function<void(size_t, size_t, size_t)> &add) {
  const std::vector<int64_t> window(weight.begin() + 2, weight.end()), size(x.begin() + 2, x.end());
  const std::vector<int64_t> places(dy.begin() + 2, dy.end());
  const std::vector<Ends> padding = padding_of(c.attrs, window.size());
  const std::vector<int64_t> stride = integers_of(c.attrs, "stride"), dilation = integers_of(c.attrs, "dilation");
  const int64_t outputs = weight[0] / c.attr("groups").i64(), plane = count_of(size), taps = count_of(window);
  for (int64_t k = 0; k < count_of(dy); ++k) {
    const std::vector<int64_t> at = unflatten(k % count_of(places), places);
    const int64_t image = k / count_of(places) / dy[1], output = k / count_of(places) % dy[1];
    for (int64_t tap = 0; tap < taps; ++tap) {
      std::vector<int64_t> from = unflatten(tap, window);
      for (size_t d = 0; d < at.size(); ++d) from[d] = at[d] * stride[d] + from[d] * dilation[d] - padding[d].before;
      const int64_t place = place_in(from, size);
      for (int64_t input = 0; place >= 0 && input < weight[1]; ++input)
        add(static_cast<size_t>((image * x[1] + output / outputs * weight[1] + input) * plane + place),
            static_cast<size_t>((output * weight[1] + input) * taps + tap), static_cast<size_t>(k));
    }
  }
}
Status reference_backward(ReferenceContext &c) {
  const RefTensor &other = *c.inputs[0], &dy = *c.inputs[1];
  RefTensor &result = c.results[0];
  const bool of_input = c.op.find_attr("size");
  const ReadElements<double> others(other), in(dy);
  std::vector<Wide> sums(static_cast<size_t>(result.size()));
  for_each_product(c, of_input ? result.shape : other.shape, of_input ? other.shape : result.shape, dy.shape,
                   [&](size_t x, size_t weight, size_t y) {
                     sums[of_input ? x : weight] += Wide(others[of_input ? weight : x]) * in[y];
                   });
  give_all(result, sums);
  return {};
}

// ---- samples

struct Case {
  const char *name;
  int64_t images, channels, size, outputs, kernel;
  int64_t stride = 1, before = 0, after = 0, dilation = 1, groups = 1;
};
// Of x, the weight and dy those that the op takes; sizes grow by 1 from dim to dim.
Sample sample_of_case(const Case &each, size_t n, bool of_input, bool symbolic) {
  Shape x = {each.images, each.channels}, weight = {each.outputs, each.channels / each.groups};
  Shape dy = {each.images, each.outputs};
  std::vector<Ends> padding(n, {each.before, each.after});
  for (size_t d = 0; d < n; ++d) {
    x.push_back(each.size + static_cast<int64_t>(d));
    weight.push_back(each.kernel);
    dy.push_back(
        floor_div(x[2 + d] + each.before + each.after - window_extent(each.kernel, each.dilation), each.stride) + 1);
  }
  Sample sample{.name = each.name,
                .attrs = {{"stride", ops::each(n, each.stride)},
                          {"padding", padding_as(padding)},
                          {"dilation", ops::each(n, each.dilation)},
                          {"groups", each.groups}}};
  if (symbolic) {  // what no operand's dim is must be told by those that are
    const Dim windows = sym("p");
    sample.sizes = {{"n", each.images}, {"p", dy[2].integer()}};
    if (!of_input) sample.sizes.emplace("w", each.size);
    x[0] = dy[0] = sym("n");
    dy[2] = windows;
    x[2] = of_input ? (windows - 1) * each.stride + window_extent(each.kernel, each.dilation) - each.before - each.after
                    : sym("w");
  }
  if (of_input)
    sample.attrs.emplace("size", AttrValue(Shape(x.begin() + 2, x.end())));
  else
    sample.attrs.emplace("kernel", ops::each(n, each.kernel));
  sample.inputs = {f32(of_input ? weight : x), f32(dy)};
  return sample;
}
void samples_backward(SampleSink &out, size_t n, bool of_input) {
  const auto add = [&](const Case &each, bool symbolic = false) {
    out.push_back(sample_of_case(each, n, of_input, symbolic));
  };
  add({.name = "strided",
       .images = 2,
       .channels = 2,
       .size = 6,
       .outputs = 3,
       .kernel = 3,
       .stride = 2,
       .before = 1,
       .after = 1});
  add({.name = "uneven_ends",
       .images = 1,
       .channels = 2,
       .size = 5,
       .outputs = 4,
       .kernel = 2,
       .stride = 2,
       .after = 1,
       .dilation = 3,
       .groups = 2});
  add({.name = "symbolic",
       .images = 2,
       .channels = 2,
       .size = 5,
       .outputs = 2,
       .kernel = 3,
       .stride = 3,
       .before = 1,
       .after = 1},
      true);
  if (n == 3) return;  // three dims take a while
  add({.name = "plain", .images = 2, .channels = 3, .size = 5, .outputs = 2, .kernel = 3});
  add({.name = "one_by_one", .images = 1, .channels = 3, .size = 4, .outputs = 2, .kernel = 1, .stride = 3});
  add({.name = "dilated",
       .images = 1,
       .channels = 2,
       .size = 7,
       .outputs = 2,
       .kernel = 3,
       .before = 2,
       .after = 2,
       .dilation = 2});
  add({.name = "depthwise", .images = 2, .channels = 3, .size = 4, .outputs = 3, .kernel = 2, .groups = 3});
  add({.name = "no_images", .images = 0, .channels = 2, .size = 4, .outputs = 3, .kernel = 2});
}

// ---- records

std::vector<AttrDef> step_attrs(size_t n, AttrDef more) {
  return {std::move(more), stride_attr(n), padding_attr(n, "the convolution's: of each dim; or before and after each"),
          dilation_attr(n), groups_attr()};
}
template <size_t n>
Op of_input(std::string_view name) {
  return {
      {.name = name,
       .doc = "The gradient of a convolution's x, by that of its result. Computed with zeros between and around dy's "
              "elements, which make NaN of what is not finite.",
       .args = {{"weight", "[O, C / groups, KW], and KH, KD before that, which are numbers", float_types},
                {"dy", layout_doc(n), float_types}},
       .result_names = {"dx"},
       .attrs = step_attrs(n, list("size", "of x's dims of space", AttrKind::dim)),
       .infer = infer_input},
      {.decompose = decompose_input,
       .reference = reference_backward,
       .gradient = through_decomposition(),
       .samples = [](SampleSink &out) { samples_backward(out, n, true); }}};
}
template <size_t n>
Op of_weight(std::string_view name) {
  return {{.name = name,
           .doc = "The gradient of a convolution's weight, by that of its result.",
           .args = {{"x", layout_doc(n), float_types}, {"dy", layout_doc(n), float_types}},
           .result_names = {"dweight"},
           .attrs = step_attrs(n, list("kernel", "of the weight's dims of space")),
           .infer = infer_weight},
          {.decompose = decompose_weight,
           .reference = reference_backward,
           .gradient = through_decomposition(),
           .samples = [](SampleSink &out) { samples_backward(out, n, false); }}};
}

const Op convolution_backward_records[] = {
    of_input<1>("conv1d_backward_input"),   of_input<2>("conv2d_backward_input"),
    of_input<3>("conv3d_backward_input"),   of_weight<1>("conv1d_backward_weight"),
    of_weight<2>("conv2d_backward_weight"), of_weight<3>("conv3d_backward_weight")};

}  // namespace

std::span<const Op> convolution_backward_ops() { return convolution_backward_records; }

}  // namespace kiln::ops
