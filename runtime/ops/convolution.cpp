// Convolution of sequences, images and volumes: conv2d is correlate2d and a bias.
#include <cmath>

#include "runtime/ops/convolving.h"

namespace kiln::ops {
namespace {

using kernel::ContractRole;
using kernel::Core;

Status infer_correlate(InferContext &c) {
  const size_t n = space_of(c.op);
  const TensorType &x = c.inputs[0], &weight = c.inputs[1];
  KILN_ASSIGN(const DType dtype, infer_operands(c, n));
  const int64_t groups = c.attr("groups").i64();
  KILN_TRY(c.require_equal(x.dims[1], weight.dims[1] * groups, "x dim 1 and groups * weight dim 1"));
  KILN_TRY(c.require_equal(mod(weight.dims[0], groups), 0, "weight dim 0 modulo groups and 0"));
  Shape shape = {x.dims[0], weight.dims[0]};
  const std::vector<Ends> padding = padding_of(c.attrs, n);
  for (size_t d = 0; d < n; ++d) {
    const Dim extent = window_extent(weight.dims[2 + d], c.attr("dilation").i64_list()[d]);
    KILN_ASSIGN(Dim count, window_count(c, x.dims[2 + d], extent, c.attr("stride").i64_list()[d], padding[d],
                                        str_cat("x dim ", 2 + d)));
    shape.push_back(std::move(count));
  }
  c.results = {make_type(dtype, std::move(shape))};
  return {};
}

Status infer_conv(InferContext &c) {
  KILN_TRY(infer_correlate(c));
  return infer_bias(c, c.inputs[1].dims[0], "bias dim 0 and weight dim 0");
}

// What a weight's index is at reduce axis k: that of an element of one output channel, which is a channel of the group
// and a place in the window.
std::vector<Expr> place_of(const LowerContext &c, const Expr &k) {
  return unflatten(k, std::span(c.inputs[1].dims).subspan(1));
}

// The loads of x and weight that are multiplied.
int load_x(const LowerContext &c, kernel::BodyBuilder body, const Expr &k) {
  const Shape &x = c.inputs[0].dims, &weight = c.inputs[1].dims;
  const size_t n = x.size() - 2;
  const std::vector<int64_t> &stride = c.attr("stride").i64_list(), &dilation = c.attr("dilation").i64_list();
  const std::vector<Ends> padding = padding_of(c.attrs, n);
  const std::vector<Expr> place = place_of(c, k);
  const Expr group =
      c.attr("groups").i64() == 1 ? Expr(0) : floor_div(c.axis(1), floor_div(weight[0], c.attr("groups").i64()));
  std::vector<Expr> index = {c.axis(0), group * weight[1] + place[0]};
  int valid = -1;
  for (size_t d = 0; d < n; ++d) {
    index.push_back(c.axis(2 + d) * stride[d] + place[1 + d] * dilation[d] - padding[d].before);
    if (padding[d].before > 0 || padding[d].after > 0) valid = both(body, valid, inside(body, index.back(), x[2 + d]));
  }
  return body.convert(body.load(0, c.inputs[0].dtype, std::move(index), valid), c.result.dtype);
}
int load_weight(const LowerContext &c, kernel::BodyBuilder body, const Expr &k) {
  std::vector<Expr> index = place_of(c, k);
  index.insert(index.begin(), c.axis(1));
  return body.convert(body.load(1, c.inputs[1].dtype, std::move(index)), c.result.dtype);
}

// Whether pixels are a contraction's columns: then lanes run along them, as memory does, and results are stored as they
// come. Of few pixels there are many channels, which then are the columns: each place of a window is packed once for
// all of them (1.0 to 1.1 of 196 pixels by 256 channels beside another library, where the other way gave 0.8; of 3,136
// by 64 it was 1.0, and 1.25). Integers want the weights there.
bool pixels_are_columns(const LowerContext &c) {
  constexpr int64_t few = 1024;
  const Expr pixels = product_of(std::span(c.result.dims).subspan(2));
  return dtype_info(c.inputs[0].dtype).is_float && !(pixels.is_integer() && pixels.integer() <= few);
}

// One group is a contraction: for each image, output channels by output pixels. Several are plain sums, since a group's
// channels are a part of the result's axis.
Status lower_correlate(LowerContext &c) {
  const Expr k = c.reduce_axis(product_of(std::span(c.inputs[1].dims).subspan(1)));
  if (c.attr("groups").i64() == 1) {
    kernel::Contract &contract = c.compute.contract.emplace();
    const bool swapped = pixels_are_columns(c);
    kernel::BodyBuilder x(swapped ? contract.b : contract.a), weight(swapped ? contract.a : contract.b);
    x.yield(load_x(c, x, k));
    weight.yield(load_weight(c, weight, k));
    contract.accumulator = c.result.dtype;
    c.compute.roles.assign(c.result.rank(), swapped ? ContractRole::n : ContractRole::m);
    c.compute.roles[0] = ContractRole::batch;
    c.compute.roles[1] = swapped ? ContractRole::m : ContractRole::n;
  } else {
    c.compute.carriers = kernel::carriers_of(Core::add, c.result.dtype);
    const int x = load_x(c, c.body, k);
    c.body.yield(c.body.op(Core::mul, x, load_weight(c, c.body, k)));
  }
  return {};
}

Status decompose_conv(DecomposeContext &c) {
  Composer g(c);
  const std::string correlate = str_cat("correlate", space_of(c.op), "d");
  return g.give({add_bias(c, g, g(correlate, {c.node.inputs[0], c.node.inputs[1]}, c.node.attrs))});
}

// All elements of the window: what it has in the padding is 0, not nothing.
std::vector<Tap> taps_at(const ReferenceContext &c, const std::vector<int64_t> &at) {
  const std::vector<int64_t> size(c.inputs[0]->shape.begin() + 2, c.inputs[0]->shape.end());
  const std::vector<int64_t> window(c.inputs[1]->shape.begin() + 2, c.inputs[1]->shape.end());
  const std::vector<int64_t> &stride = c.attr("stride").i64_list(), &dilation = c.attr("dilation").i64_list();
  const std::vector<Ends> padding = padding_of(c.attrs, at.size());
  std::vector<Tap> taps;
  for (int64_t k = 0; k < count_of(window); ++k) {
    std::vector<int64_t> from = unflatten(k, window);
    for (size_t d = 0; d < at.size(); ++d) from[d] = at[d] * stride[d] + from[d] * dilation[d] - padding[d].before;
    taps.push_back({place_in(from, size), k});
  }
  return taps;
}
Status reference_conv(ReferenceContext &c) {
  return reference_of_taps(c, taps_at, /*weight_begins_with_inputs=*/false);
}

// ---- samples

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
  sample("many_pixels", {1, 3, 40, 33}, {5, 3, 3, 3}, {1, 1}, {1, 1});  // which are columns; rows of two vectors
  sample("many_in_short_rows", {2, 2, 150, 7}, {3, 2, 3, 3}, {1, 1}, {1, 1});
  sample("many_strided", {1, 3, 70, 61}, {6, 3, 5, 3}, {2, 1}, {2, 1});
  sample("groups", {2, 6, 7, 7}, {4, 3, 3, 3}, {1, 1}, {1, 1}, 2);
  sample("depthwise", {1, 5, 9, 9}, {5, 1, 3, 3}, {2, 2}, {1, 1}, 5);
  sample("depthwise_wide", {1, 3, 9, 11}, {3, 1, 7, 7}, {1, 1}, {3, 3}, 3);  // more points than sums side by side
  sample("depthwise_strided", {1, 3, 12, 37}, {3, 1, 5, 5}, {2, 2}, {2, 2}, 3);
  sample("windows_with_a_border", {2, 8, 13, 11}, {40, 8, 3, 3}, {2, 1}, {1, 1});  // which is copied
  out.push_back({.name = "windows_with_an_uneven_border",
                 .inputs = {f32({sym("n"), 8, 9, 10}), f32({40, 8, 5, 3})},
                 .attrs = {{"padding", ints({0, 3, 2, 0})}, {"dilation", ints({2, 1})}},
                 .sizes = {{"n", 2}}});
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

// The same of each count of dims.
void samples_correlate(SampleSink &out, size_t n) {
  if (n == 2) samples_correlate2d(out);
  const auto sample = [&](const char *name, const Shape &x, const Shape &weight, AttrMap attrs,
                          std::map<std::string, int64_t> sizes = {}) {
    out.push_back(convolution_sample(name, x, weight, n, std::move(attrs), std::move(sizes)));
  };
  if (n == 1) {
    sample("one_wide", {1, 5, 3}, {3, 5, 1}, {});
    sample("depthwise", {1, 3, 6}, {3, 1, 3}, {{"padding", each(n, 1)}, {"groups", 3}});
  }
  if (n != 2) {
    sample("plain_windows", {2, 3, 5}, {5, 3, 3}, {});
    sample("strided_and_padded", {2, 3, 6}, {4, 3, 3}, {{"stride", each(n, 2)}, {"padding", each(n, 1)}});
    sample("nothing", {0, 3, 5}, {2, 3, 3}, {});
    out.push_back(convolution_of_bytes({2, 3, 5}, {5, 3, 3}, n));
  }
  if (n < 3) sample("dilated", {1, 3, 7}, {4, 3, 3}, {{"dilation", each(n, 2)}});  // three dims take a while
  sample("dilated_and_strided", {1, 2, 7}, {3, 2, 2},
         {{"dilation", each(n, 3)}, {"stride", each(n, 2)}, {"padding", each(n, 1)}});
  sample("uneven_ends", {2, 2, 4}, {3, 2, 3}, {{"padding", uneven_ends(n)}});
  sample("groups_dilated", {1, 4, 6}, {4, 2, 2},
         {{"dilation", each(n, 2)}, {"padding", uneven_ends(n)}, {"groups", 2}});
  sample("symbolic_size", {sym("n"), 2, sym("w")}, {3, 2, 3},
         {{"dilation", each(n, 2)}, {"padding", uneven_ends(n)}, {"stride", each(n, 2)}}, {{"n", 2}, {"w", 6}});
}

void samples_conv(SampleSink &out, size_t n) {
  samples_correlate(out, n);
  add_biases(out, 0);
}

Op correlation(std::string_view name, std::string_view doc, size_t n, bool has_bias, Status (*infer)(InferContext &),
               OpMeaning meaning) {
  return convolution(
      name, doc, "[O, C / groups, KW], and KH, KD before that; x's dtype, or i8 where x is i8 or u8",
      {stride_attr(n),
       padding_attr(n, "zeros at both ends of each dim of space; or 2 numbers for each, before and after"),
       dilation_attr(n), groups_attr()},
      n, has_bias, infer, meaning);
}
template <size_t n>
Op correlate(std::string_view name) {
  return correlation(name, "The sums of products of a window that slides over x: a convolution without a bias.", n,
                     false, infer_correlate,
                     {.lower = lower_correlate,
                      .reference = reference_conv,
                      .gradient = by_rule("x, weight"),
                      .samples = [](SampleSink &out) { samples_correlate(out, n); }});
}
template <size_t n>
Op conv(std::string_view name) {
  return correlation(name, "Convolution as machine learning means it: correlation, and a bias for each output channel.",
                     n, true, infer_conv,
                     {.decompose = decompose_conv,
                      .reference = reference_conv,
                      .gradient = through_decomposition(),
                      .samples = [](SampleSink &out) { samples_conv(out, n); }});
}

const Op convolution_records[] = {correlate<1>("correlate1d"), correlate<2>("correlate2d"), correlate<3>("correlate3d"),
                                  conv<1>("conv1d"),           conv<2>("conv2d"),           conv<3>("conv3d")};

}  // namespace

std::span<const Op> convolution_ops() { return convolution_records; }

}  // namespace kiln::ops
