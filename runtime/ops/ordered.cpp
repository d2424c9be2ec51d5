// Ops to which the order of elements along a dim matters: sorts, and searches in what is sorted.
#include <numeric>
#include <ranges>

#include "runtime/ops/composer.h"
#include "runtime/ops/family.h"

namespace kiln::ops {
namespace {

// ---- sort, argsort, topk

Status infer_sort(InferContext &c) {
  const TensorType &x = c.inputs[0];
  KILN_TRY(c.axis(c.attr("dim").i64(), x.rank(), "dim").take_status());
  c.results = {make_type(x.dtype, x.dims), make_type(DType::i64, x.dims)};
  return {};
}
Status infer_argsort(InferContext &c) {
  KILN_TRY(infer_sort(c));
  c.results.erase(c.results.begin());
  return {};
}
// The first `k` of what is sorted, for which dim `dim` has to have as many.
Status infer_first(InferContext &c, int64_t least) {
  const TensorType &x = c.inputs[0];
  KILN_ASSIGN(const int64_t dim, c.axis(c.attr("dim").i64(), x.rank(), "dim"));
  const Dim &k = c.attr("k").dim(), &size = x.dims[static_cast<size_t>(dim)];
  if (k.is_integer() && k.integer() < least) return c.fail("k is ", k.text(), ", expected at least ", least);
  KILN_TRY(require_at_most(c, least, k, str_cat(least, " <= k")));
  return require_at_most(c, k, size, str_cat("k <= dim ", dim, " of x"));
}
Status infer_topk(InferContext &c) {
  KILN_TRY(infer_first(c, 0));
  KILN_TRY(infer_sort(c));
  for (TensorType &type : c.results) type.dims[dim_of(c, type.rank())] = c.attr("k").dim();
  return {};
}

bool is_descending(const OpSchema &op, const AttrMap &attrs) {
  return attrs.find(op.find_attr("largest") ? "largest" : "descending")->second.boolean();
}

// Values and indices, or indices alone, of the first elements in order.
Status lower_sort(LowerContext &c) {
  const TensorType &x = c.inputs[0];
  const size_t dim = dim_of(c, x.rank());
  std::vector<Expr> index = c.axes();
  index[dim] = c.reduce_axis(x.dims[dim]);
  c.compute.scan = static_cast<int32_t>(dim);
  using Order = kernel::Compute::Order;
  c.compute.order = is_descending(c.op, c.attrs) ? Order::descending : Order::ascending;
  c.compute.results.back().value = 1;
  c.body.yield(c.load(0, index));
  c.body.yield(c.body.index(index[dim]));
  return {};
}

// The indices of a line's elements in order. NaN is the largest.
template <class T>
std::vector<int64_t> order_of(const std::vector<T> &line, bool descending) {
  const auto at = [&](int64_t j) { return line[static_cast<size_t>(j)]; };
  const auto less = [](T a, T b) { return is_nan(b) ? !is_nan(a) : a < b; };
  std::vector<int64_t> order(line.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::ranges::stable_sort(order,
                           [&](int64_t a, int64_t b) { return descending ? less(at(b), at(a)) : less(at(a), at(b)); });
  return order;
}

Status reference_sort(ReferenceContext &c) {
  const RefTensor &x = *c.inputs[0];
  const std::vector<int64_t> &shape = c.results[0].shape;  // of fewer elements along dim, perhaps
  const size_t dim = dim_of(c, shape.size()), step = step_along(x.shape, dim);
  const WriteElements<int64_t> places(c.results.back());
  return dispatch(x, [&](auto zero) {
    using T = decltype(zero);
    const ReadElements<T> in(x);
    const WriteElements<T> values(c.results[0]);
    const auto sort = [&](size_t number, size_t to) {
      const size_t first = number / step * step * static_cast<size_t>(x.shape[dim]) + number % step;
      const std::vector<T> line = line_at(in, first, step, x.shape[dim]);
      const std::vector<int64_t> order = order_of(line, is_descending(c.op, c.attrs));
      for (size_t j = 0; j < static_cast<size_t>(shape[dim]); ++j) {
        places.set(to + j * step, order[j]);
        if (c.results.size() > 1) values.set(to + j * step, line[static_cast<size_t>(order[j])]);
      }
    };
    return walk_lines(c, shape, dim, sort, 8);
  });
}

// ---- median, kthvalue: one element of what is sorted

Status infer_ranked(InferContext &c) {
  const TensorType &x = c.inputs[0];
  KILN_ASSIGN(const int64_t dim, c.axis(c.attr("dim").i64(), x.rank(), "dim"));
  const auto d = static_cast<size_t>(dim);
  if (c.op.find_attr("k"))
    KILN_TRY(infer_first(c, 1));
  else
    KILN_TRY(require_at_most(c, 1, x.dims[d], str_cat("at least one element along dim ", dim)));
  Shape dims = x.dims;
  if (c.attr("keepdim").boolean())
    dims[d] = 1;
  else
    dims.erase(dims.begin() + dim);
  c.results = {make_type(x.dtype, dims), make_type(DType::i64, dims)};
  return {};
}

ValueId second(ValueId values) { return {values.node, 1}; }

// Element k - 1 along the dim, which is kept, and its index.
std::array<ValueId, 2> compose_ranked(DecomposeContext &c, Composer &g, const Dim &k) {
  const AttrValue dim = c.attr("dim");
  const ValueId first = g("topk", {c.node.inputs[0]}, {{"dim", dim}, {"k", k}, {"largest", false}});
  const AttrMap last = {{"dim", dim}, {"start", k - 1}, {"end", k}};
  return {g("slice", {first}, last), g("slice", {second(first)}, last)};
}
Status give_ranked(DecomposeContext &c, Composer &g, std::array<ValueId, 2> ranked) {
  if (!c.attr("keepdim").boolean())
    for (ValueId &each : ranked) each = g("squeeze", {each}, {{"dims", ints({c.attr("dim").i64()})}});
  return g.give({ranked[0], ranked[1]});
}
Status decompose_kthvalue(DecomposeContext &c) {
  Composer g(c);
  return give_ranked(c, g, compose_ranked(c, g, c.attr("k").dim()));
}
// The largest is NaN where any is.
Status decompose_median(DecomposeContext &c) {
  Composer g(c);
  const ValueId x = c.node.inputs[0];
  const TensorType type = c.type(x);
  const Dim &count = type.dims[dim_of(c, type.rank())];
  std::array<ValueId, 2> median = compose_ranked(c, g, floor_div(count + 1, 2));
  if (!dtype_info(type.dtype).is_float) return give_ranked(c, g, median);
  const ValueId largest = g("max_with_indices", {x}, {{"dim", c.attr("dim")}, {"keepdim", true}});
  const ValueId is_nan = g("ne", {largest, largest});
  median = {g("where", {is_nan, largest, median[0]}), g("where", {is_nan, second(largest), median[1]})};
  return give_ranked(c, g, median);
}

Status reference_ranked(ReferenceContext &c) {
  const RefTensor &x = *c.inputs[0];
  const size_t dim = dim_of(c, x.shape.size()), step = step_along(x.shape, dim);
  const bool is_median = !c.op.find_attr("k");
  const int64_t count = x.shape[dim], rank = is_median ? (count - 1) / 2 : c.attr("k").dim().integer() - 1;
  const WriteElements<int64_t> places(c.results[1]);
  return dispatch(x, [&](auto zero) {
    using T = decltype(zero);
    const ReadElements<T> in(x);
    const WriteElements<T> values(c.results[0]);
    const auto pick = [&](size_t number, size_t first) {
      const std::vector<T> line = line_at(in, first, step, count);
      int64_t at = order_of(line, false)[static_cast<size_t>(rank)];
      for (int64_t j = count; is_median && j-- > 0;)
        if (is_nan(line[static_cast<size_t>(j)])) at = j;
      values.set(number, line[static_cast<size_t>(at)]);
      places.set(number, at);
    };
    return walk_lines(c, x.shape, dim, pick, 8);
  });
}

// ---- samples of what sorts; `more`: the other attributes, of a row of at least three

void sorting_samples(SampleSink &out, const AttrMap &more) {
  const Dim n = sym("n"), m = sym("m");
  const auto sample = [&](const char *name, TensorType x, int64_t dim, std::map<std::string, int64_t> sizes = {}) {
    AttrMap attrs = more;
    attrs["dim"] = dim;
    out.push_back({.name = name,
                   .inputs = {std::move(x)},
                   .attrs = attrs,
                   .sizes = std::move(sizes),
                   .int_low = -3,
                   .int_high = 4});
  };
  sample("rows", f32({5, 33}), -1);
  sample("columns", f32({17, 9}), 0);
  sample("middle", f32({3, 17, 5}), 1);
  sample("few", f32({4, 3}), 1);
  sample("no_rows", f32({0, 3}), 1);
  sample("ties", i64({5, 65}), 1);
  sample("long", i64({700}), 0);
  sample("symbolic", f32({n, m}), 1, {{"n", 3}, {"m", 17}});
  sample("symbolic_columns", i64({n, m}), 0, {{"n", 9}, {"m", 3}});
  sample("edges", f32({3, 6}), 1);
  out.back().given = {{0, f32_data({3, 6}, {NAN, 1.f, -INFINITY, NAN, INFINITY, 1.f, 0.f, -0.f, -0.f, 0.f, -1.f, 0.f,
                                            NAN, NAN, NAN, NAN, NAN, NAN})}};
}
void both_ways(SampleSink &out, const char *attr, AttrMap more) {
  for (const bool descending : {false, true}) {
    more[attr] = descending;
    const size_t before = out.size();
    sorting_samples(out, more);
    for (size_t i = before; descending && i < out.size(); ++i) out[i].name += str_cat("_", attr);
  }
}
void samples_sort(SampleSink &out) {
  both_ways(out, "descending", {});
  out.push_back(sample_of("one", {5, 1}, {{"dim", 1}}, {}));
  out.push_back(sample_of("empty", {5, sym("n")}, {{"dim", 1}}, {{"n", 0}}));
  out.push_back({.name = "booleans", .inputs = {boolean({3, 17})}, .attrs = {{"dim", 1}, {"descending", true}}});
  out.push_back({.name = "integer_edges",
                 .inputs = {i64({4})},
                 .attrs = {{"dim", 0}},
                 .given = {{0, i64_data({4}, {0, i64_max, i64_min, -1})}}});
}
void samples_topk(SampleSink &out) {
  const Dim n = sym("n"), k = sym("k");
  both_ways(out, "largest", {{"k", Dim(3)}});
  const auto with = [&](const char *name, Shape x, const Dim &wanted, std::map<std::string, int64_t> sizes = {}) {
    out.push_back(sample_of(name, std::move(x), {{"dim", 1}, {"k", wanted}}, std::move(sizes)));
  };
  with("all", {3, 17}, 17);
  with("one", {3, 17}, 1);
  with("none", {3, 17}, 0);
  with("of_one", {3, 1}, 1);
  with("many", {2, 900}, 70);
  with("symbolic_k", {2, n}, k,
       {
           {"n", 33},
           {"k", 5},
       });
}
void samples_kthvalue(SampleSink &out) {
  sorting_samples(out, {{"k", Dim(2)}});
  out.push_back(sample_of("kept", {3, 17}, {{"dim", 1}, {"k", Dim(17)}, {"keepdim", true}}, {}));
}
void samples_median(SampleSink &out) {
  sorting_samples(out, {});
  out.push_back(sample_of("kept", {3, 16}, {{"dim", 1}, {"keepdim", true}}, {}));
  out.push_back(sample_of("one", {3, 1}, {{"dim", 1}}, {}));
}

// ---- searchsorted

Status infer_searchsorted(InferContext &c) {
  const TensorType &sorted = c.inputs[0], &values = c.inputs[1];
  if (sorted.rank() == 0) return c.fail("sorted is ", sorted.text(), "; expected at least one dim");
  if (sorted.rank() > 1) {
    KILN_TRY(require_rank(c, 1, sorted.rank()));
    for (size_t d = 0; d + 1 < sorted.rank(); ++d)
      KILN_TRY(c.require_equal(sorted.dims[d], values.dims[d], str_cat("dim ", d, " of sorted and values")));
  }
  c.results = {make_type(DType::i64, values.dims)};
  return {};
}

Status lower_searchsorted(LowerContext &c) {
  const Shape &dims = c.inputs[0].dims;
  std::vector<Expr> row = dims.size() == 1 ? std::vector<Expr>{0} : c.axes();
  row.back() = 0;
  const uint64_t flags = c.attr("right").boolean() ? kernel::search_upper : kernel::SearchFlags{};
  c.body.yield(c.body.search(c.load(1, c.axes()), 0, std::move(row), dims.back(), flags));
  return {};
}

Status reference_searchsorted(ReferenceContext &c) {
  const RefTensor &sorted = *c.inputs[0], &values = *c.inputs[1];
  const bool right = c.attr("right").boolean();
  const int64_t count = sorted.shape.back();
  const int64_t per_row = sorted.shape.size() == 1 ? values.size() : values.shape.back();
  return dispatch(values, [&](auto zero) {
    using T = decltype(zero);
    const ReadElements<T> in(sorted), wanted(values);
    const auto before = [](T a, T b) { return is_nan(b) ? !is_nan(a) : a < b; };  // NaN comes last
    return make_each<int64_t>(
        c,
        [&](int64_t k) {
          const auto at = [&](int64_t j) { return in[static_cast<size_t>(k / per_row * count + j)]; };
          const T value = wanted[static_cast<size_t>(k)];
          const auto places = std::views::iota(int64_t{0}, count);
          const auto end = right ? std::ranges::upper_bound(places, value, before, at)
                                 : std::ranges::lower_bound(places, value, before, at);
          return end - places.begin();
        },
        8);
  });
}

void samples_searchsorted(SampleSink &out) {
  const Dim n = sym("n"), m = sym("m");
  for (const bool right : {false, true}) {
    auto sample = [&](const char *name, TensorType sorted, TensorType values, TensorData given,
                      std::map<std::string, int64_t> sizes = {}) {
      out.push_back({.name = str_cat(name, right ? "_right" : ""),
                     .inputs = {std::move(sorted), std::move(values)},
                     .attrs = {{"right", right}},
                     .sizes = std::move(sizes),
                     .low = -4,
                     .high = 9,
                     .int_low = -4,
                     .int_high = 9,
                     .given = {{0, std::move(given)}}});
    };
    const std::vector<float> five = {-2, 0, 1, 1, 7}, rows = {-2, 0, 1, 1, 7, -3, -3, -3, 2, 5, 1, 2, 3, 4, 5};
    sample("vector", f32({5}), f32({129}), f32_data({5}, five));
    sample("any_shape", f32({5}), f32({3, 7}), f32_data({5}, five));
    sample("scalar", f32({5}), f32({}), f32_data({5}, five));
    sample("rows", f32({3, 5}), f32({3, 17}), f32_data({3, 5}, rows));
    sample("in_nothing", f32({0}), f32({7}), f32_data({0}, {}));
    sample("for_nothing", f32({5}), f32({0}), f32_data({5}, five));
    sample("integers", i64({7}), i64({33}), i64_data({7}, {-3, -1, 0, 0, 0, 4, 8}));
    sample("symbolic", f32({n, m}), f32({n, 9}), f32_data({3, 5}, rows), {{"n", 3}, {"m", 5}});
    // In rows that stay sorted as integers, which have 0 for NaN.
    const TensorData sought = f32_data({8}, {NAN, INFINITY, -INFINITY, 0, -0.f, 2, 3, -1});
    sample("edges", f32({n}), f32({n}), f32_data({8}, {-INFINITY, -1, -1, -0.f, 0, 2, 4, INFINITY}), {{"n", 8}});
    out.back().given.emplace(1, sought);
    sample("nans", f32({n}), f32({n}), f32_data({8}, {-INFINITY, -5, -2, -1, -0.f, 0, NAN, NAN}), {{"n", 8}});
    out.back().given.emplace(1, sought);
  }
}

AttrDef k_attr(std::string_view doc) { return {.name = "k", .doc = doc, .kind = AttrKind::dim, .required = true}; }
// What sorts moves elements, which therefore stay in the type that they have.
Op sorting(std::string_view name, std::string_view doc, DTypes types, std::vector<AttrDef> more,
           Status (*infer)(InferContext &), OpMeaning meaning, uint32_t flags = op_flags::moves) {
  more.insert(more.begin(), dim_attr("the dim to go along", -1));
  return {{.name = name,
           .doc = doc,
           .flags = flags,
           .args = {{"x", "at least one dim", types}},
           .result_names = {"values", "indices"},
           .attrs = std::move(more),
           .infer = infer},
          meaning};
}
Op argsort() {
  Op op =
      sorting("argsort", "The indices of the elements along a dim in ascending order: those of `sort`.",
              comparable_types, {flag("descending", "the largest first", false)}, infer_argsort,
              {.lower = lower_sort, .reference = reference_sort, .gradient = gives_indices, .samples = samples_sort});
  op.result_names = {"indices"};
  return op;
}

const Op ordered_records[] = {
    sorting("sort",
            "The elements along a dim in ascending order, and the indices where they were. Equal elements keep their "
            "order, -0 equals 0, NaN is the largest.",
            comparable_types, {flag("descending", "the largest first", false)}, infer_sort,
            {.lower = lower_sort, .reference = reference_sort, .gradient = by_rule("x"), .samples = samples_sort}),
    argsort(),
    sorting(
        "topk",
        "The k largest elements along a dim in descending order, and their indices: of equal ones those with the "
        "lowest. NaN is the largest.",
        comparable_types,
        {k_attr("how many; at most the dim's size"), flag("largest", "false: the smallest, in ascending order", true)},
        infer_topk,
        {.lower = lower_sort, .reference = reference_sort, .gradient = by_rule("x"), .samples = samples_topk}),
    sorting("kthvalue",
            "The k-th smallest element along a dim, and its index: of equal ones in their order. NaN is the largest.",
            numeric_types,
            {k_attr("which; from 1 to the dim's size"), flag("keepdim", "keep the dim, with size 1", false)},
            infer_ranked,
            {.decompose = decompose_kthvalue,
             .reference = reference_ranked,
             .gradient = through_decomposition(),
             .samples = samples_kthvalue}),
    sorting("median",
            "The middle element along a dim in ascending order, of two the lower one, NaN if an element is; and its "
            "index: of equal ones in "
            "their order, of NaN the first.",
            numeric_types, {flag("keepdim", "keep the dim, with size 1", false)}, infer_ranked,
            {.decompose = decompose_median,
             .reference = reference_ranked,
             .gradient = through_decomposition(),
             .samples = samples_median},
            /*flags=*/0),

    {{.name = "searchsorted",
      .doc = "For each value how many elements of a sorted row are less than it or, if right, not greater: where it "
             "could be put in. NaN comes last. Of rows that are not sorted any number from 0 to their length.",
      .args = {{"sorted", "[..., n], in ascending order along the last dim", numeric_types},
               {"values", "[..., m], of the same leading dims; any shape where sorted has one dim", numeric_types}},
      .result_names = {"index"},
      .attrs = {flag("right", "behind equal elements", false)},
      .infer = infer_searchsorted},
     {.lower = lower_searchsorted,
      .reference = reference_searchsorted,
      .gradient = gives_indices,
      .samples = samples_searchsorted}},
};

}  // namespace

std::span<const Op> ordered_ops() { return ordered_records; }

}  // namespace kiln::ops
