#include "runtime/ops/resizing.h"

#include <cmath>

#include "runtime/ops/sample_shapes.h"

namespace kiln::ops {
namespace {

const std::vector<double> &reals_of(const AttrValue &list) { return std::get<std::vector<double>>(list.items); }

// Keys' cubic: 1 at 0, 0 at the other integers, and from 2 on.
constexpr double steepness(bool antialias) { return antialias ? -0.5 : -0.75; }

// The weights of elements at distances `u` >= 0.
ValueId filtered(Composer &g, ValueId u, bool cubic, double a) {
  const auto n = [&](double value) { return g.number(u, value); };
  if (!cubic) return g("maximum", {g("sub", {n(1), u}), n(0)});
  const auto times = [&](ValueId x, ValueId y) { return g("mul", {x, y}); };
  const auto plus = [&](ValueId x, double y) { return g("add", {x, n(y)}); };
  const ValueId near = plus(times(times(plus(times(u, n(a + 2)), -a - 3), u), u), 1);
  const ValueId far = times(plus(times(plus(times(plus(u, -5), u), 8), u), -4), n(a));
  return g("where", {g("le", {u, n(1)}), near, g("where", {g("lt", {u, n(2)}), far, n(0)})});
}
double filtered(double u, bool cubic, double a) { return cubic ? keys_cubic(u, a) : std::max(1 - u, 0.0); }

// Of a place along dim d: the elements with a weight that is not 0.
Terms weighed_at(const AttrMap &attrs, size_t d, bool cubic, int64_t at, int64_t in, int64_t out) {
  const auto is = [&](const char *name) { return attrs.find(name)->second.boolean(); };
  const double scale = resize_scale(attrs, d);
  double step = scale != 0 ? 1 / scale : static_cast<double>(in) / static_cast<double>(out);
  double place = (static_cast<double>(at) + 0.5) * step - 0.5;
  if (is("align_corners")) {
    step = out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0;
    place = static_cast<double>(at) * step;
  } else if (!is("half_pixel")) {
    place = static_cast<double>(at) * step;
  }
  if (!resizes(attrs, d, in, out)) place = static_cast<double>(at);
  const bool antialias = is("antialias");
  const double width = antialias ? std::max(step, 1.0) : 1, reach = width * (cubic ? 2 : 1);
  Terms all;
  double sum = 0;
  for (auto k = static_cast<int64_t>(std::floor(place - reach)) + 1; static_cast<double>(k) < place + reach; ++k) {
    if (antialias && (k < 0 || k >= in)) continue;
    const double weight = filtered(std::abs(static_cast<double>(k) - place) / width, cubic, steepness(antialias));
    sum += weight;
    if (weight != 0) all.emplace_back(std::clamp<int64_t>(k, 0, in - 1), weight);
  }
  if (antialias)
    for (auto &[k, weight] : all) weight /= sum;
  return all;
}

}  // namespace

// Places are found by it in f64, and a filter that antialiases is as wide as its reciprocal.
constexpr double least_scale = 0x1p-20;

double resize_scale(const AttrMap &attrs, size_t d) {
  const AttrValue &scale = attrs.find("scale")->second;
  return scale.size() ? reals_of(scale)[d] : 0;
}

Result<Shape> resized_shape(InferContext &c, const TensorType &x, std::string_view name) {
  if (x.rank() < 3 || x.rank() > 5)
    return c.fail(name, " is ", x.text(), ", expected [N, C, ...], with 1 to 3 dims of space");
  const size_t space = x.rank() - 2;
  const Shape &size = c.attr("size").dim_list();
  if (size.size() != space) return c.fail("size has ", size.size(), " values, expected ", space);
  if (const AttrValue &scale = c.attr("scale"); scale.size() != 0) {
    if (scale.size() != space) return c.fail("scale has ", scale.size(), " values, expected none or ", space);
    for (const double s : reals_of(scale))
      if (!(s >= least_scale && s <= 1 / least_scale))
        return c.fail("scale holds ", s, ", expected ", least_scale, " to ", 1 / least_scale);
  }
  Shape shape = x.dims;
  for (size_t d = 2; d < shape.size(); ++d) {
    KILN_TRY(require_at_most(c, 1, shape[d], str_cat("at least one element along ", name, " dim ", d)));
    KILN_TRY(require_at_most(c, 1, size[d - 2], str_cat("1 <= size ", d - 2)));
    shape[d] = size[d - 2];
  }
  return shape;
}

Status require_filter(const InferContext &c) {
  const bool aligns = c.attr("align_corners").boolean(), half = c.attr("half_pixel").boolean();
  if (c.attr("antialias").boolean() && (aligns || !half))
    return c.fail("antialias goes with half_pixel and without align_corners");
  return {};
}

bool resizes(const AttrMap &attrs, size_t d, const Dim &from, const Dim &to) {
  const double scale = resize_scale(attrs, d);
  return !(from == to && (scale == 0 || scale == 1));
}

ResizeTable resize_table(DecomposeContext &c, Composer &g, size_t d, const Dim &from, const Dim &to, DType dtype) {
  const bool aligns = c.attr("align_corners").boolean(), half = c.attr("half_pixel").boolean();
  const bool cubic = is_cubic(c.op), antialias = c.attr("antialias").boolean();
  const int64_t support = cubic ? 2 : 1;
  const double scale = resize_scale(c.node.attrs, d);
  const auto iota = [&](Shape shape, int64_t dim) {
    return g("iota", {}, {{"shape", std::move(shape)}, {"dim", dim}, {"dtype", DType::f64}});
  };
  ValueId place = iota({to, 1}, 0);
  const auto n = [&](double value) { return g.number(place, value); };
  const auto count = [&](const Dim &value) { return g.count(place, value); };

  // In x's elements: how far the result's are apart, and where they are.
  const ValueId step = aligns       ? g("div", {count(from - 1), count(max(to - 1, 1))})
                       : scale != 0 ? n(1 / scale)
                                    : g("div", {count(from), count(to)});
  if (half && !aligns)
    place = g("sub", {g("mul", {g("add", {place, n(0.5)}), step}), n(0.5)});
  else
    place = g("mul", {place, step});
  const ValueId width = antialias ? g("maximum", {step, n(1)}) : n(1);
  const Dim wide = !antialias   ? Dim(1)
                   : scale != 0 ? Dim(std::max<int64_t>(1, static_cast<int64_t>(std::ceil(1 / scale))))
                                : max(ceil_div(from, to), 1);

  // The elements that are nearer than the filter reaches, and their weights.
  const ValueId reach = g("mul", {width, n(static_cast<double>(support))});
  const ValueId first = g("add", {g("floor", {g("sub", {place, reach})}), n(1)});
  const ValueId index = g("add", {first, iota({1, wide * (2 * support)}, 1)}), last = count(from - 1);
  const ValueId clamped = g("minimum", {g("maximum", {index, n(0)}), last});
  const ValueId distance = g("div", {g("abs", {g("sub", {index, place})}), width});
  ValueId weights = filtered(g, distance, cubic, steepness(antialias));
  if (antialias) {
    weights = g("where", {g("eq", {index, clamped}), weights, n(0)});
    weights = g("div", {weights, g("sum", {weights}, {{"dims", ints({1})}, {"keepdim", true}})});
  }
  return {g.convert(weights, dtype), g.convert(clamped, DType::i64)};
}

int64_t nearest_at(const AttrMap &attrs, size_t d, int64_t at, int64_t from, int64_t to) {
  const int64_t twice = 2 * at + (attrs.find("half_pixel")->second.boolean() ? 1 : 0);
  const double scale = resize_scale(attrs, d);
  if (scale == 0) return twice * from / (2 * to);
  return std::min(static_cast<int64_t>(static_cast<double>(twice) / (2 * scale)), from - 1);
}

ResizeTerms::ResizeTerms(const AttrMap &attrs, bool cubic, const std::vector<int64_t> &from,
                         const std::vector<int64_t> &to)
    : to_(to), strides_(dense_strides(from)), places_(dense_strides(to)), along_(to.size()) {
  for (size_t d = 0; d < to.size(); ++d)
    for (int64_t at = 0; at < to[d]; ++at)
      along_[d].push_back(d < 2 ? Terms{{at, 1}} : weighed_at(attrs, d - 2, cubic, at, from[d], to[d]));
}

std::vector<std::pair<size_t, long double>> ResizeTerms::at(int64_t k) const {
  std::vector<std::pair<size_t, long double>> terms = {{0, 1}};
  for (size_t d = 0; d < to_.size(); ++d) {
    std::vector<std::pair<size_t, long double>> more;
    for (const auto &[number, weight] : terms)
      for (const auto &[place, factor] : along_[d][static_cast<size_t>(k / places_[d] % to_[d])])
        more.emplace_back(number + static_cast<size_t>(place * strides_[d]), weight * factor);
    terms = std::move(more);
  }
  return terms;
}

std::vector<AttrDef> resize_attrs(std::string_view size_doc, std::vector<AttrDef> more) {
  std::vector<AttrDef> attrs = {
      list("size", size_doc, AttrKind::dim),
      {.name = "scale",
       .doc = "sizes of the result over those of x, by which places are found, 2^-20 to 2^20; none: as the sizes are",
       .kind = AttrKind::f64,
       .is_list = true,
       .fallback = AttrValue(std::vector<double>())}};
  attrs.insert(attrs.end(), more.begin(), more.end());
  return attrs;
}
AttrDef half_pixel_attr(std::string_view doc, bool fallback) { return flag("half_pixel", doc, fallback); }
std::vector<AttrDef> filter_attrs() {
  return {flag("align_corners", "the first and last elements of x and the result are at the same places", false),
          half_pixel_attr("elements are at the middle of their share of the image, else at its begin", true),
          flag("antialias",
               "where the result is smaller, the filter is as much wider; with half_pixel and without align_corners "
               "alone, which PyTorch takes as well",
               false)};
}

void add_resize_samples(SampleSink &out, std::vector<ResizeSample> all) {
  for (ResizeSample &each : all) {
    each.attrs.insert_or_assign("size", AttrValue(shape_from(each.size)));
    out.push_back(sample_of(each.name, shape_from(each.x), std::move(each.attrs), std::move(each.sizes)));
  }
}
AttrValue reals(std::vector<double> values) { return AttrValue(std::move(values)); }

}  // namespace kiln::ops
