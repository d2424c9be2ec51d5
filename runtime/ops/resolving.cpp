// Ops whose results tell sizes: symbols that a run resolves.
#include "runtime/ops/resolving.h"

#include <numeric>

#include "runtime/ops/composer.h"

namespace kiln::ops {
namespace {

// The attribute "symbol" names what the last result is from here on.
Status resolve_at_most(InferContext &c, const Dim &bound) {
  const std::string &symbol = c.attr("symbol").text_value();
  const Result<Expr> parsed = Expr::parse(symbol);
  if (!parsed.ok() || parsed->kind() != Expr::Kind::symbol || parsed->symbol_name() != symbol)
    return c.fail("symbol is '", symbol, "', expected a letter or '_', then letters, digits, '_' or '.'");
  c.symbols = {{symbol, bound}};
  return {};
}

}  // namespace

AttrDef symbol_attr() {
  return {
      .name = "symbol", .doc = "bound by this node alone; empty: a fresh one", .kind = AttrKind::text, .fallback = ""};
}
AttrDef max_attr(std::string_view doc) {
  return {.name = "max", .doc = doc, .kind = AttrKind::dim, .fallback = Dim(-1)};
}

Result<Dim> infer_count(InferContext &c, const Dim &elements) {
  const Dim &max = c.attr("max").dim();
  if (max.is_integer() && max.integer() < -1) return c.fail("max is ", max.text(), ", expected at least 0, or -1");
  KILN_TRY(resolve_at_most(c, max.is(-1) ? elements : min(elements, max)));
  return Dim(Expr::symbol(c.symbols[0].name));
}

namespace {

// ---- resolve

Status infer_resolve(InferContext &c) {
  if (c.inputs[0].rank() != 0) return c.fail("count is ", c.inputs[0].text(), ", expected i64[]");
  const Dim &bound = c.attr("bound").dim();
  if (bound.is_integer() && bound.integer() < 0) return c.fail("bound is ", bound.text(), ", expected at least 0");
  c.results = {make_type(DType::i64, {})};
  return resolve_at_most(c, bound);
}

Status reference_resolve(ReferenceContext &c) {
  return copy_broadcast(c, *c.inputs[0]);
}  // held to the bound afterwards

// What shapes make of it, resolved_sizes_test shows.
void samples_resolve(SampleSink &out) {
  out.push_back({.name = "none", .inputs = {i64({})}, .attrs = {{"bound", Dim(0)}}, .int_low = 0, .int_high = 1});
  out.push_back({.name = "count", .inputs = {i64({})}, .attrs = {{"bound", Dim(5)}}, .int_low = 0, .int_high = 6});
}

// ---- nonzero

// Takes the node's place, by name and symbol, as a resolver of `total`: what a run finds is said of the node.
Result<uint32_t> resolve_in_place(DecomposeContext &c, ValueId total) {
  const ResolvedSymbol &symbol = c.node.symbols[0];
  c.edit.retire(c.node.id);
  return c.edit.add(c.ops.find("resolve"), {&total, 1}, {{"bound", symbol.bound}, {"symbol", symbol.name}},
                    c.node.name);
}

Status infer_nonzero(InferContext &c) {
  KILN_ASSIGN(const Dim count, infer_count(c, product_of(c.inputs[0].dims)));
  c.results = {make_type(DType::i64, {count, static_cast<int64_t>(c.inputs[0].rank())}), make_type(DType::i64, {})};
  return {};
}

// The i-th element that is not 0 stands where i such elements come before it: a search in their running count. A row of
// the result is its number in row-major order, divided by the strides.
Status decompose_nonzero(DecomposeContext &c) {
  const TensorType x = c.type(c.node.inputs[0]);
  const Dim elements = product_of(x.dims);
  KILN_ASSIGN(const ValueId is, c.add("convert", c.node.inputs, {{"dtype", DType::boolean}}));
  KILN_ASSIGN(const ValueId flat, c.add("reshape", {is}, {{"shape", AttrValue(Shape{elements})}}));
  KILN_ASSIGN(const ValueId total, c.add("sum", {flat}, {{"dtype", DType::i64}}));
  KILN_ASSIGN(const uint32_t resolver, resolve_in_place(c, total));
  const Dim count = Expr::symbol(c.node.symbols[0].name);
  if (x.rank() == 0) {
    KILN_ASSIGN(const ValueId none,
                c.add("full", {}, {{"dtype", DType::i64}, {"shape", AttrValue(c.node.results[0].dims)}}));
    c.results = {none, {resolver, 0}};
    return {};
  }
  KILN_ASSIGN(const ValueId counts, c.add("cumsum", {flat}, {{"dim", 0}, {"dtype", DType::i64}}));
  KILN_ASSIGN(const ValueId numbers, c.add("iota", {}, {{"shape", AttrValue(Shape{count})}}));
  KILN_ASSIGN(const ValueId at, c.add("searchsorted", {counts, numbers}, {{"right", true}}));
  KILN_ASSIGN(ValueId index, c.add("unsqueeze", {at}, {{"dims", ints({1})}}));
  if (x.rank() > 1) {
    std::vector<ValueId> strides, sizes;
    for (const auto &[dims, values] : {std::pair{row_major_strides(x.dims), &strides}, std::pair{x.dims, &sizes}}) {
      for (const Dim &dim : dims) {
        KILN_ASSIGN(const ValueId value, c.count(DType::i64, dim));
        KILN_ASSIGN(values->emplace_back(), c.add("unsqueeze", {value}, {{"dims", ints({0})}}));
      }
    }
    KILN_ASSIGN(const ValueId stride, c.add("concat", strides, {{"dim", 0}}));
    KILN_ASSIGN(const ValueId size, c.add("concat", sizes, {{"dim", 0}}));
    KILN_ASSIGN(index, c.add("div", {index, stride}));
    KILN_ASSIGN(index, c.add("remainder", {index, size}));
  }
  c.results = {index, {resolver, 0}};
  return {};
}

Status reference_nonzero(ReferenceContext &c) {
  const RefTensor &x = *c.inputs[0];
  const ReadElements<double> floats(x);
  const ReadElements<int64_t> integers(x);
  const size_t rank = x.shape.size();
  std::vector<int64_t> at(rank, 0), indices;
  int64_t count = 0;
  for (int64_t k = 0; k < x.size(); ++k) {
    const auto element = static_cast<size_t>(k);
    if (x.is_float() ? floats[element] != 0 : integers[element] != 0) {
      indices.insert(indices.end(), at.begin(), at.end());
      ++count;
    }
    for (size_t d = rank; d-- > 0; at[d] = 0)
      if (++at[d] < x.shape[d]) break;
  }
  give_found(c.results[0], count, indices);
  WriteAny(c.results[1]).set(0, count);
  return {};
}

void samples_nonzero(SampleSink &out) {
  const Dim n = sym("n"), m = sym("m");
  auto sample = [&](const char *name, TensorType x, std::map<std::string, int64_t> sizes = {}, AttrMap attrs = {}) {
    out.push_back({.name = name,
                   .inputs = {std::move(x)},
                   .attrs = std::move(attrs),
                   .sizes = std::move(sizes),
                   .int_low = 0,
                   .int_high = 3});
  };
  sample("vector", i64({257}));
  sample("matrix", i64({7, 33}));
  sample("three_dims", boolean({3, 5, 7}));
  sample("columns_of_one", i64({9, 1}));
  sample("empty", i64({3, 0}));
  sample("at_most", i64({65}), {}, {{"max", Dim(65)}});
  sample("at_most_more_than_there_are", i64({5}), {}, {{"max", Dim(1000)}});
  sample("symbolic", i64({n, m}), {{"n", 5}, {"m", 33}});
  sample("symbolic_none", i64({n, m}), {{"n", 3}, {"m", 0}});
  sample("symbolic_at_most", i64({n}), {{"n", 33}, {"m", 40}}, {{"max", m}});
  const auto given = [&](const char *name, std::vector<int64_t> shape, const std::vector<float> &values) {
    Sample made{.name = name, .inputs = {f32(Shape(shape.begin(), shape.end()))}};
    made.given = {{0, f32_data(std::move(shape), values)}};
    out.push_back(std::move(made));
  };
  given("edges", {2, 4}, {0.f, -0.f, 1e-40f, NAN, INFINITY, -3.f, 0.f, 2.f});
  given("none_at_all", {2, 3}, {0.f, -0.f, 0.f, 0.f, 0.f, 0.f});
  given("all", {5}, {1.f, 2.f, -1.f, 3.f, 5.f});
  given("scalar", {}, {2.f});
  given("scalar_zero", {}, {0.f});
}

// ---- masked_select

Status infer_masked_select(InferContext &c) {
  KILN_ASSIGN(const Shape dims, c.broadcast(c.inputs[0].dims, c.inputs[1].dims));
  KILN_ASSIGN(const Dim count, infer_count(c, product_of(dims)));
  c.results = {make_type(c.inputs[0].dtype, {count}), make_type(DType::i64, {})};
  return {};
}

// What nonzero finds in the mask tells what is picked. It takes the node's place, by name and symbol.
Status decompose_masked_select(DecomposeContext &c) {
  Composer g(c);
  const Shape dims = broadcast_shape(c.type(c.node.inputs[0]).dims, c.type(c.node.inputs[1]).dims);
  const Shape flat{product_of(dims)};
  std::vector<ValueId> parts;
  for (ValueId operand : c.node.inputs)
    parts.push_back(g("reshape", {g("expand", {operand}, {{"shape", AttrValue(dims)}})}, {{"shape", AttrValue(flat)}}));
  c.edit.retire(c.node.id);
  Result<uint32_t> found = c.edit.add(c.ops.find("nonzero"), {&parts[1], 1},
                                      {{"max", c.attr("max")}, {"symbol", c.node.symbols[0].name}}, c.node.name);
  if (!found.ok()) return found.take_status();
  return g.give({g("gather_nd", {parts[0], {*found, 0}}), {*found, 1}});
}

Status reference_masked_select(ReferenceContext &c) {
  const RefTensor &x = *c.inputs[0], &mask = *c.inputs[1];
  const ReadElements<int64_t> selected(mask);
  const std::vector<int64_t> shape = broadcast_shape(x.shape, mask.shape);
  return dispatch(x, [&](auto zero) -> Status {
    using T = decltype(zero);
    const ReadElements<T> in(x);
    std::vector<T> found;
    walk<2>(shape, {broadcast_strides(x.shape, shape), broadcast_strides(mask.shape, shape)}, [&](auto at) {
      if (selected[static_cast<size_t>(at[1])]) found.push_back(in[static_cast<size_t>(at[0])]);
    });
    const auto count = static_cast<int64_t>(found.size());
    give_found(c.results[0], count, found);
    WriteAny(c.results[1]).set(0, count);
    return {};
  });
}

void samples_masked_select(SampleSink &out) {
  const Dim n = sym("n"), m = sym("m");
  out.push_back({.name = "vector", .inputs = {f32({257}), boolean({257})}});
  out.push_back({.name = "matrix", .inputs = {f32({7, 33}), boolean({7, 33})}});
  out.push_back({.name = "mask_of_rows", .inputs = {f32({7, 5}), boolean({7, 1})}});
  out.push_back({.name = "one_element", .inputs = {f32({}), boolean({5})}});
  out.push_back({.name = "scalars", .inputs = {f32({}), boolean({})}});
  out.push_back({.name = "integers", .inputs = {i64({9}), boolean({9})}});
  out.push_back({.name = "empty", .inputs = {f32({3, 0}), boolean({3, 0})}});
  out.push_back({.name = "at_most", .inputs = {f32({65}), boolean({65})}, .attrs = {{"max", Dim(65)}}});
  out.push_back({.name = "symbolic", .inputs = {f32({n, m}), boolean({m})}, .sizes = {{"n", 5}, {"m", 33}}});
}

// ---- unique

Status infer_unique(InferContext &c) {
  KILN_ASSIGN(const Dim count, infer_count(c, product_of(c.inputs[0].dims)));
  const TensorType &x = c.inputs[0];
  c.results = {make_type(x.dtype, {count}), make_type(DType::i64, x.dims), make_type(DType::i64, {count}),
               make_type(DType::i64, {})};
  return {};
}

// In the sorted row an element is the first of its kind where it differs from the one before. The number of such so far
// is its kind's number from 1 on; the first and the last of a kind are found by a search for that.
Status decompose_unique(DecomposeContext &c) {
  Composer g(c);
  const TensorType x = c.type(c.node.inputs[0]);
  const Dim elements = product_of(x.dims);
  const ValueId row = g("reshape", c.node.inputs, {{"shape", AttrValue(Shape{elements})}});
  const ValueId sorted = g("sort", {row}, {{"dim", 0}}), from = {sorted.node, 1};
  const ValueId place = g("iota", {}, {{"shape", AttrValue(Shape{elements})}});
  // In numbers that kernels compare, for this op is not widened.
  const ValueId compared = is_small_float(x.dtype) ? g.convert(sorted, DType::f32) : sorted;
  const ValueId before = g("roll", {compared}, {{"shifts", ints({1})}, {"dims", ints({0})}});
  const ValueId differs = g("ne", {compared, before}), is_first = g("eq", {place, g.number(place, 0)});
  const ValueId begins = g("or", {is_first, differs});
  const ValueId numbers = g("cumsum", {begins}, {{"dim", 0}, {"dtype", DType::i64}});
  const ValueId total = g("sum", {begins}, {{"dtype", DType::i64}});
  KILN_TRY(g.give({}));
  KILN_ASSIGN(const uint32_t resolver, resolve_in_place(c, total));
  const Dim count = Expr::symbol(c.node.symbols[0].name);
  Composer h(c);
  const ValueId kind = h("iota", {}, {{"shape", AttrValue(Shape{count})}});
  const auto behind = [&](ValueId number) { return h("searchsorted", {numbers, number}, {{"right", true}}); };
  const ValueId first = behind(kind), end = behind(h("add", {kind, h.number(kind, 1)}));
  const ValueId values = h("gather", {sorted, first}, {{"dim", 0}});
  // Where each element of x went: the inverse of a permutation is the order of its numbers.
  const ValueId to = h("argsort", {from}, {{"dim", 0}});
  const ValueId found = h("sub", {h("gather", {numbers, to}, {{"dim", 0}}), h.number(numbers, 1)});
  const ValueId inverse = h("reshape", {found}, {{"shape", AttrValue(x.dims)}});
  return h.give({values, inverse, h("sub", {end, first}), {resolver, 0}});
}

Status reference_unique(ReferenceContext &c) {
  const RefTensor &x = *c.inputs[0];
  const WriteElements<int64_t> numbers(c.results[1]);
  return dispatch(x, [&](auto zero) -> Status {
    using T = decltype(zero);
    const std::vector<T> in = line_at(ReadElements<T>(x), 0, 1, x.size());
    std::vector<size_t> order(in.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, [&](size_t a, size_t b) { return is_nan(in[b]) ? !is_nan(in[a]) : in[a] < in[b]; });
    std::vector<T> values;
    std::vector<int64_t> counts;
    for (size_t k = 0; k < order.size(); ++k) {
      const T value = in[order[k]];
      if (k == 0 || value != in[order[k - 1]]) {
        counts.push_back(0);
        values.push_back(value);
      }
      ++counts.back();
      numbers.set(order[k], static_cast<int64_t>(counts.size()) - 1);
    }
    const auto kinds = static_cast<int64_t>(counts.size());
    give_found(c.results[0], kinds, values);
    give_found(c.results[2], kinds, counts);
    WriteAny(c.results[3]).set(0, kinds);
    return {};
  });
}

void samples_unique(SampleSink &out) {
  const Dim n = sym("n"), m = sym("m");
  const auto sample = [&](const char *name, TensorType x, std::map<std::string, int64_t> sizes = {},
                          AttrMap attrs = {}) {
    out.push_back({.name = name,
                   .inputs = {std::move(x)},
                   .attrs = std::move(attrs),
                   .sizes = std::move(sizes),
                   .low = -1,
                   .high = 1,
                   .int_low = -2,
                   .int_high = 7});
  };
  sample("vector", f32({257}));
  sample("integers", i64({7, 33}));
  sample("booleans", boolean({9}));
  sample("empty", i64({3, 0}));
  sample("one", f32({1}));
  sample("scalar", i64({}));
  sample("at_most", i64({65}), {}, {{"max", Dim(9)}});
  sample("symbolic", i64({n, m}), {{"n", 5}, {"m", 33}});
  sample("symbolic_none", f32({n, m}), {{"n", 3}, {"m", 0}});
  sample("edges", f32({2, 4}));
  out.back().given = {{0, f32_data({2, 4}, {NAN, 0.f, -0.f, INFINITY, NAN, -INFINITY, INFINITY, 2.f})}};
}

constexpr std::string_view most = "the most that there can be; -1, and at most: as many as there are elements";

const Op resolving_records[] = {
    {{.name = "resolve",
      .doc =
          "count, as what `symbol` is in shapes and dims from here on: a size that only a run can tell. A run in which "
          "it is less than 0 or more than `bound` ends there (TYPE_MISMATCH). Memory is laid out for `bound`.",
      .flags = op_flags::moves | op_flags::control | op_flags::resolves,
      .args = {{"count", "a scalar", dtypes(DType::i64)}},
      .result_names = {"count"},
      .attrs = {{.name = "bound", .doc = "the most that it can be", .kind = AttrKind::dim, .required = true},
                symbol_attr()},
      .infer = infer_resolve},
     {.reference = reference_resolve, .gradient = gives_integers, .samples = samples_resolve}},

    {{.name = "nonzero",
      .doc = "The indices of the elements that are not 0 (NaN is not, -0 is), in row-major order: [symbol, rank]; and "
             "how many they are, which is `symbol` from here on. A run that finds more than `max` ends there "
             "(TYPE_MISMATCH). Memory is laid out for `max`.",
      .flags = op_flags::moves | op_flags::resolves,
      .args = {{"x", "any shape", any_type}},
      .result_names = {"index", "count"},
      .attrs = {max_attr(most), symbol_attr()},
      .infer = infer_nonzero},
     {.decompose = decompose_nonzero,
      .reference = reference_nonzero,
      .gradient = gives_indices,
      .samples = samples_nonzero}},

    {{.name = "masked_select",
      .doc = "The elements of x where the mask holds, in row-major order: [symbol]; and how many they are, which is "
             "`symbol` from here on. A run that finds more than `max` ends there (TYPE_MISMATCH). Memory is laid out "
             "for `max`.",
      .flags = op_flags::moves | op_flags::resolves,
      .args = {{"x", "any shape", any_type},
               {"mask", "broadcast with x", dtypes(DType::boolean), Arity::one, /*same_dtype=*/false}},
      .result_names = {"y", "count"},
      .attrs = {max_attr(most), symbol_attr()},
      .infer = infer_masked_select},
     {.decompose = decompose_masked_select,
      .reference = reference_masked_select,
      .gradient = through_decomposition(),
      .samples = samples_masked_select}},
    {{.name = "unique",
      .doc =
          "The different elements in ascending order; for each element of x the index there; how often each is in x; "
          "and how many they are, which is `symbol` from here on. -0 is 0; no NaN equals another. A run that finds "
          "more than `max` ends there (TYPE_MISMATCH). Memory is laid out for `max`.",
      .flags = op_flags::moves | op_flags::resolves,
      .args = {{"x", "any shape", comparable_types}},
      .result_names = {"values", "inverse", "counts", "count"},
      .attrs = {max_attr(most), symbol_attr()},
      .infer = infer_unique},
     {.decompose = decompose_unique,
      .reference = reference_unique,
      .gradient = no_gradient("equal elements become one, and the least change parts them"),
      .samples = samples_unique}},
};

}  // namespace

std::span<const Op> resolving_ops() { return resolving_records; }

}  // namespace kiln::ops
