// Images at places that a tensor tells, from -1 to 1 along each dim.
#include <cmath>
#include <optional>

#include "runtime/ops/formula.h"
#include "runtime/ops/windows.h"

namespace kiln::ops {
namespace {

using kernel::Core;

constexpr double cubic_steepness = -0.75;  // of Keys' cubic

// ---- grid_sample

Status infer_grid_sample(InferContext &c) {
  const TensorType &x = c.inputs[0], &grid = c.inputs[1];
  KILN_TRY(require_word(c, "mode", {"linear", "nearest", "cubic"}));
  KILN_TRY(require_word(c, "padding", {"zeros", "border", "reflection"}));
  if (x.rank() != 4 && x.rank() != 5) return c.fail("x is ", x.text(), ", expected [N, C, H, W] or [N, C, D, H, W]");
  if (x.rank() == 5 && c.attr("mode").text_value() == "cubic")
    return c.fail("mode 'cubic' takes 2 dims of space, x has 3");
  KILN_TRY(require_rank(c, 1, x.rank()));
  KILN_TRY(c.require_equal(x.dims[0], grid.dims[0], "x dim 0 and grid dim 0"));
  KILN_TRY(c.require_equal(grid.dims.back(), static_cast<int64_t>(x.rank()) - 2,
                           str_cat("grid dim ", x.rank() - 1, " and the number of x's dims of space")));
  for (size_t d = 2; d < x.rank(); ++d)
    KILN_TRY(require_at_most(c, 1, x.dims[d], str_cat("at least one element along x dim ", d)));
  Shape shape = {x.dims[0], x.dims[1]};
  shape.insert(shape.end(), grid.dims.begin() + 1, grid.dims.end() - 1);
  c.results = {make_type(x.dtype, std::move(shape))};
  return {};
}

enum class Beyond { zeros, border, reflection };
Beyond beyond(const AttrMap &attrs) {
  const std::string &padding = attrs.find("padding")->second.text_value();
  return padding == "zeros" ? Beyond::zeros : padding == "border" ? Beyond::border : Beyond::reflection;
}

// One dim of x, as values of the body.
struct Along {
  Term size;
  bool aligns;
  Beyond beyond;

  // -1 to 1 as 0 to size - 1, or as -1/2 to size - 1/2. NaN is -1, and an infinity where it would be reflected.
  Term place(const Term &g) const {
    const Term known = select(beyond == Beyond::reflection ? !(abs(g) < infinity) : g != g, -1, g);
    return aligns ? (known + 1) / 2 * (size - 1) : ((known + 1) * size - 1) / 2;
  }
  // Inside x where the padding is not zeros.
  Term within(const Term &place) const {
    if (beyond == Beyond::zeros) return place;
    Term folded = place;
    if (beyond == Beyond::reflection) {
      const double low = aligns ? 0 : -0.5;
      const Term span = aligns ? size - 1 : size;
      const Term turns = floor((place - low) / (span * 2)), rest = (place - low) - turns * (span * 2);
      folded = select(span == 0, 0, span - abs(rest - span) + low);
    }
    return max(min(folded, size - 1), 0);
  }
  // What is further outside than any filter reaches is so by a few elements.
  Term near(const Term &place) const { return beyond == Beyond::reflection ? place : max(min(place, size + 3), -4); }
};

// Weights of an element and its place, a float that is an integer.
struct GridTap {
  Term place, weight;
};

Term cubic_near(const Term &u) { return ((u * (cubic_steepness + 2) - (cubic_steepness + 3)) * u) * u + 1; }
Term cubic_far(const Term &u) { return (((u - 5) * u + 8) * u - 4) * cubic_steepness; }

std::vector<GridTap> taps_of(const std::string &mode, const Along &along, const Term &g) {
  const Term place = along.place(g);
  if (mode == "nearest") return {{along.near(along.within(place)).op(Core::round), place.literal(1)}};
  const Term at = along.near(mode == "linear" ? along.within(place) : place), first = floor(at), t = at - first;
  if (mode == "linear") return {{first, 1 - t}, {first + 1, t}};
  std::vector<GridTap> taps = {{first - 1, cubic_far(t + 1)},
                               {first, cubic_near(t)},
                               {first + 1, cubic_near(1 - t)},
                               {first + 2, cubic_far(2 - t)}};
  for (GridTap &tap : taps) tap.place = along.within(tap.place).op(Core::round);
  return taps;
}

Status lower_grid_sample(LowerContext &c) {
  const size_t n = c.result.rank() - 2;
  const std::string &mode = c.attr("mode").text_value();
  std::vector<std::vector<GridTap>> taps;
  for (size_t d = 0; d < n; ++d) {
    std::vector<Expr> at = {c.axis(0)};
    for (size_t k = 0; k < n; ++k) at.push_back(c.axis(2 + k));
    at.push_back(static_cast<int64_t>(n - 1 - d));
    const Term g(c.body, c.load(1, std::move(at)));
    const Term size = Term(c.body, c.body.index(c.inputs[0].dims[2 + d])).as(g.type());
    taps.push_back(taps_of(mode, {size, c.attr("align_corners").boolean(), beyond(c.attrs)}, g));
  }
  std::vector<int64_t> counts;
  for (const std::vector<GridTap> &along : taps) counts.push_back(static_cast<int64_t>(along.size()));
  std::optional<Term> sum;
  for (int64_t k = 0; k < count_of(counts); ++k) {
    const std::vector<int64_t> which = unflatten(k, counts);
    std::vector<Expr> index = {c.axis(0), c.axis(1)};
    int valid = -1;
    std::optional<Term> weight;
    for (size_t d = 0; d < n; ++d) {
      const GridTap &tap = taps[d][static_cast<size_t>(which[d])];
      const int place = tap.place.as(DType::i64).value();
      index.push_back(Expr::value(static_cast<uint32_t>(place)));
      const int size = c.body.index(c.inputs[0].dims[2 + d]);
      valid = both(c.body, valid, c.body.op(Core::ge, place, c.body.index(0)));
      valid = both(c.body, valid, c.body.op(Core::lt, place, size));
      weight = weight ? *weight * tap.weight : tap.weight;
    }
    const Term x = Term(c.body, c.load(0, std::move(index), valid)) * *weight;
    sum = sum ? *sum + x : x;
  }
  c.body.yield(sum->value());
  return {};
}

// The same of one dim, by the definition.
struct Weighed {
  int64_t place;
  double weight;
};
double reflected(double x, double low, double high) {
  if (low == high) return 0;
  const double span = high - low, far = std::fmod(std::abs(x - low), 2 * span);
  return (far <= span ? far : 2 * span - far) + low;
}
std::vector<Weighed> weighed_near(const AttrMap &attrs, double g, int64_t count) {
  const std::string &mode = attrs.find("mode")->second.text_value();
  const bool aligns = attrs.find("align_corners")->second.boolean();
  const auto size = static_cast<double>(count);
  if (std::isnan(g) || (std::isinf(g) && beyond(attrs) == Beyond::reflection)) g = -1;
  const auto within = [&](double x) {
    const Beyond how = beyond(attrs);
    if (how == Beyond::zeros) return std::clamp(x, -4.0, size + 3);
    if (how == Beyond::reflection) x = aligns ? reflected(x, 0, size - 1) : reflected(x, -0.5, size - 0.5);
    return std::clamp(x, 0.0, size - 1);
  };
  double place = aligns ? (g + 1) / 2 * (size - 1) : ((g + 1) * size - 1) / 2;
  std::vector<std::pair<double, double>> taps;
  if (mode == "nearest") {
    taps = {{std::nearbyint(within(place)), 1}};
  } else if (mode == "linear") {
    place = within(place);
    const double first = std::floor(place), t = place - first;
    taps = {{first, 1 - t}, {first + 1, t}};
  } else {
    if (beyond(attrs) != Beyond::reflection) place = std::clamp(place, -4.0, size + 3);
    const double first = std::floor(place);
    for (const double k : {-1.0, 0.0, 1.0, 2.0}) {
      const double u = std::abs(place - first - k);
      taps.emplace_back(std::nearbyint(within(first + k)), keys_cubic(u, cubic_steepness));
    }
  }
  std::vector<Weighed> all;
  for (const auto &[at, weight] : taps) all.push_back({static_cast<int64_t>(at), weight});
  return all;
}

Status reference_grid_sample(ReferenceContext &c) {
  const RefTensor &x = *c.inputs[0];
  const std::vector<int64_t> size(x.shape.begin() + 2, x.shape.end()), shape = c.results[0].shape;
  const size_t n = size.size();
  const int64_t plane = count_of(size), places = count_of(std::span(shape).subspan(2));
  const ReadElements<double> in(x), grid(*c.inputs[1]);
  const auto sample = [&](int64_t k) {
    const int64_t image = k / places / shape[1];
    std::vector<std::vector<Weighed>> along;
    std::vector<int64_t> counts;
    for (size_t d = 0; d < n; ++d) {
      const int64_t at = (image * places + k % places) * static_cast<int64_t>(n) + static_cast<int64_t>(n - 1 - d);
      along.push_back(weighed_near(c.attrs, grid[static_cast<size_t>(at)], size[d]));
      counts.push_back(static_cast<int64_t>(along[d].size()));
    }
    long double sum = -0.0L;  // so that the sign of a zero stays
    for (int64_t j = 0; j < count_of(counts); ++j) {
      const std::vector<int64_t> which = unflatten(j, counts);
      std::vector<int64_t> from;
      double weight = 1;
      for (size_t d = 0; d < n; ++d) {
        from.push_back(along[d][static_cast<size_t>(which[d])].place);
        weight *= along[d][static_cast<size_t>(which[d])].weight;
      }
      const int64_t place = place_in(from, size);
      sum += weight * (place < 0 ? 0 : in[static_cast<size_t>(k / places * plane + place)]);
    }
    return sum;
  };
  return make_each<double>(c, sample, 64);
}

// ---- affine_grid

Status infer_affine_grid(InferContext &c) {
  const TensorType &theta = c.inputs[0];
  const Shape &size = c.attr("size").dim_list();
  const auto n = static_cast<int64_t>(size.size());
  if (n != 2 && n != 3) return c.fail("size has ", n, " values, expected 2 or 3");
  KILN_TRY(require_rank(c, 0, 3));
  KILN_TRY(c.require_equal(theta.dims[1], n, "theta dim 1 and the number of sizes"));
  KILN_TRY(c.require_equal(theta.dims[2], n + 1, "theta dim 2 and the number of sizes and 1"));
  KILN_TRY(require_shape(c, size, "size"));
  Shape shape = {theta.dims[0]};
  shape.insert(shape.end(), size.begin(), size.end());
  shape.push_back(n);
  c.results = {make_type(theta.dtype, std::move(shape))};
  return {};
}

Status lower_affine_grid(LowerContext &c) {
  const size_t n = c.result.rank() - 2;
  const auto theta = [&](size_t column) {
    return Term(c.body, c.load(0, {c.axis(0), c.axis(1 + n), static_cast<int64_t>(column)}));
  };
  Term sum = theta(n);
  for (size_t j = 0; j < n; ++j) {  // x goes along the last dim
    const size_t d = n - j;
    const Dim &size = c.result.dims[d];
    const auto number = [&](Expr e) { return Term(c.body, c.body.index(std::move(e))).as(c.result.dtype); };
    const Term at = c.attr("align_corners").boolean()
                        ? number(c.axis(d) * 2 - max(size - 1, 0)) / number(max(size - 1, 1))
                        : number(c.axis(d) * 2 + 1 - size) / number(max(size, 1));
    sum = theta(j) * at + sum;
  }
  c.body.yield(sum.value());
  return {};
}

Status reference_affine_grid(ReferenceContext &c) {
  const RefTensor &y = c.results[0];
  const auto n = static_cast<int64_t>(y.shape.size()) - 2;
  const ReadElements<double> theta(*c.inputs[0]);
  const auto place = [&](int64_t k) {
    const std::vector<int64_t> at = unflatten(k, y.shape);
    const auto row = [&](int64_t j) { return theta[static_cast<size_t>((at[0] * n + at.back()) * (n + 1) + j)]; };
    long double sum = row(n);
    for (int64_t j = 0; j < n; ++j) {
      const auto d = static_cast<size_t>(n - j);
      const auto o = static_cast<long double>(at[d]), size = static_cast<long double>(y.shape[d]);
      if (!c.attr("align_corners").boolean())
        sum += row(j) * ((2 * o + 1) / size - 1);
      else
        sum += row(j) * (size > 1 ? 2 * o / (size - 1) - 1 : 0);
    }
    return sum;
  };
  return make_each<double>(c, place, 8);
}

// ---- samples

void samples_grid_sample(SampleSink &out) {
  const auto sample = [&](std::string name, Shape x, Shape grid, const char *mode, const char *padding, bool aligns,
                          std::map<std::string, int64_t> sizes = {}) {
    out.push_back({.name = std::move(name),
                   .inputs = {f32(std::move(x)), f32(std::move(grid))},
                   .attrs = {{"mode", mode}, {"padding", padding}, {"align_corners", aligns}},
                   .sizes = std::move(sizes)});
  };
  for (const char *mode : {"linear", "nearest", "cubic"})
    for (const char *padding : {"zeros", "border", "reflection"})
      for (const bool aligns : {false, true})
        sample(str_cat(mode, "_", padding, aligns ? "_aligned" : ""), {1, 2, 5, 9}, {1, 3, 4, 2}, mode, padding,
               aligns);
  sample("volume", {1, 2, 3, 5, 4}, {1, 2, 2, 3, 3}, "linear", "zeros", false);
  sample("nearest_volume", {1, 2, 3, 5, 4}, {1, 2, 2, 3, 3}, "nearest", "border", true);
  sample("one_pixel", {2, 1, 1, 1}, {2, 2, 3, 2}, "linear", "reflection", true);
  sample("no_places", {1, 2, 3, 3}, {1, 0, 4, 2}, "linear", "zeros", false);
  sample("symbolic", {sym("n"), 2, sym("h"), 5}, {sym("n"), sym("o"), 3, 2}, "linear", "border", false,
         {{"n", 2}, {"h", 3}, {"o", 4}});
  sample("edges", {1, 1, 2, 2}, {1, 2, 2, 2}, "linear", "zeros", false);
  out.back().given = {{1, f32_data({1, 2, 2, 2}, {NAN, 0.25f, INFINITY, 0.f, -1e30f, 0.5f, 0.5f, -0.5f})}};
}

void samples_affine_grid(SampleSink &out) {
  const auto sample = [&](const char *name, Shape theta, Shape size, bool aligns,
                          std::map<std::string, int64_t> sizes = {}) {
    out.push_back(sample_of(name, std::move(theta), {{"size", AttrValue(std::move(size))}, {"align_corners", aligns}},
                            std::move(sizes)));
  };
  sample("image", {2, 2, 3}, {4, 5}, false);
  sample("aligned", {2, 2, 3}, {4, 5}, true);
  sample("volume", {1, 3, 4}, {2, 3, 4}, false);
  sample("aligned_volume", {1, 3, 4}, {2, 1, 3}, true);
  sample("one", {1, 2, 3}, {1, 1}, true);
  sample("symbolic", {sym("n"), 2, 3}, {sym("n"), 3}, false, {{"n", 2}});
}

const AttrDef aligns =
    flag("align_corners", "-1 and 1 are the middles of the outermost elements, else their outer edges", false);

const Op grid_records[] = {
    {{.name = "grid_sample",
      .doc =
          "x at the places that grid tells: -1 and 1 are the ends of each dim, the last dim's place comes first; NaN "
          "is -1, and so are infinities that would be reflected; with padding 'zeros' infinities give 0. PyTorch has "
          "NaN for most of these. Its bilinear is linear, its bicubic cubic.",
      .args = {{"x", "[N, C, H, W] or [N, C, D, H, W]", float_types},
               {"grid", "[N, OH, OW, 2] or [N, OD, OH, OW, 3]", float_types}},
      .result_names = {"y"},
      .attrs = {{.name = "mode",
                 .doc = "'linear' between elements; 'nearest', of halves the even one; 'cubic', Keys' with a = -0.75",
                 .kind = AttrKind::text,
                 .fallback = "linear"},
                {.name = "padding",
                 .doc = "what lies around x: 'zeros'; 'border', its outermost elements; 'reflection', x again",
                 .kind = AttrKind::text,
                 .fallback = "zeros"},
                aligns},
      .infer = infer_grid_sample},
     {.lower = lower_grid_sample,
      .reference = reference_grid_sample,
      .gradient = by_rule("x, grid"),
      .samples = samples_grid_sample}},

    {{.name = "affine_grid",
      .doc = "[N, size, n]: the places in x that theta makes of those in the result, for grid_sample.",
      .args = {{"theta", "[N, n, n + 1]", float_types}},
      .result_names = {"y"},
      .attrs = {list("size", "of the result's dims of space, n = 2 or 3", AttrKind::dim), aligns},
      .infer = infer_affine_grid},
     {.lower = lower_affine_grid,
      .reference = reference_affine_grid,
      .gradient = by_rule("theta"),
      .samples = samples_affine_grid}},
};

}  // namespace

std::span<const Op> grid_ops() { return grid_records; }

}  // namespace kiln::ops
