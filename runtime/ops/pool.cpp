// Pooling: one number for each window of a sequence, an image or a volume.
#include <array>
#include <cmath>

#include "runtime/ops/elementwise.h"
#include "runtime/ops/formula.h"

namespace kiln::ops {
namespace {

using kernel::Core;

// ---- windows of a size that attributes tell

struct Window {
  std::vector<int64_t> kernel, stride, padding, dilation;
  bool ceil_mode, counts_padding;
  explicit Window(const AttrMap &attrs)
      : kernel(list(attrs, "kernel")),
        stride(list(attrs, "stride")),
        padding(list(attrs, "padding")),
        dilation(list(attrs, "dilation")),
        ceil_mode(attrs.find("ceil_mode")->second.boolean()),
        counts_padding(true) {
    if (stride.empty()) stride = kernel;
    if (dilation.empty()) dilation.assign(kernel.size(), 1);
    if (const auto counts = attrs.find("count_include_pad"); counts != attrs.end())
      counts_padding = counts->second.boolean();
  }
  int64_t extent(size_t d) const { return dilation[d] * (kernel[d] - 1) + 1; }
  double size() const {
    double size = 1;
    for (const int64_t k : kernel) size *= static_cast<double>(k);
    return size;
  }
  // Whether each window has the same divisor.
  bool is_uniform() const {
    const bool none = std::ranges::all_of(padding, [](int64_t p) { return p == 0; });
    return !ceil_mode && (counts_padding || none);
  }

 private:
  static std::vector<int64_t> list(const AttrMap &attrs, std::string_view name) {
    const auto at = attrs.find(name);
    return at == attrs.end() || at->second.size() == 0 ? std::vector<int64_t>() : at->second.i64_list();
  }
};

template <size_t n>
Status infer_pool(InferContext &c) {
  const TensorType &x = c.inputs[0];
  KILN_TRY(require_rank(c, 0, 2 + n));
  KILN_TRY(require_integers(c, "kernel", n, 1));
  KILN_TRY(require_integers(c, "padding", n, 0));
  for (const char *name : {"stride", "dilation"})
    if (const auto at = c.attrs.find(name); at != c.attrs.end() && at->second.size())
      KILN_TRY(require_integers(c, name, n, 1));
  const Window window(c.attrs);
  Shape shape = x.dims;
  for (size_t d = 0; d < n; ++d) {
    if (window.padding[d] > window.kernel[d] / 2)
      return c.fail("padding ", window.padding[d], " is more than half the kernel's ", window.kernel[d]);
    const Dim &size = x.dims[2 + d];
    KILN_ASSIGN(Dim count,
                window_count(c, size, window.extent(d), window.stride[d], window.padding[d], str_cat("x dim ", 2 + d)));
    // Rounded up, as long as the last window begins in x or in the padding before it.
    if (window.ceil_mode) {
      const Dim rest = size + window.padding[d] * 2 - window.extent(d);
      count = min(ceil_div(rest, window.stride[d]), floor_div(size + window.padding[d] - 1, window.stride[d])) + 1;
    }
    shape[2 + d] = std::move(count);
  }
  c.results = {make_type(x.dtype, std::move(shape))};
  return {};
}

// The element of the window at new reduce axes; `fill` in the padding.
int load_window(LowerContext &c, double fill) {
  const Window window(c.attrs);
  std::vector<Expr> index = c.axes();
  int valid = -1;
  for (size_t d = 0; d < window.kernel.size(); ++d) {
    Expr &at = index[2 + d];
    at = at * window.stride[d] + c.reduce_axis(window.kernel[d]) * window.dilation[d] - window.padding[d];
    if (window.padding[d] > 0 || window.ceil_mode)
      valid = both(c.body, valid, inside(c.body, at, c.inputs[0].dims[2 + d]));
  }
  return c.load(0, std::move(index), valid, kernel::immediate_of(c.result.dtype, fill));
}

Status lower_max_pool(LowerContext &c) {
  c.compute.carriers = kernel::carriers_of(Core::max, c.result.dtype);
  c.body.yield(load_window(c, -infinity));
  return {};
}

// How many elements of dim d the window at `at` counts, of expressions and of integers.
template <class N>
N counted(const Window &window, size_t d, const N &at, const N &size) {
  using std::max, std::min;
  const N begin = at * window.stride[d] - window.padding[d];
  const N end = min(begin + window.kernel[d], size + window.padding[d]);
  return window.counts_padding ? end - begin : min(end, size) - max(begin, N(0));
}

Status lower_avg_pool(LowerContext &c) {
  c.compute.carriers = kernel::carriers_of(Core::add, c.result.dtype);
  const Window window(c.attrs);
  const Term x(c.body, load_window(c, 0));
  if (window.is_uniform()) return c.body.yield((x * (1 / window.size())).value()), Status();
  Expr count = 1;
  for (size_t d = 0; d < window.kernel.size(); ++d)
    count = count * counted(window, d, c.axis(2 + d), c.inputs[0].dims[2 + d]);
  c.body.yield((x / Term(c.body, c.body.index(std::move(count))).as(c.result.dtype)).value());
  return {};
}

// ---- windows that divide x into as many parts as the result has elements

template <size_t n>
Status infer_adaptive(InferContext &c) {
  KILN_TRY(require_rank(c, 0, 2 + n));
  KILN_TRY(require_integers(c, "size", n, 1));
  Shape shape = c.inputs[0].dims;
  for (size_t d = 0; d < n; ++d) {
    KILN_TRY(require_at_most(c, 1, shape[2 + d], str_cat("at least one element along x dim ", 2 + d)));
    shape[2 + d] = c.attr("size").i64_list()[d];
  }
  c.results = {make_type(c.inputs[0].dtype, std::move(shape))};
  return {};
}

// Of integers, as of expressions.
int64_t floor_div(int64_t a, int64_t b) { return a / b; }
int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Part i of `parts` of `size` elements: from floor(i size / parts) to ceil((i + 1) size / parts).
template <class N>
std::array<N, 2> part_of(const N &i, const N &size, int64_t parts) {
  return {floor_div(i * size, N(parts)), ceil_div((i + 1) * size, N(parts))};
}

template <Core combine>
Status lower_adaptive(LowerContext &c) {
  c.compute.carriers = kernel::carriers_of(combine, c.result.dtype);
  const std::vector<int64_t> &parts = c.attr("size").i64_list();
  std::vector<Expr> index = c.axes();
  int valid = -1;
  Expr count = 1;
  for (size_t d = 0; d < parts.size(); ++d) {
    const Expr &size = c.inputs[0].dims[2 + d];
    const auto [begin, end] = part_of(c.axis(2 + d), size, parts[d]);
    const bool is_even = mod(size, parts[d]).is(0);
    index[2 + d] = begin + c.reduce_axis(is_even ? floor_div(size, parts[d]) : ceil_div(size, parts[d]) + 1);
    count = count * (end - begin);
    if (!is_even) valid = both(c.body, valid, c.body.op(Core::lt, c.body.index(index[2 + d]), c.body.index(end)));
  }
  const double fill = combine == Core::add ? 0 : -infinity;
  const Term x(c.body, c.load(0, std::move(index), valid, kernel::immediate_of(c.result.dtype, fill)));
  if (combine == Core::max) return c.body.yield(x.value()), Status();
  c.body.yield((x / Term(c.body, c.body.index(std::move(count))).as(c.result.dtype)).value());
  return {};
}

// ---- reference kernels

// Of each result element: `at` calls its argument with all elements of x that its window holds, and gives the divisor
// of their sum.
template <bool is_mean, class At>
Status reference_windows(ReferenceContext &c, At at) {
  const RefTensor &x = *c.inputs[0];
  RefTensor &y = c.results[0];
  const std::vector<int64_t> strides = dense_strides(x.shape), places = dense_strides(y.shape);
  return dispatch_wide(x, [&](auto zero, auto wide) -> Status {
    using T = decltype(zero);
    using Wide = decltype(wide);
    for (int64_t k = 0; k < y.size(); ++k) {
      std::vector<int64_t> index;
      for (size_t d = 0; d < y.shape.size(); ++d) index.push_back(k / places[d] % y.shape[d]);
      Wide total = is_mean                 ? Wide(0)
                   : std::is_integral_v<T> ? std::numeric_limits<Wide>::lowest()
                                           : static_cast<Wide>(-infinity);
      const int64_t divisor = at(index, [&](const std::vector<int64_t> &from) {
        int64_t offset = 0;
        for (size_t d = 0; d < from.size(); ++d) offset += from[d] * strides[d];
        const Wide value = elements<T>(x)[static_cast<size_t>(offset)];
        total = is_mean ? add(total, value) : larger(total, value);
      });
      elements<T>(y)[static_cast<size_t>(k)] = static_cast<T>(is_mean ? total / static_cast<Wide>(divisor) : total);
    }
    return {};
  });
}

// All lists of numbers below `extents`.
template <class Body>
void each_offset(const std::vector<int64_t> &extents, Body body) {
  walk<1>(extents, {dense_strides(extents)}, [&](auto at) {
    const std::vector<int64_t> strides = dense_strides(extents);
    std::vector<int64_t> offset;
    for (size_t d = 0; d < extents.size(); ++d) offset.push_back(at[0] / strides[d] % extents[d]);
    body(offset);
  });
}

template <bool is_mean>
Status reference_pool(ReferenceContext &c) {
  const Window window(c.attrs);
  const std::vector<int64_t> &shape = c.inputs[0]->shape;
  return reference_windows<is_mean>(c, [&](const std::vector<int64_t> &index, auto take) {
    int64_t divisor = 1;
    for (size_t d = 0; d < window.kernel.size(); ++d) divisor *= counted(window, d, index[2 + d], shape[2 + d]);
    each_offset(window.kernel, [&](const std::vector<int64_t> &offset) {
      std::vector<int64_t> from = index;
      bool is_inside = true;
      for (size_t d = 0; d < offset.size(); ++d) {
        from[2 + d] = index[2 + d] * window.stride[d] + offset[d] * window.dilation[d] - window.padding[d];
        is_inside = is_inside && from[2 + d] >= 0 && from[2 + d] < shape[2 + d];
      }
      if (is_inside) take(from);
    });
    return divisor;
  });
}

template <bool is_mean>
Status reference_adaptive(ReferenceContext &c) {
  const std::vector<int64_t> &shape = c.inputs[0]->shape, &parts = c.attr("size").i64_list();
  return reference_windows<is_mean>(c, [&](const std::vector<int64_t> &index, auto take) {
    std::vector<int64_t> begin, extents;
    int64_t divisor = 1;
    for (size_t d = 0; d < parts.size(); ++d) {
      const auto [first, last] = part_of(index[2 + d], shape[2 + d], parts[d]);
      begin.push_back(first);
      extents.push_back(last - first);
      divisor *= extents.back();
    }
    each_offset(extents, [&](const std::vector<int64_t> &offset) {
      std::vector<int64_t> from = index;
      for (size_t d = 0; d < offset.size(); ++d) from[2 + d] = begin[d] + offset[d];
      take(from);
    });
    return divisor;
  });
}

// ---- samples

void samples_pool2d(SampleSink &out) {
  const Dim n = sym("n"), h = sym("h"), w = sym("w");
  auto sample = [&](const char *name, Shape x, std::vector<int64_t> kernel, std::vector<int64_t> stride,
                    std::vector<int64_t> padding, std::map<std::string, int64_t> sizes = {}) {
    out.push_back({.name = name,
                   .inputs = {f32(std::move(x))},
                   .attrs = {{"kernel", ints(std::move(kernel))},
                             {"stride", ints(std::move(stride))},
                             {"padding", ints(std::move(padding))}},
                   .sizes = std::move(sizes)});
  };
  sample("halved", {2, 3, 8, 8}, {2, 2}, {}, {0, 0});
  sample("leftover", {1, 3, 7, 9}, {2, 2}, {}, {0, 0});
  sample("overlapping", {2, 5, 9, 17}, {3, 3}, {1, 2}, {1, 1});
  sample("wide", {1, 2, 6, 33}, {1, 5}, {1, 1}, {0, 2});
  sample("whole_image", {3, 17, 4, 4}, {4, 4}, {}, {0, 0});
  sample("one", {1, 1, 1, 1}, {1, 1}, {}, {0, 0});
  sample("no_images", {0, 3, 4, 4}, {2, 2}, {}, {0, 0});
  sample("symbolic", {n, 3, h, w}, {2, 2}, {2, 2}, {1, 1}, {{"n", 2}, {"h", 7}, {"w", 8}});
}

// With the attributes that rounding up brings in, and `more`.
void samples_rounded_up(SampleSink &out, Shape x, size_t n, const AttrMap &more) {
  const auto sample = [&](const char *name, int64_t kernel, int64_t stride, int64_t padding) {
    AttrMap attrs = more;
    attrs.insert_or_assign("kernel", ints(std::vector<int64_t>(n, kernel)));
    attrs.insert_or_assign("stride", ints(std::vector<int64_t>(n, stride)));
    attrs.insert_or_assign("padding", ints(std::vector<int64_t>(n, padding)));
    attrs.insert_or_assign("ceil_mode", true);
    out.push_back(sample_of(name, x, std::move(attrs), {}));
  };
  sample("rounded_up", 2, 2, 0);
  sample("rounded_up_with_padding", 3, 2, 1);
  sample("rounded_up_but_not_beyond", 2, 3, 1);
}

// [1 or 2, 2 or 3, size, size + 1, ...], with fewer planes of more dims.
template <size_t n>
Shape shape_of(int64_t size) {
  Shape shape = {n == 3 ? 1 : 2, n == 3 ? 2 : 3};
  for (size_t d = 0; d < n; ++d) shape.push_back(size + static_cast<int64_t>(n == 3 ? d / 2 : d));
  return shape;
}

// [n, 2, w, 5, ...]
template <size_t n>
Sample symbolic_sample(AttrMap attrs) {
  Shape shape = {sym("n"), 2, sym("w")};
  for (size_t d = 1; d < n; ++d) shape.push_back(5);
  return sample_of("symbolic_sizes", std::move(shape), std::move(attrs), {{"n", 2}, {"w", 8}});
}

template <size_t n>
void samples_max_pool(SampleSink &out) {
  const auto each = [](int64_t value) { return ints(std::vector<int64_t>(n, value)); };
  if (n == 2) {
    samples_pool2d(out);
    out.push_back(
        {.name = "edges",
         .inputs = {f32({1, 1, 2, 4})},
         .attrs = {{"kernel", ints({2, 2})}},
         .given = {{0, f32_data({1, 1, 2, 4}, {-INFINITY, -INFINITY, 1.f, NAN, -INFINITY, -INFINITY, 2.f, 3.f})}}});
  }
  out.push_back(sample_of("plain", shape_of<n>(7), {{"kernel", each(2)}}, {}));
  out.push_back(
      sample_of("padded", shape_of<n>(6), {{"kernel", each(3)}, {"stride", each(1)}, {"padding", each(1)}}, {}));
  out.push_back(
      sample_of("dilated", shape_of<n>(9), {{"kernel", each(3)}, {"stride", each(1)}, {"dilation", each(2)}}, {}));
  samples_rounded_up(out, shape_of<n>(7), n, {});
  out.push_back(symbolic_sample<n>({{"kernel", each(3)}, {"stride", each(2)}, {"ceil_mode", true}}));
}

template <size_t n>
void samples_avg_pool(SampleSink &out) {
  const auto each = [](int64_t value) { return ints(std::vector<int64_t>(n, value)); };
  if (n == 2) samples_pool2d(out);
  out.push_back(symbolic_sample<n>({{"kernel", each(3)}, {"stride", each(2)}, {"ceil_mode", true}}));
  out.push_back(sample_of("plain", shape_of<n>(7), {{"kernel", each(2)}}, {}));
  out.push_back(
      sample_of("padded", shape_of<n>(6), {{"kernel", each(3)}, {"stride", each(1)}, {"padding", each(1)}}, {}));
  out.push_back(
      sample_of("of_what_is_there", shape_of<n>(6),
                {{"kernel", each(3)}, {"stride", each(1)}, {"padding", each(1)}, {"count_include_pad", false}}, {}));
  samples_rounded_up(out, shape_of<n>(7), n, {});
  const size_t counting = out.size();
  samples_rounded_up(out, shape_of<n>(7), n, {{"count_include_pad", false}});
  for (size_t k = counting; k < out.size(); ++k) out[k].name += "_of_what_is_there";
}

template <size_t n>
void samples_adaptive(SampleSink &out) {
  const auto each = [](int64_t value) { return ints(std::vector<int64_t>(n, value)); };
  out.push_back(sample_of("uneven", shape_of<n>(7), {{"size", each(3)}}, {}));
  out.push_back(sample_of("even", Shape(2 + n, 6), {{"size", each(3)}}, {}));
  out.push_back(sample_of("to_one", shape_of<n>(5), {{"size", each(1)}}, {}));
  out.push_back(sample_of("to_more", shape_of<n>(3), {{"size", each(5)}}, {}));
  out.push_back(symbolic_sample<n>({{"size", each(2)}}));
}

// ---- records

Op pool(std::string_view name, std::string_view doc, DTypes types, size_t n, Status (*infer)(InferContext &),
        AttrDef last, OpMeaning meaning) {
  Op op = unary(name, doc, types, meaning,
                {list("kernel", "the window's sizes"),
                 list("stride", "steps along each dim; none: the kernel", std::vector<int64_t>()),
                 list("padding", "at both ends of each dim, at most half the kernel", std::vector<int64_t>(n, 0)),
                 {.name = "ceil_mode",
                  .doc = "also windows that reach beyond the padding, if they begin before it",
                  .kind = AttrKind::boolean,
                  .fallback = false},
                 std::move(last)});
  op.args[0].doc = n == 1 ? "[N, C, W]" : n == 2 ? "[N, C, H, W]" : "[N, C, D, H, W]";
  op.infer = infer;
  return op;
}
template <size_t n>
Op max_pool(std::string_view name) {
  return pool(name, "The largest element of each window, NaN if one is; padding is never the largest.", numeric_types,
              n, infer_pool<n>,
              list("dilation", "steps between the window's elements; none: 1", std::vector<int64_t>()),
              {.lower = lower_max_pool, .reference = reference_pool<false>, .samples = samples_max_pool<n>});
}
template <size_t n>
Op avg_pool(std::string_view name) {
  return pool(
      name, "The mean of each window; what is beyond the padding never counts.", float_types, n, infer_pool<n>,
      {.name = "count_include_pad", .doc = "padding counts, as zeros", .kind = AttrKind::boolean, .fallback = true},
      {.lower = lower_avg_pool, .reference = reference_pool<true>, .samples = samples_avg_pool<n>});
}
template <size_t n, bool is_mean>
Op adaptive(std::string_view name) {
  Op op = unary(
      name,
      is_mean ? "The means of as many parts as `size` tells, which overlap where they do not divide x."
              : "The largest elements of as many parts as `size` tells, which overlap where they do not divide x.",
      is_mean ? float_types : numeric_types,
      {.lower = lower_adaptive < is_mean ? Core::add : Core::max >
       , .reference = reference_adaptive<is_mean>, .samples = samples_adaptive<n>},
      {list("size", "of the result")});
  op.args[0].doc = n == 1 ? "[N, C, W]" : n == 2 ? "[N, C, H, W]" : "[N, C, D, H, W]";
  op.infer = infer_adaptive<n>;
  return op;
}

const Op records[] = {
    max_pool<1>("max_pool1d"),
    max_pool<2>("max_pool2d"),
    max_pool<3>("max_pool3d"),
    avg_pool<1>("avg_pool1d"),
    avg_pool<2>("avg_pool2d"),
    avg_pool<3>("avg_pool3d"),
    adaptive<1, true>("adaptive_avg_pool1d"),
    adaptive<2, true>("adaptive_avg_pool2d"),
    adaptive<3, true>("adaptive_avg_pool3d"),
    adaptive<1, false>("adaptive_max_pool1d"),
    adaptive<2, false>("adaptive_max_pool2d"),
    adaptive<3, false>("adaptive_max_pool3d"),
};

}  // namespace

std::span<const Op> pool_ops() { return records; }

}  // namespace kiln::ops
