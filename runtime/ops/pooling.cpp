#include "runtime/ops/pooling.h"

#include <cmath>

#include "runtime/ops/elementwise.h"

namespace kiln::ops {
namespace {

template <class T, class Wide>
Status fold_pools(ReferenceContext &c, Pooling pooling, const std::vector<Pooled> &pools) {
  const RefTensor &x = *c.inputs[0];
  const auto plane = static_cast<size_t>(count_of(std::span(x.shape).subspan(2)));
  const double p = pooling == Pooling::norm ? c.attr("p").f64() : 1;
  const bool is_largest = pooling == Pooling::largest || std::isinf(p);
  const Wide least = std::is_integral_v<T>         ? static_cast<Wide>(least_of(x.dtype))
                     : pooling == Pooling::largest ? static_cast<Wide>(-infinity)
                                                   : Wide(0);
  const ReadElements<T> in(x);
  const WriteElements<T> out(c.results[0]);
  const WriteElements<int64_t> places(c.results.back());  // of one that has them
  const auto result_at = [&](size_t k) {
    const Pooled &pool = pools[k % pools.size()];
    Wide total = is_largest ? least : Wide(0);
    int64_t largest = i64_max;
    for (const int64_t place : pool.places) {
      Wide value = in[k / pools.size() * plane + static_cast<size_t>(place)];
      if constexpr (std::is_floating_point_v<T>) {
        if (pooling == Pooling::norm) value = std::abs(value);
        if (pooling == Pooling::norm && !is_largest && p != 1) value = std::pow(value, static_cast<Wide>(p));
      }
      if (largest == i64_max || value > total || (is_nan(value) && !is_nan(total))) largest = place;
      total = is_largest ? larger(total, value) : add(total, value);
    }
    if constexpr (std::is_floating_point_v<T>) {
      if (pooling == Pooling::norm && !is_largest && p != 1) total = std::pow(total, 1 / static_cast<Wide>(p));
      if (pooling == Pooling::mean) total /= static_cast<Wide>(pool.divisor);
    }
    out.set(k, static_cast<T>(total));
    if (c.results.size() > 1) places.set(k, largest);
  };
  const int64_t window = pools.empty() ? 1 : static_cast<int64_t>(pools[0].places.size());
  return c.for_ranges(c.results[0].size(), window, [&](int64_t begin, int64_t end) -> Status {
    for (int64_t k = begin; k < end; ++k) result_at(static_cast<size_t>(k));
    return {};
  });
}

std::vector<int64_t> list_or_none(const AttrMap &attrs, std::string_view name) {
  const auto at = attrs.find(name);
  return at == attrs.end() || at->second.size() == 0 ? std::vector<int64_t>() : at->second.i64_list();
}

}  // namespace

PoolWindow::PoolWindow(const AttrMap &attrs)
    : kernel(list_or_none(attrs, "kernel")),
      stride(list_or_none(attrs, "stride")),
      padding(list_or_none(attrs, "padding")),
      dilation(list_or_none(attrs, "dilation")),
      ceil_mode(attrs.find("ceil_mode")->second.boolean()),
      counts_padding(true) {
  if (stride.empty()) stride = kernel;
  if (dilation.empty()) dilation.assign(kernel.size(), 1);
  if (const auto counts = attrs.find("count_include_pad"); counts != attrs.end())
    counts_padding = counts->second.boolean();
}

double PoolWindow::size() const {
  double size = 1;
  for (const int64_t k : kernel) size *= static_cast<double>(k);
  return size;
}

bool PoolWindow::is_uniform() const {
  const bool none = std::ranges::all_of(padding, [](int64_t p) { return p == 0; });
  return !ceil_mode && (counts_padding || none);
}

std::vector<AttrDef> pool_attrs(size_t n, std::initializer_list<AttrDef> more) {
  std::vector<AttrDef> attrs = {
      list("kernel", "the window's sizes"),
      list("stride", "steps along each dim; none: the kernel", std::vector<int64_t>()),
      list("padding", "at both ends of each dim, at most half the kernel", std::vector<int64_t>(n, 0)),
      flag("ceil_mode", "also windows that reach beyond the padding, by less than a stride, if they begin before it",
           false)};
  attrs.insert(attrs.end(), more);
  return attrs;
}
AttrDef pool_dilation() {
  return list("dilation", "steps between the window's elements; none: 1", std::vector<int64_t>());
}
AttrDef pool_counts_padding() { return flag("count_include_pad", "padding counts, as zeros", true); }

Result<Shape> pooled_shape(InferContext &c, Shape x) {
  const size_t n = space_of(c.op);
  KILN_TRY(require_integers(c, "kernel", n, 1));
  KILN_TRY(require_integers(c, "padding", n, 0));
  for (const char *name : {"stride", "dilation"})
    if (const auto at = c.attrs.find(name); at != c.attrs.end() && at->second.size())
      KILN_TRY(require_integers(c, name, n, 1));
  const PoolWindow window(c.attrs);
  for (size_t d = 0; d < n; ++d) {
    if (window.padding[d] > window.kernel[d] / 2)
      return c.fail("padding ", window.padding[d], " is more than half the kernel's ", window.kernel[d]);
    const Dim size = x[2 + d];
    const std::string which = str_cat("x dim ", 2 + d);
    if (!window.ceil_mode) {
      KILN_ASSIGN(x[2 + d], window_count(c, size, window.extent(d), window.stride[d],
                                         {window.padding[d], window.padding[d]}, which));
      continue;
    }
    // Rounded up, as long as the last window begins in x or in the padding before it.
    const Dim padded = size + window.padding[d] * 2;
    KILN_TRY(require_at_most(c, window.extent(d), padded + window.stride[d] - 1,
                             str_cat("kernel by dilation <= ", which, " with padding and stride - 1")));
    x[2 + d] = min(ceil_div(padded - window.extent(d), window.stride[d]),
                   floor_div(size + window.padding[d] - 1, window.stride[d])) +
               1;
  }
  return x;
}

Status reference_of_pools(ReferenceContext &c, Pooling pooling,
                          Pooled (*pooled_at)(const ReferenceContext &, const std::vector<int64_t> &at)) {
  const std::span space = std::span(c.results[0].shape).subspan(2);
  std::vector<Pooled> pools;
  for (int64_t p = 0; p < count_of(space); ++p) pools.push_back(pooled_at(c, unflatten(p, space)));
  return dispatch_wide(*c.inputs[0], [&](auto zero, auto wide) -> Status {
    return fold_pools<decltype(zero), decltype(wide)>(c, pooling, pools);
  });
}

Pooled part_at(const std::vector<int64_t> &at, const std::vector<int64_t> &size, const std::vector<int64_t> &parts) {
  std::vector<int64_t> begin, extents;
  for (size_t d = 0; d < at.size(); ++d) {
    const auto [first, last] = part_of(at[d], size[d], parts[d]);
    begin.push_back(first);
    extents.push_back(last - first);
  }
  Pooled pooled{{}, count_of(extents)};
  for (int64_t k = 0; k < pooled.divisor; ++k) {
    std::vector<int64_t> from = unflatten(k, extents);
    for (size_t d = 0; d < at.size(); ++d) from[d] += begin[d];
    pooled.places.push_back(place_in(from, size));
  }
  return pooled;
}

ValueId scattered(Composer &g, std::string_view scatter, const TensorType &values_type, const Shape &shape,
                  ValueId index, ValueId values) {
  const auto planes_of = [](const Shape &dims) {
    return Shape{dims[0], dims[1], product_of(std::span(dims).subspan(2))};
  };
  const auto flat = [&](ValueId v) { return g("reshape", {v}, {{"shape", AttrValue(planes_of(values_type.dims))}}); };
  const ValueId zeros = g.full(values_type.dtype, planes_of(shape), 0);
  const ValueId y = g(scatter, {zeros, flat(index), flat(values)}, {{"dim", 2}});
  return g("reshape", {y}, {{"shape", AttrValue(shape)}});
}

Shape planes(size_t n, int64_t size) {
  Shape shape = {n == 3 ? 1 : 2, n == 3 ? 2 : 3};
  for (size_t d = 0; d < n; ++d) shape.push_back(size + static_cast<int64_t>(n == 3 ? d / 2 : d));
  return shape;
}

Sample symbolic_sample(size_t n, AttrMap attrs) {
  Shape shape = {sym("n"), 2, sym("w")};
  for (size_t d = 1; d < n; ++d) shape.push_back(5);
  return sample_of("symbolic_sizes", std::move(shape), std::move(attrs), {{"n", 2}, {"w", 8}});
}

Op pool_record(std::string_view name, std::string_view doc, DTypes types, size_t n, std::vector<AttrDef> attrs,
               Status (*infer)(InferContext &), OpMeaning meaning) {
  Op op = unary(name, doc, types, meaning, std::move(attrs));
  op.args[0].doc = n == 0 ? "[N, C, ...]" : layout_doc(n);
  op.infer = infer;
  return op;
}

}  // namespace kiln::ops
