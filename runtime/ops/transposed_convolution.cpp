// Transposed convolution: each element of x spreads a window over the result. It is computed as a convolution that
// multiplies by no inserted zero of x: the places of the result that are equal modulo the stride see the same part of
// the window, so that they are output channels of their own, which are then put side by side.
#include <cmath>

#include "runtime/ops/convolving.h"

namespace kiln::ops {
namespace {

// One dim of space. x[i] and the window's element k meet at stride * i + dilation * k - padding. With dilation * k =
// stride * j + phase and phase < stride, that is stride * (i + j) + phase - padding: row i + j of the results of a
// phase.
struct Spread {
  int64_t window, stride, dilation, more;
  Ends padding;

  int64_t extent() const { return (window - 1) * dilation + 1; }
  // How many j there are. With a stride the window's gaps count as elements, which are 0.
  int64_t parts() const { return stride == 1 ? window : (extent() + stride - 1) / stride; }
  int64_t step() const { return stride == 1 ? dilation : 1; }  // from part to part, in rows
  int64_t reach() const { return (parts() - 1) * step(); }     // of the parts, in rows
  Dim result_size(const Dim &x) const { return (x - 1) * stride + extent() + more - padding.before - padding.after; }
  // Rows that are computed begin with number reach() - before, and end so that the result's last is there.
  Ends rows() const {
    return {std::max<int64_t>(0, reach() - padding.before / stride),
            std::max<int64_t>(0, extent() - 1 + more - padding.after) / stride};
  }
};
std::vector<Spread> spreads_of(const AttrMap &attrs, const std::vector<int64_t> &window) {
  const auto list = [&](const char *name) -> const std::vector<int64_t> & {
    return attrs.find(name)->second.i64_list();
  };
  const std::vector<Ends> padding = padding_of(attrs, window.size());
  std::vector<Spread> spreads;
  for (size_t d = 0; d < window.size(); ++d)
    spreads.push_back({window[d], list("stride")[d], list("dilation")[d], list("output_padding")[d], padding[d]});
  return spreads;
}

Status infer_transposed(InferContext &c) {
  const size_t n = space_of(c.op);
  const TensorType &x = c.inputs[0], &weight = c.inputs[1];
  KILN_ASSIGN(const DType dtype, infer_operands(c, n));
  KILN_TRY(require_integers(c, "output_padding", n, 0));
  const int64_t groups = c.attr("groups").i64();
  KILN_TRY(c.require_equal(x.dims[1], weight.dims[0], "x dim 1 and weight dim 0"));
  KILN_TRY(c.require_equal(mod(weight.dims[0], groups), 0, "weight dim 0 modulo groups and 0"));
  std::vector<int64_t> window;
  for (size_t d = 2; d < 2 + n; ++d) {
    if (!weight.dims[d].is_integer())
      return c.fail("weight dim ", d, " is ", weight.dims[d].text(), ", expected a number");
    window.push_back(weight.dims[d].integer());
  }
  Shape shape = {x.dims[0], weight.dims[1] * groups};
  for (const Spread &spread : spreads_of(c.attrs, window)) {
    const size_t d = shape.size();
    if (spread.dilation > farthest / spread.window)
      return c.fail("dilation holds ", spread.dilation, ", expected at most ", farthest, " over weight dim ", d,
                    ", which is ", spread.window);
    if (spread.more >= std::max(spread.stride, spread.dilation))
      return c.fail("output_padding holds ", spread.more, ", expected less than stride ", spread.stride,
                    " or dilation ", spread.dilation);
    KILN_TRY(require_at_most(c, 1, x.dims[d], str_cat("at least one element along x dim ", d)));
    shape.push_back(spread.result_size(x.dims[d]));
    KILN_TRY(require_at_most(
        c, 1, shape.back(),
        str_cat("at least one element along y dim ", d, " by stride, padding, output_padding and dilation")));
  }
  c.results = {make_type(dtype, std::move(shape))};
  return infer_bias(c, c.results[0].dims[1], "bias dim 0 and groups * weight dim 1");
}

ValueId slice(Composer &g, ValueId x, size_t dim, const Dim &start, const Dim &end) {
  return g("slice", {x}, {{"dim", static_cast<int64_t>(dim)}, {"start", start}, {"end", end}});
}
ValueId pad_end(Composer &g, ValueId x, size_t rank, size_t dim, int64_t count) {
  std::vector<int64_t> high(rank, 0);
  high[dim] = count;
  return g("pad", {x}, {{"low", ints(std::vector<int64_t>(rank, 0))}, {"high", ints(std::move(high))}});
}

// The weight's dims of space as parts of a stride each, with zeros in its gaps and behind it.
ValueId in_parts(Composer &g, ValueId weight, Shape dims, const std::vector<Spread> &spreads) {
  const size_t rank = dims.size();
  for (size_t d = 2; d < rank; ++d) {
    const Spread &spread = spreads[d - 2];
    if (spread.stride == 1) continue;
    if (spread.dilation > 1) {
      Shape apart = dims;
      apart.insert(apart.begin() + static_cast<ptrdiff_t>(d) + 1, 1);
      weight = pad_end(g, g.reshape(weight, apart), rank + 1, d + 1, spread.dilation - 1);
      dims[d] = dims[d] * spread.dilation;
      weight = slice(g, g.reshape(weight, dims), d, 0, spread.extent());
    }
    dims[d] = spread.parts() * spread.stride;
    if (const int64_t missing = spread.parts() * spread.stride - spread.extent())
      weight = pad_end(g, weight, rank, d, missing);
  }
  return weight;
}

Status decompose_transposed(DecomposeContext &c) {
  Composer g(c);
  const size_t n = space_of(c.op);
  const Shape x = c.type(c.node.inputs[0]).dims, dims = c.type(c.node.inputs[1]).dims;
  std::vector<int64_t> window;
  for (size_t d = 2; d < 2 + n; ++d) window.push_back(dims[d].integer());
  const std::vector<Spread> spreads = spreads_of(c.node.attrs, window);
  const int64_t groups = c.attr("groups").i64();

  // The weight as [groups, inputs, outputs, parts 0, stride 0, ...], and that as [groups, outputs, strides, inputs,
  // parts], of which the first three are the output channels of a convolution, and the parts its window, reversed.
  Shape split = {groups, floor_div(dims[0], groups), dims[1]}, joined = {groups * dims[1], split[1]};
  std::vector<int64_t> steps, space, order = {0, 2}, place = {0, 1};
  std::vector<Ends> rows;
  Shape phases = {x[0], groups * dims[1]}, sizes, result = phases;
  for (size_t d = 0; d < n; ++d) {
    const Spread &spread = spreads[d];
    split.insert(split.end(), {spread.parts(), spread.stride});
    joined[0] = joined[0] * spread.stride;
    joined.push_back(spread.parts());
    order.push_back(static_cast<int64_t>(4 + 2 * d));
    space.push_back(static_cast<int64_t>(2 + d));
    steps.push_back(spread.step());
    rows.push_back(spread.rows());
    phases.push_back(spread.stride);
    sizes.push_back(x[2 + d] + rows[d].before + rows[d].after - spread.reach());
    place.insert(place.end(), {static_cast<int64_t>(2 + n + d), static_cast<int64_t>(2 + d)});
    result.push_back(sizes[d] * spread.stride);
  }
  order.push_back(1);
  for (size_t d = 0; d < n; ++d) order.push_back(static_cast<int64_t>(3 + 2 * d));
  phases.insert(phases.end(), sizes.begin(), sizes.end());

  ValueId weight = g.reshape(in_parts(g, c.node.inputs[1], dims, spreads), split);
  weight = g.reshape(g("permute", {weight}, {{"dims", ints(std::move(order))}}), joined);
  weight = g("flip", {weight}, {{"dims", ints(std::move(space))}});
  ValueId y = g(str_cat("correlate", n, "d"), {c.node.inputs[0], weight},
                {{"padding", padding_as(rows)}, {"dilation", ints(std::move(steps))}, {"groups", groups}});
  y = g.reshape(g("permute", {g.reshape(y, phases)}, {{"dims", ints(std::move(place))}}), result);
  for (size_t d = 0; d < n; ++d) {
    const Dim begin = spreads[d].padding.before - spreads[d].stride * (spreads[d].reach() - rows[d].before);
    y = slice(g, y, 2 + d, begin, begin + spreads[d].result_size(x[2 + d]));
  }
  return g.give({add_bias(c, g, y)});
}

// What meets at a place: of each dim of space the elements of x and of the window, of which all combinations meet.
std::vector<Tap> transposed_taps_at(const ReferenceContext &c, const std::vector<int64_t> &at) {
  const std::vector<int64_t> size(c.inputs[0]->shape.begin() + 2, c.inputs[0]->shape.end());
  const std::vector<int64_t> window(c.inputs[1]->shape.begin() + 2, c.inputs[1]->shape.end());
  const std::vector<Spread> spreads = spreads_of(c.attrs, window);
  std::vector<int64_t> parts;
  for (const Spread &spread : spreads) parts.push_back(spread.parts());
  std::vector<Tap> taps;
  for (int64_t k = 0; k < count_of(parts); ++k) {
    const std::vector<int64_t> part = unflatten(k, parts);
    std::vector<int64_t> from, by;
    for (size_t d = 0; d < parts.size(); ++d) {
      const Spread &spread = spreads[d];
      const int64_t row = (at[d] + spread.padding.before) / spread.stride;
      const int64_t place = spread.stride * part[d] * spread.step() + (at[d] + spread.padding.before) % spread.stride;
      from.push_back(row - part[d] * spread.step());
      by.push_back(place % spread.dilation == 0 ? place / spread.dilation : -1);
    }
    taps.push_back({place_in(from, size), place_in(by, window)});
  }
  return taps;
}
Status reference_transposed(ReferenceContext &c) {
  return reference_of_taps(c, transposed_taps_at, /*weight_begins_with_inputs=*/true);
}

// ---- samples

void samples_transposed(SampleSink &out, size_t n) {
  const auto sample = [&](const char *name, const Shape &x, const Shape &weight, AttrMap attrs,
                          std::map<std::string, int64_t> sizes = {}) {
    out.push_back(convolution_sample(name, x, weight, n, std::move(attrs), std::move(sizes)));
  };
  sample("doubled_by_odd_windows", {1, 3, 3}, {3, 2, 3},
         {{"stride", each(n, 2)}, {"padding", each(n, 1)}, {"output_padding", each(n, 1)}});
  sample("dilated_with_stride", {1, 2, 3}, {2, 3, 3},
         {{"dilation", each(n, 2)}, {"stride", each(n, 3)}, {"output_padding", each(n, 2)}});
  sample("uneven_ends", {2, 2, 4}, {2, 3, 3}, {{"padding", uneven_ends(n)}, {"stride", each(n, 2)}});
  sample("groups", {1, 4, 3}, {4, 3, 3}, {{"groups", 2}, {"stride", each(n, 2)}, {"padding", each(n, 1)}});
  sample("depthwise", {1, 3, 4}, {3, 1, 2}, {{"groups", 3}});
  sample("symbolic", {sym("n"), 2, sym("w")}, {2, 3, 3},
         {{"stride", each(n, 2)}, {"padding", each(n, 1)}, {"output_padding", each(n, 1)}}, {{"n", 2}, {"w", 4}});
  if (n < 3) {  // compiling in three dims takes a while
    sample("plain", {2, 3, 4}, {3, 5, 3}, {});
    sample("doubled", {1, 3, 3}, {3, 4, 4}, {{"stride", each(n, 2)}, {"padding", each(n, 1)}});
    sample("one_by_one", {1, 5, 3}, {5, 3, 1}, {});
    sample("apart", {1, 2, 3}, {2, 2, 2}, {{"stride", each(n, 3)}});
    sample("trimmed", {1, 2, 4}, {2, 3, 2}, {{"padding", each(n, 2)}, {"stride", each(n, 2)}});
    sample("dilated", {1, 2, 4}, {2, 3, 3},
           {{"dilation", each(n, 2)}, {"padding", each(n, 1)}, {"output_padding", each(n, 1)}});
    sample("no_images", {0, 3, 4}, {3, 2, 3}, {});
  }
  out.push_back(convolution_of_bytes({1, 3, 4}, {3, 2, 2}, n));
  add_biases(out, 1);
}

template <size_t n>
Op transposed(std::string_view name) {
  return convolution(
      name,
      "The transposed convolution: each element of x adds the window, times itself, to the result, `stride` apart. "
      "Computed with zeros around x and behind the window, which make NaN of what is not finite.",
      "[C, O / groups, KW], and KH, KD before that, which are numbers; x's dtype, or i8 where x is i8 or u8",
      {list("stride", "steps in the result for one in x, along each dim of space", std::vector<int64_t>(n, 1)),
       padding_attr(n, "what is cut off both ends of each dim of space; or 2 numbers for each, before and after"),
       list("output_padding", "what is added to the end of each dim, less than stride or dilation",
            std::vector<int64_t>(n, 0)),
       dilation_attr(n), groups_attr()},
      n, /*has_bias=*/true, infer_transposed,
      {.decompose = decompose_transposed,
       .reference = reference_transposed,
       .gradient = through_decomposition(),
       .samples = [](SampleSink &out) { samples_transposed(out, n); }});
}

const Op transposed_convolution_records[] = {transposed<1>("conv_transpose1d"), transposed<2>("conv_transpose2d"),
                                             transposed<3>("conv_transpose3d")};

}  // namespace

std::span<const Op> transposed_convolution_ops() { return transposed_convolution_records; }

}  // namespace kiln::ops
