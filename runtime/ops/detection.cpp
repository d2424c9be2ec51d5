// Boxes in images: what lies in them, and which of those that overlap stay.
#include <numeric>

#include "runtime/ops/formula.h"
#include "runtime/ops/loop.h"
#include "runtime/ops/resolving.h"

namespace kiln::ops {
namespace {

using kernel::Core;

// ---- roi_align

Status infer_roi_align(InferContext &c) {
  const TensorType &x = c.inputs[0], &boxes = c.inputs[1];
  KILN_TRY(require_rank(c, 0, 4));
  KILN_TRY(require_rank(c, 1, 2));
  const bool numbered = c.inputs.size() == 3;
  KILN_TRY(c.require_equal(
      boxes.dims[1], numbered ? 4 : 5,
      numbered ? "boxes dim 1 and the numbers of a box" : "boxes dim 1 and the numbers of an image and a box"));
  if (numbered) {
    KILN_TRY(require_rank(c, 2, 1));
    KILN_TRY(c.require_equal(c.inputs[2].dims[0], boxes.dims[0], "images dim 0 and boxes dim 0"));
  }
  const Shape &size = c.attr("size").dim_list();
  if (size.size() != 2) return c.fail("size has ", size.size(), " values, expected 2");
  KILN_TRY(require_shape(c, size, "size"));
  if (const int64_t ratio = c.attr("sampling_ratio").i64(); ratio < 1 || ratio > 1024)
    return c.fail("sampling_ratio is ", ratio, ", expected 1 to 1024");
  KILN_TRY(require_finite(c, "spatial_scale"));
  for (size_t d = 2; d < 4; ++d)
    KILN_TRY(require_at_most(c, 1, x.dims[d], str_cat("at least one element along x dim ", d)));
  c.results = {make_type(x.dtype, {boxes.dims[0], x.dims[1], size[0], size[1]})};
  return {};
}

// Along one dim the two elements between which a place lies, and how far it is from the first; nothing is read outside.
struct Between {
  Term inside, fraction, low, high;
};

Between between(LowerContext &c, size_t d, const Expr &part) {
  const DType type = c.result.dtype;
  const auto number = [&](const Expr &e) { return Term(c.body, c.body.index(e)).as(type); };
  const auto edge = [&](size_t first) {
    const size_t at = first + (d == 3 ? 0 : 1) + (c.inputs.size() == 3 ? 0 : 1);
    return Term(c.body, c.load(1, {c.axis(0), static_cast<int64_t>(at)})) * c.attr("spatial_scale").f64();
  };
  const bool aligned = c.attr("aligned").boolean();
  const Term begin = edge(0) - (aligned ? 0.5 : 0), end = edge(2) - (aligned ? 0.5 : 0);
  const Term length = aligned ? end - begin : max(end - begin, 1);
  const Term bin = length / number(c.result.dims[d]);
  const Term at = begin + number(c.axis(d)) * bin +
                  (number(part) + 0.5) * bin / static_cast<double>(c.attr("sampling_ratio").i64());
  const Term size = number(c.inputs[0].dims[d]);
  const Term inside = (at >= -1) & (at <= size), from = max(at, 0);
  const Term low = min(floor(from), size - 1);
  const Term fraction = select(low < size - 1, from - low, 0);
  return {inside, fraction, low.as(DType::i64), min(low + 1, size - 1).as(DType::i64)};
}

Status lower_roi_align(LowerContext &c) {
  const int64_t ratio = c.attr("sampling_ratio").i64();
  const Expr row = c.reduce_axis(ratio), column = c.reduce_axis(ratio);
  c.compute.carriers = kernel::carriers_of(Core::add, c.result.dtype);
  const int number = c.inputs.size() == 3 ? c.load(2, {c.axis(0)}) : c.load(1, {c.axis(0), 0});
  const Term image = Term(c.body, number).as(DType::i64);
  const Term exists(c.body, c.body.op(Core::in_range, image.value(), c.body.index(c.inputs[0].dims[0])));
  const Between y = between(c, 2, row), x = between(c, 3, column);
  const Term inside = exists & y.inside & x.inside;
  const auto element = [&](const Term &at_y, const Term &at_x) {
    const auto value = [](const Term &term) { return Expr::value(static_cast<uint32_t>(term.value())); };
    return Term(c.body, c.load(0, {value(image), c.axis(1), value(at_y), value(at_x)}, inside.value()));
  };
  const auto across = [&](const Term &at_y) {
    return element(at_y, x.low) * (1 - x.fraction) + element(at_y, x.high) * x.fraction;
  };
  const Term sum = across(y.low) * (1 - y.fraction) + across(y.high) * y.fraction;
  c.body.yield((select(inside, sum, 0) / static_cast<double>(ratio * ratio)).value());
  return {};
}

// By the definition: x, between its elements, at a place; 0 further than one element away.
double between_elements(const ReadElements<double> &elements, int64_t plane, int64_t height, int64_t width, double y,
                        double x) {
  if (!(y >= -1 && y <= static_cast<double>(height) && x >= -1 && x <= static_cast<double>(width))) return 0;
  const auto clamped = [](double at, int64_t size) { return std::clamp(at, 0.0, static_cast<double>(size - 1)); };
  y = clamped(y, height), x = clamped(x, width);
  const auto row = static_cast<int64_t>(y), column = static_cast<int64_t>(x);
  const double down = y - static_cast<double>(row), right = x - static_cast<double>(column);
  const auto at = [&](int64_t i, int64_t j) {
    return elements[static_cast<size_t>((plane * height + std::min(i, height - 1)) * width + std::min(j, width - 1))];
  };
  return (1 - down) * ((1 - right) * at(row, column) + right * at(row, column + 1)) +
         down * ((1 - right) * at(row + 1, column) + right * at(row + 1, column + 1));
}

Status reference_roi_align(ReferenceContext &c) {
  const RefTensor &x = *c.inputs[0], &boxes = *c.inputs[1];
  RefTensor &y = c.results[0];
  const int64_t channels = x.shape[1], rows = y.shape[2], columns = y.shape[3];
  const int64_t ratio = c.attr("sampling_ratio").i64(), height = x.shape[2], width = x.shape[3];
  const double scale = c.attr("spatial_scale").f64();
  const bool aligned = c.attr("aligned").boolean(), numbered = c.inputs.size() == 3;
  const ReadElements<double> in(x), numbers(boxes);
  const ReadElements<int64_t> images(*c.inputs.back());
  const WriteElements<double> out(y);
  const auto align = [&](int64_t k) -> Status {
    const int64_t box = k / (channels * rows * columns), channel = k / (rows * columns) % channels;
    const auto given = [&](size_t e) { return numbers[static_cast<size_t>(box * boxes.shape[1]) + e]; };
    const int64_t image = numbered ? images[static_cast<size_t>(box)] : to_integer(given(0), DType::i64);
    if (image < 0 || image >= x.shape[0]) return out_of_range(image, x.shape[0]);
    double edges[4];
    for (size_t e = 0; e < 4; ++e) edges[e] = given(e + (numbered ? 0 : 1)) * scale - (aligned ? 0.5 : 0);
    const auto place = [&](size_t edge, int64_t bin, int64_t bins, int64_t part) {
      double length = edges[edge + 2] - edges[edge];
      if (!aligned) length = larger(length, 1.0);
      const double parts = static_cast<double>(bin * ratio + part) + 0.5;
      return edges[edge] + length * parts / static_cast<double>(bins * ratio);
    };
    long double sum = 0;
    for (int64_t i = 0; i < ratio; ++i)
      for (int64_t j = 0; j < ratio; ++j)
        sum += between_elements(in, image * channels + channel, height, width, place(1, k / columns % rows, rows, i),
                                place(0, k % columns, columns, j));
    out.set(static_cast<size_t>(k), static_cast<double>(sum / static_cast<long double>(ratio * ratio)));
    return {};
  };
  return c.for_ranges(y.size(), 8 * ratio * ratio, [&](int64_t begin, int64_t end) -> Status {
    for (int64_t k = begin; k < end; ++k) KILN_TRY(align(k));
    return {};
  });
}

void samples_roi_align(SampleSink &out) {
  const auto sample = [&](const char *name, Shape x, Shape boxes, Shape size, AttrMap attrs,
                          const std::vector<float> &numbers, std::map<std::string, int64_t> sizes = {}) {
    attrs["size"] = AttrValue(std::move(size));
    const int64_t width = boxes[1].integer(), count = static_cast<int64_t>(numbers.size()) / width;
    out.push_back({.name = name,
                   .inputs = {f32(std::move(x)), f32(std::move(boxes))},
                   .attrs = std::move(attrs),
                   .sizes = std::move(sizes)});
    out.back().given = {{1, f32_data({count, width}, numbers)}};
  };
  const AttrMap twice = {{"sampling_ratio", 2}, {"spatial_scale", 0.5}}, once = {{"sampling_ratio", 1}};
  AttrMap aligned = twice;
  aligned["aligned"] = true;
  const std::vector<float> boxes = {0, 1, 2, 9, 7, 1, -4, -3, 5, 20, 1, 4, 4, 4.5f, 4.25f};
  sample("boxes", {2, 3, 7, 9}, {3, 5}, {2, 3}, twice, boxes);
  sample("aligned", {2, 3, 7, 9}, {3, 5}, {2, 3}, aligned, boxes);
  sample("numbered", {2, 1, 5, 5}, {2, 4}, {3, 2}, once, {0, 0, 5, 5, 1, 1, 3, 4});
  out.back().inputs.push_back(i64({2}));
  out.back().given.emplace(2, i64_data({2}, {1, 0}));
  sample("narrow_numbers", {2, 1, 5, 5}, {1, 4}, {1, 1}, {{"sampling_ratio", 3}}, {0, 0, 5, 5});
  out.back().inputs.push_back(make_type(DType::i32, {1}));
  out.back().given.emplace(2, tensor_of<int32_t>(DType::i32, {1}, {1}));
  sample("one_element", {1, 1, 1, 1}, {1, 5}, {2, 2}, once, {0, -1, -1, 2, 2});
  sample("no_boxes", {1, 2, 3, 3}, {0, 5}, {2, 2}, once, {});
  sample("edges", {1, 1, 3, 3}, {2, 5}, {2, 2}, once, {0, NAN, 0, 2, 2, 0, -INFINITY, 0, 1e30f, 2});
  sample("symbolic", {sym("b"), 2, sym("h"), 5}, {sym("n"), 5}, {2, 2}, twice, boxes, {{"b", 2}, {"h", 4}, {"n", 3}});
}

// ---- nms

Status infer_nms(InferContext &c) {
  if (const double most = c.attr("iou_threshold").f64(); !(most >= 0 && most <= 1))
    return c.fail("iou_threshold is ", most, ", expected 0 to 1");
  KILN_TRY(require_rank(c, 0, 2));
  KILN_TRY(require_rank(c, 1, 1));
  const Dim &n = c.inputs[0].dims[0];
  KILN_TRY(c.require_equal(c.inputs[0].dims[1], 4, "boxes dim 1 and the numbers of a box"));
  KILN_TRY(c.require_equal(n, c.inputs[1].dims[0], "boxes dim 0 and scores dim 0"));
  KILN_ASSIGN(const Dim count, infer_count(c, n));
  c.results = {make_type(DType::i64, {count}), make_type(DType::i64, {})};
  return {};
}

// [n, n]: whether the box overlaps another, which comes before it, by more than the threshold.
ValueId overlapped(Composer &g, ValueId boxes, double threshold, const Dim &n) {
  const auto column = [&](int64_t k) {
    const ValueId part = g("slice", {boxes}, {{"dim", 1}, {"start", Dim(k)}, {"end", Dim(k + 1)}});
    return std::pair{part, g("reshape", {part}, {{"shape", AttrValue(Shape{1, n})}})};
  };
  const auto [left, before_left] = column(0);
  const auto [top, before_top] = column(1);
  const auto [right, before_right] = column(2);
  const auto [bottom, before_bottom] = column(3);
  const auto area = [&](ValueId x0, ValueId y0, ValueId x1, ValueId y1) {
    return g("mul", {g("sub", {x1, x0}), g("sub", {y1, y0})});
  };
  const auto common = [&](ValueId a0, ValueId a1, ValueId b0, ValueId b1) {
    const ValueId length = g("sub", {g("minimum", {a1, b1}), g("maximum", {a0, b0})});
    return g("maximum", {length, g.number(length, 0)});
  };
  const ValueId shared =
      g("mul", {common(left, right, before_left, before_right), common(top, bottom, before_top, before_bottom)});
  const ValueId both =
      g("add", {area(left, top, right, bottom), area(before_left, before_top, before_right, before_bottom)});
  const ValueId part = g("div", {shared, g("sub", {both, shared})});
  const ValueId overlaps = g("gt", {part, g.number(part, threshold)});
  const auto number = [&](const Shape &shape, int64_t dim) {
    return g("iota", {}, {{"shape", AttrValue(shape)}, {"dim", dim}});
  };
  const ValueId is_before = g("lt", {number({1, n}, 1), number({n, 1}, 0)});
  return g("and", {overlaps, is_before});
}

// Which boxes are kept is the one solution of an equation: those that no kept one of before overlaps. From all boxes
// on, each turn has at least one more of the first right, and mostly all by a few turns.
Status decompose_nms(DecomposeContext &c) {
  Composer g(c);
  ValueId boxes = c.node.inputs[0];
  const Dim n = c.type(boxes).dims[0], inner = loop_dim(n, "n");
  const double threshold = c.attr("iou_threshold").f64();
  const ValueId order = g("argsort", {c.node.inputs[1]}, {{"dim", 0}, {"descending", true}});
  boxes = g("index_select", {boxes, order}, {{"dim", 0}});
  if (is_small_float(c.type(boxes).dtype)) boxes = g.convert(boxes, DType::f32);
  constexpr int64_t many = 4096;
  const bool once = n.is_integer() && n.integer() <= many;
  const ValueId told = once ? overlapped(g, boxes, threshold, n) : boxes;
  const ValueId all = g.full(DType::boolean, {n}, 1), changed = g.full(DType::boolean, {}, 1);
  KILN_TRY(g.give({}));
  const TensorType told_type = once ? boolean({n, n}) : make_type(c.type(boxes).dtype, {inner, 4});
  const std::vector<TensorType> types = {boolean({inner}), boolean({}), told_type};
  KILN_ASSIGN(ValueId kept,
              loop(
                  c, {all, changed, told}, types, 2, [](Composer &, const std::vector<ValueId> &x) { return x[1]; },
                  [&](Composer &h, const std::vector<ValueId> &x) {
                    const ValueId pairs = once ? x[2] : overlapped(h, x[2], threshold, inner);
                    const ValueId hits = h("any", {h("and", {pairs, x[0]})}, {{"dims", ints({1})}});
                    const ValueId now = h("not", {hits});
                    return std::vector{now, h("any", {h("ne", {now, x[0]})})};
                  }));
  Composer h(c);
  if (const Dim &max = c.attr("max").dim(); !max.is(-1)) {
    const ValueId number = h("cumsum", {kept}, {{"dim", 0}, {"dtype", DType::i64}});
    kept = h("and", {kept, h("le", {number, h.count(number, max)})});
  }
  KILN_TRY(h.give({}));
  c.edit.retire(c.node.id);
  const std::vector<ValueId> selected = {order, kept};
  KILN_ASSIGN(const uint32_t found,
              c.edit.add(c.ops.find("masked_select"), selected,
                         {{"max", c.attr("max")}, {"symbol", c.node.symbols[0].name}}, c.node.name));
  c.results = {{found, 0}, {found, 1}};
  return {};
}

Status reference_nms(ReferenceContext &c) {
  const RefTensor &boxes = *c.inputs[0];
  const bool wide = boxes.dtype == DType::f64;
  const auto rounded = [&](double x) { return wide ? x : static_cast<double>(static_cast<float>(x)); };
  const double threshold = rounded(c.attr("iou_threshold").f64());
  const ReadElements<double> numbers(boxes), scores(*c.inputs[1]);
  std::vector<int64_t> order(static_cast<size_t>(c.inputs[1]->size()));
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto score = [&](int64_t k) { return scores[static_cast<size_t>(k)]; };
  std::ranges::stable_sort(
      order, [&](int64_t a, int64_t b) { return std::isnan(score(a)) ? !std::isnan(score(b)) : score(a) > score(b); });
  using Box = std::array<double, 4>;
  const auto box = [&](int64_t k) {
    Box edges;
    for (size_t e = 0; e < 4; ++e) edges[e] = numbers[static_cast<size_t>(4 * k) + e];
    return edges;
  };
  const auto area = [&](const Box &b) { return rounded(rounded(b[2] - b[0]) * rounded(b[3] - b[1])); };
  const auto common = [&](const Box &a, const Box &b, size_t d) {
    return larger(rounded(smaller(a[d + 2], b[d + 2]) - larger(a[d], b[d])), 0.0);
  };
  const auto overlaps = [&](const Box &a, const Box &b) {
    const double shared = rounded(common(a, b, 0) * common(a, b, 1));
    return rounded(shared / rounded(rounded(area(a) + area(b)) - shared)) > threshold;
  };
  const int64_t most = c.attr("max").dim().integer();
  std::vector<int64_t> kept;
  for (int64_t k : order) {
    if (most >= 0 && static_cast<int64_t>(kept.size()) >= most) break;
    const Box own = box(k);
    if (std::ranges::none_of(kept, [&](int64_t before) { return overlaps(box(before), own); })) kept.push_back(k);
  }
  const auto count = static_cast<int64_t>(kept.size());
  give_found(c.results[0], count, kept);
  WriteAny(c.results[1]).set(0, count);
  return {};
}

void samples_nms(SampleSink &out) {
  const auto sample = [&](const char *name, Dim n, int64_t count, AttrMap attrs,
                          std::map<std::string, int64_t> sizes = {}) {
    std::vector<float> boxes;
    for (int64_t k = 0; k < count; ++k) {  // in a row, some of which overlap by more or less
      const auto x = static_cast<float>(k * 5 % 11), y = static_cast<float>(k * 3 % 4);
      for (const float edge : {x, y, x + static_cast<float>(2 + k % 3), y + static_cast<float>(1 + k * 7 % 5)})
        boxes.push_back(edge);
    }
    out.push_back(
        {.name = name, .inputs = {f32({n, 4}), f32({n})}, .attrs = std::move(attrs), .sizes = std::move(sizes)});
    out.back().given = {{0, f32_data({count, 4}, boxes)}};
  };
  sample("some", 33, 33, {});
  sample("few_overlap", 33, 33, {{"iou_threshold", 0.2}});
  sample("first_of_them", 33, 33, {{"max", Dim(5)}});
  sample("more_than_there_are", 9, 9, {{"max", Dim(20)}, {"iou_threshold", 0.7}});
  sample("one", 1, 1, {});
  sample("none", 0, 0, {});
  sample("symbolic", sym("n"), 12, {{"max", Dim(sym("m"))}}, {{"n", 12}, {"m", 6}});
  sample("edges", 5, 5, {});
  out.back().given = {{0, f32_data({5, 4}, {0, 0, 0, 0, 0, 0, 0, 0, NAN, 0, 1, 1, 0, 0, INFINITY, 1, 2, 2, 1, 1})},
                      {1, f32_data({5}, {1, 1, NAN, -INFINITY, INFINITY})}};
}

// ---- records

const Op detection_records[] = {
    {{.name = "roi_align",
      .doc = "The means of parts of boxes in x: each box is cut into parts of size, and each part's mean is that of "
             "sampling_ratio^2 places in it, between x's elements; what lies further than one element outside is 0.",
      .args = {{"x", "[N, C, H, W]", float_types},
               {"boxes", "[K, 5]: which image, x0, y0, x1, y1; or without the image [K, 4]", float_types},
               {"images", "[K], which image each box is of, 0 <= image < N", index_types, Arity::optional,
                /*same_dtype=*/false}},
      .result_names = {"y"},
      .attrs = {list("size", "of the result's dims of space, 2", AttrKind::dim),
                number("spatial_scale", "what makes x's places of a box's numbers", 1),
                {.name = "sampling_ratio",
                 .doc = "places in a part along each dim, 1 to 1024",
                 .kind = AttrKind::i64,
                 .required = true},
                flag("aligned",
                     "a box's numbers are those of elements' edges, half an element before their middles; else those "
                     "of their middles, and a box is at least one element wide",
                     false)},
      .infer = infer_roi_align},
     {.lower = lower_roi_align,
      .reference = reference_roi_align,
      .gradient = by_rule("x"),
      .samples = samples_roi_align}},

    {{.name = "nms",
      .doc =
          "Which boxes stay, by falling score (of equal ones the first before, NaN first): those that overlap none of "
          "before that stays by more than iou_threshold, as their common area over that of both; the first `max` of "
          "them. And how many they are, which is `symbol` from here on. Memory is laid out for `max`.",
      .flags = op_flags::moves | op_flags::resolves,
      .args = {{"boxes", "[N, 4]: x0, y0, x1, y1", float_types}, {"scores", "[N]", float_types}},
      .result_names = {"index", "count"},
      .attrs = {number("iou_threshold", "the most by which two may overlap", 0.5),
                max_attr("how many may stay; -1, and at most: all"), symbol_attr()},
      .infer = infer_nms},
     {.decompose = decompose_nms, .reference = reference_nms, .gradient = gives_indices, .samples = samples_nms}},
};

}  // namespace

std::span<const Op> detection_ops() { return detection_records; }

}  // namespace kiln::ops
