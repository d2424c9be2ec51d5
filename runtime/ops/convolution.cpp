// Convolution of images: conv2d is correlate2d and a bias.
#include <cmath>

#include "runtime/ops/family.h"

namespace kiln::ops {
namespace {

using kernel::ContractRole;
using kernel::Core;

const std::vector<AttrDef> convolution_attrs = {
    {.name = "stride", .doc = "steps along H and W", .kind = AttrKind::i64, .is_list = true, .fallback = ints({1, 1})},
    {.name = "padding",
     .doc = "zeros at both ends of H and W",
     .kind = AttrKind::i64,
     .is_list = true,
     .fallback = ints({0, 0})},
    {.name = "groups", .doc = "how many groups the channels fall into", .kind = AttrKind::i64, .fallback = 1}};

constexpr std::string_view weight_doc = "[O, C / groups, KH, KW]; x's dtype, or i8 where x is i8 or u8";

Status infer_correlate2d(InferContext &c) {
  const TensorType &x = c.inputs[0], &weight = c.inputs[1];
  KILN_ASSIGN(const DType dtype, product_dtype(c, 0, 1));
  KILN_TRY(require_rank(c, 0, 4));
  KILN_TRY(require_rank(c, 1, 4));
  KILN_TRY(require_integers(c, "stride", 2, 1));
  KILN_TRY(require_integers(c, "padding", 2, 0));
  const int64_t groups = c.attr("groups").i64();
  if (groups < 1) return c.fail("groups is ", groups, ", expected at least 1");
  KILN_TRY(c.require_equal(x.dims[1], weight.dims[1] * groups, "x dim 1 and groups * weight dim 1"));
  KILN_TRY(c.require_equal(mod(weight.dims[0], groups), 0, "weight dim 0 modulo groups and 0"));
  Shape shape = {x.dims[0], weight.dims[0]};
  for (size_t d = 0; d < 2; ++d) {
    KILN_ASSIGN(Dim count, window_count(c, x.dims[2 + d], weight.dims[2 + d], c.attr("stride").i64_list()[d],
                                        c.attr("padding").i64_list()[d], str_cat("x dim ", 2 + d)));
    shape.push_back(std::move(count));
  }
  c.results = {make_type(dtype, std::move(shape))};
  return {};
}

Status infer_conv2d(InferContext &c) {
  KILN_TRY(infer_correlate2d(c));
  if (c.inputs.size() < 3) return {};
  KILN_TRY(require_rank(c, 2, 1));
  KILN_TRY(require_bias(c, 2, c.results[0].dtype));
  return c.require_equal(c.inputs[2].dims[0], c.inputs[1].dims[0], "bias dim 0 and weight dim 0");
}

// The loads of x and weight that are multiplied, at reduce axis k = (channel of the group, row, column of the window).
int load_x(const LowerContext &c, kernel::BodyBuilder body, const Expr &k) {
  const Shape &x = c.inputs[0].dims, &weight = c.inputs[1].dims;
  const std::vector<int64_t> &stride = c.attr("stride").i64_list(), &padding = c.attr("padding").i64_list();
  const Expr group =
      c.attr("groups").i64() == 1 ? Expr(0) : floor_div(c.axis(1), floor_div(weight[0], c.attr("groups").i64()));
  const Expr channel = group * weight[1] + floor_div(k, weight[2] * weight[3]);
  const Expr row = c.axis(2) * stride[0] + mod(floor_div(k, weight[3]), weight[2]) - padding[0];
  const Expr column = c.axis(3) * stride[1] + mod(k, weight[3]) - padding[1];
  int valid = -1;
  if (padding[0] > 0) valid = inside(body, row, x[2]);
  if (padding[1] > 0) valid = both(body, valid, inside(body, column, x[3]));
  return body.convert(body.load(0, c.inputs[0].dtype, {c.axis(0), channel, row, column}, valid), c.result.dtype);
}
int load_weight(const LowerContext &c, kernel::BodyBuilder body, const Expr &k) {
  const Shape &weight = c.inputs[1].dims;
  const int value = body.load(
      1, c.inputs[1].dtype,
      {c.axis(1), floor_div(k, weight[2] * weight[3]), mod(floor_div(k, weight[3]), weight[2]), mod(k, weight[3])});
  return body.convert(value, c.result.dtype);
}

// One group is a contraction: for each image, output channels by output pixels. Several are plain sums, since a group's
// channels are a part of the result's axis.
Status lower_correlate2d(LowerContext &c) {
  const Shape &weight = c.inputs[1].dims;
  const Expr k = c.reduce_axis(weight[1] * weight[2] * weight[3]);
  if (c.attr("groups").i64() == 1) {
    kernel::Contract &contract = c.compute.contract.emplace();
    kernel::BodyBuilder a(contract.a), b(contract.b);
    a.yield(load_x(c, a, k));
    b.yield(load_weight(c, b, k));
    contract.accumulator = c.result.dtype;
    c.compute.roles = {ContractRole::batch, ContractRole::n, ContractRole::m, ContractRole::m};
  } else {
    c.compute.carriers = kernel::carriers_of(Core::add, c.result.dtype);
    const int x = load_x(c, c.body, k);
    c.body.yield(c.body.op(Core::mul, x, load_weight(c, c.body, k)));
  }
  return {};
}

Status decompose_conv2d(DecomposeContext &c) {
  KILN_ASSIGN(ValueId y, c.add("correlate2d", {c.node.inputs[0], c.node.inputs[1]}, c.node.attrs));
  if (c.node.inputs.size() == 3) {
    KILN_ASSIGN(ValueId bias, c.add("unsqueeze", {c.node.inputs[2]}, {{"dims", ints({1, 2})}}));
    KILN_ASSIGN(y, c.add("add", {y, bias}));
  }
  c.results = {y};
  return {};
}

Status reference_convolution(ReferenceContext &c) {
  const RefTensor &x = *c.inputs[0], &weight = *c.inputs[1];
  RefTensor &y = c.results[0];
  const std::vector<int64_t> &stride = c.attr("stride").i64_list(), &padding = c.attr("padding").i64_list();
  const int64_t channels = weight.shape[1], height = x.shape[2], width = x.shape[3];
  const int64_t group_outputs = std::max<int64_t>(y.shape[1] / c.attr("groups").i64(), 1);
  return dispatch_wide(y, [&](auto zero, auto wide) -> Status {
    using T = decltype(zero);
    using Wide = decltype(wide);
    const auto image = elements<T>(x), factor = elements<T>(weight);
    T *out = elements<T>(y).data();
    for (int64_t n = 0; n < y.shape[0]; ++n)
      for (int64_t o = 0; o < y.shape[1]; ++o)
        for (int64_t i = 0; i < y.shape[2]; ++i)
          for (int64_t j = 0; j < y.shape[3]; ++j) {
            Wide sum = c.inputs.size() == 3 ? elements<T>(*c.inputs[2])[static_cast<size_t>(o)] : T(0);
            for (int64_t s = 0; s < channels; ++s)
              for (int64_t p = 0; p < weight.shape[2]; ++p)
                for (int64_t q = 0; q < weight.shape[3]; ++q) {
                  const int64_t row = i * stride[0] + p - padding[0], column = j * stride[1] + q - padding[1];
                  const bool inside = row >= 0 && row < height && column >= 0 && column < width;
                  const int64_t channel = o / group_outputs * channels + s;
                  const auto at = static_cast<size_t>(((n * x.shape[1] + channel) * height + row) * width + column);
                  // Padding is zeros, not nothing: an infinite weight makes NaN of them.
                  const T w =
                      factor[static_cast<size_t>(((o * channels + s) * weight.shape[2] + p) * weight.shape[3] + q)];
                  sum = add(sum, mul(Wide(inside ? image[at] : T(0)), Wide(w)));
                }
            *out++ = static_cast<T>(sum);
          }
    return {};
  });
}

void samples_correlate2d(SampleSink &out) {
  const Dim n = sym("n"), h = sym("h"), w = sym("w");
  auto sample = [&](const char *name, Shape x, Shape weight, std::vector<int64_t> stride, std::vector<int64_t> padding,
                    int64_t groups = 1, std::map<std::string, int64_t> sizes = {}) {
    out.push_back(
        {.name = name,
         .inputs = {f32(std::move(x)), f32(std::move(weight))},
         .attrs = {{"stride", ints(std::move(stride))}, {"padding", ints(std::move(padding))}, {"groups", groups}},
         .sizes = std::move(sizes)});
  };
  sample("plain", {2, 3, 7, 9}, {5, 3, 3, 3}, {1, 1}, {0, 0});
  sample("padded", {2, 3, 8, 8}, {16, 3, 3, 3}, {1, 1}, {1, 1});
  sample("strided", {1, 4, 9, 17}, {7, 4, 3, 3}, {2, 3}, {1, 0});
  sample("one_by_one", {3, 17, 5, 5}, {9, 17, 1, 1}, {1, 1}, {0, 0});
  sample("wide_window", {1, 2, 11, 13}, {3, 2, 5, 1}, {1, 1}, {2, 0});
  sample("whole_image", {2, 3, 5, 7}, {4, 3, 5, 7}, {1, 1}, {0, 0});
  sample("window_beyond_image", {1, 1, 1, 1}, {2, 1, 3, 3}, {1, 1}, {1, 1});
  sample("large", {1, 8, 12, 12}, {33, 8, 3, 3}, {1, 1}, {1, 1});
  sample("groups", {2, 6, 7, 7}, {4, 3, 3, 3}, {1, 1}, {1, 1}, 2);
  sample("depthwise", {1, 5, 9, 9}, {5, 1, 3, 3}, {2, 2}, {1, 1}, 5);
  sample("no_images", {0, 3, 5, 5}, {2, 3, 3, 3}, {1, 1}, {0, 0});
  sample("no_channels", {1, 0, 5, 5}, {2, 0, 3, 3}, {1, 1}, {1, 1});
  sample("symbolic_batch", {n, 3, 8, 8}, {8, 3, 3, 3}, {1, 1}, {1, 1}, 1, {{"n", 3}});
  sample("symbolic_image", {n, 2, h, w}, {5, 2, 3, 3}, {2, 1}, {1, 1}, 1, {{"n", 2}, {"h", 9}, {"w", 6}});
  sample("symbolic_groups", {n, 4, h, w}, {6, 2, 3, 3}, {1, 1}, {0, 1}, 2, {{"n", 1}, {"h", 5}, {"w", 7}});
  out.push_back({.name = "bytes",
                 .inputs = {make_type(DType::u8, {2, 3, 7, 9}), make_type(DType::i8, {5, 3, 3, 3})},
                 .attrs = {{"padding", ints({1, 1})}},
                 .int_low = 0,
                 .int_high = 256});
  sample("infinite_weight_over_padding", {1, 1, 1, 3}, {1, 1, 1, 2}, {1, 1}, {0, 1});
  out.back().given = {{0, f32_data({1, 1, 1, 3}, {1, 2, -3})}, {1, f32_data({1, 1, 1, 2}, {INFINITY, 0.5f})}};
}

void samples_conv2d(SampleSink &out) {
  samples_correlate2d(out);
  for (Sample &sample : out) {
    const DType bias = dtype_info(sample.inputs[0].dtype).is_float ? DType::f32 : DType::i32;
    sample.inputs.push_back(make_type(bias, {sample.inputs[1].dims[0]}));
  }
  out.push_back({.name = "no_bias", .inputs = {f32({2, 3, 7, 9}), f32({5, 3, 3, 3})}});
}

const Op records[] = {
    {{.name = "correlate2d",
      .doc = "The sums of products of a window that slides over an image: conv2d without a bias.",
      .args = {{"x", "[N, C, H, W]", numeric_types},
               {"weight", weight_doc, numeric_types, Arity::one, /*same_dtype=*/false}},
      .result_names = {"y"},
      .attrs = convolution_attrs,
      .infer = infer_correlate2d},
     {.lower = lower_correlate2d, .reference = reference_convolution, .samples = samples_correlate2d}},

    {{.name = "conv2d",
      .doc =
          "Two-dimensional convolution, as machine learning means it: correlation, and a bias for each output channel.",
      .args = {{"x", "[N, C, H, W]", numeric_types},
               {"weight", weight_doc, numeric_types, Arity::one, /*same_dtype=*/false},
               {"bias", "[O], of the result's dtype", numeric_types, Arity::optional,
                /*same_dtype=*/false}},
      .result_names = {"y"},
      .attrs = convolution_attrs,
      .infer = infer_conv2d},
     {.decompose = decompose_conv2d, .reference = reference_convolution, .samples = samples_conv2d}},
};

}  // namespace

std::span<const Op> convolution_ops() { return records; }

}  // namespace kiln::ops
