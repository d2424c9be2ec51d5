// Composites of scatter, index_put and what combines: means, whole rows, bags, and parts that a mask picks.
#include "runtime/ops/filling.h"
#include "runtime/ops/indices.h"

namespace kiln::ops {
namespace {

using Mode = kernel::Store::Mode;

// ---- scatter_reduce, index_reduce, index_add

struct Reduction {
  std::string_view name, op;
  Mode mode;
};
constexpr Reduction reductions[] = {{"add", "scatter_add", Mode::add},
                                    {"mul", "scatter_mul", Mode::mul},
                                    {"min", "scatter_min", Mode::min},
                                    {"max", "scatter_max", Mode::max},
                                    {"mean", "scatter_add", Mode::add}};
const Reduction &reduction_of(const AttrMap &attrs) {
  return *std::ranges::find(reductions, attrs.find("reduction")->second.text_value(), &Reduction::name);
}
bool is_mean(const AttrMap &attrs) { return reduction_of(attrs).name == "mean"; }

Status require_reduction(InferContext &c) {
  KILN_TRY(require_word(c, "reduction", {"add", "mul", "min", "max", "mean"}));
  if (is_mean(c.attrs) && !dtype_info(c.inputs[0].dtype).is_float)
    return c.fail("reduction is 'mean' of ", name_of(c.inputs[0].dtype), ", expected floats");
  return {};
}

// What changes nothing that it is combined with.
ValueId identity(Composer &g, const Reduction &reduction, DType dtype) {
  const bool extreme = reduction.mode == Mode::min || reduction.mode == Mode::max;
  const double value = !extreme                      ? (reduction.mode == Mode::mul ? 1 : 0)
                       : reduction.mode == Mode::min ? infinity
                                                     : -infinity;
  AttrMap attrs{{"dtype", dtype}, {"shape", AttrValue(Shape{})}};
  if (!extreme || dtype_info(dtype).is_float) {
    attrs.emplace("value", value);
  } else {
    attrs.emplace("exact", digits_of(to_integer(value, dtype), dtype));
  }
  return g("full", {}, std::move(attrs));
}

ValueId reduced(DecomposeContext &c, Composer &g, ValueId index, int64_t dim) {
  const ValueId source = c.node.inputs[2];
  const TensorType x = c.type(c.node.inputs[0]);
  const Shape shape = c.type(index).dims;
  const Reduction &reduction = reduction_of(c.node.attrs);
  const AttrMap at{{"dim", dim}};
  ValueId begin = c.node.inputs[0], count;
  if (is_mean(c.node.attrs)) count = g.full(x.dtype, x.dims, 1);
  if (!c.attr("include_self").boolean()) {
    const ValueId yes = g.full(DType::boolean, shape, 1);
    const ValueId touched = g("scatter", {g.full(DType::boolean, x.dims, 0), index, yes}, at);
    begin = g("where", {touched, identity(g, reduction, x.dtype), begin});
    if (is_mean(c.node.attrs)) count = g("where", {touched, g.number(begin, 0), count});
  }
  const ValueId all = g(reduction.op, {begin, index, source}, at);
  if (!is_mean(c.node.attrs)) return all;
  return g("div", {all, g("scatter_add", {count, index, g.full(x.dtype, shape, 1)}, at)});
}

Status infer_scatter_reduce(InferContext &c) {
  KILN_TRY(require_reduction(c));
  return infer_scatter(c);
}
Status decompose_scatter_reduce(DecomposeContext &c) {
  Composer g(c);
  return g.give({reduced(c, g, c.node.inputs[1], c.attr("dim").i64())});
}

Status infer_index_add(InferContext &c) {
  const TensorType &x = c.inputs[0], &index = c.inputs[1], &source = c.inputs[2];
  KILN_TRY(require_rank(c, 1, 1));
  KILN_TRY(require_rank(c, 2, x.rank()));
  KILN_ASSIGN(const int64_t dim, c.axis(c.attr("dim").i64(), x.rank(), "dim"));
  for (size_t d = 0; d < x.rank(); ++d)
    KILN_TRY(c.require_equal(source.dims[d], d == static_cast<size_t>(dim) ? index.dims[0] : x.dims[d],
                             str_cat("dim ", d, " of source and of ", d == static_cast<size_t>(dim) ? "index" : "x")));
  return infer_same(c);
}
Status infer_index_reduce(InferContext &c) {
  KILN_TRY(require_reduction(c));
  return infer_index_add(c);
}
// The index at each element of source.
ValueId at_elements(DecomposeContext &c, Composer &g) {
  const Shape &dims = c.type(c.node.inputs[2]).dims;
  std::vector<int64_t> others;
  for (size_t d = 0; d < dims.size(); ++d)
    if (d != dim_of(c, dims.size())) others.push_back(static_cast<int64_t>(d));
  const ValueId index = g("unsqueeze", {c.node.inputs[1]}, {{"dims", ints(others)}});
  return g("expand", {index}, {{"shape", AttrValue(dims)}});
}
Status decompose_index_add(DecomposeContext &c) {
  Composer g(c);
  const ValueId index = at_elements(c, g);
  return g.give({g("scatter_add", {c.node.inputs[0], index, c.node.inputs[2]}, {{"dim", c.attr("dim")}})});
}
Status decompose_index_reduce(DecomposeContext &c) {
  Composer g(c);
  const ValueId index = at_elements(c, g);
  return g.give({reduced(c, g, index, c.attr("dim").i64())});
}

Writing writing_of(const ReferenceContext &c) {
  if (!c.op.find_attr("reduction")) return {Mode::add};
  return {reduction_of(c.attrs).mode, c.attr("include_self").boolean(), is_mean(c.attrs)};
}
Status reference_along(ReferenceContext &c) { return write_along(c, writing_of(c)); }

// ---- scatter_nd, scatter_nd_add

Status infer_scatter_nd(InferContext &c) {
  Shape shape;
  KILN_TRY(infer_rows_of_indices(c, 1, shape));
  KILN_TRY(require_rank(c, 2, shape.size()));
  for (size_t d = 0; d < shape.size(); ++d)
    KILN_TRY(c.require_equal(c.inputs[2].dims[d], shape[d], str_cat("dim ", d, " of source and of what is picked")));
  return infer_same(c);
}
Status decompose_scatter_nd(DecomposeContext &c) {
  Composer g(c);
  std::vector<ValueId> operands{c.node.inputs[0], c.node.inputs[2]};
  for (ValueId column : columns_of(c, g, c.node.inputs[1])) operands.push_back(column);
  return g.give({g(c.op.name == "scatter_nd" ? "index_put" : "index_put_add", operands)});
}
Status reference_scatter_nd(ReferenceContext &c) {
  const RefTensor &source = *c.inputs[2];
  const RowPlaces places(*c.inputs[0], *c.inputs[1]);
  const Mode mode = c.op.name == "scatter_nd" ? Mode::plain : Mode::add;
  return write_all(c, {mode}, source, source.size(), [&](int64_t k) -> Result<Move> {
    KILN_ASSIGN(const int64_t to, places.at(k));
    return Move{to, k};
  });
}

// ---- embedding_bag

Status infer_embedding_bag(InferContext &c) {
  KILN_TRY(require_word(c, "mode", {"sum", "mean", "max"}));
  KILN_TRY(require_rank(c, 0, 2));
  const bool ragged = c.inputs.size() > 2;
  KILN_TRY(require_rank(c, 1, ragged ? 1 : 2));
  if (ragged) KILN_TRY(require_rank(c, 2, 1));
  const Dim &bags = ragged ? c.inputs[2].dims[0] : c.inputs[1].dims[0];
  c.results = {make_type(c.inputs[0].dtype, {bags, c.inputs[0].dims[1]})};
  return {};
}

Status decompose_embedding_bag(DecomposeContext &c) {
  Composer g(c);
  const std::string &mode = c.attr("mode").text_value();
  const ValueId weight = c.node.inputs[0], index = c.node.inputs[1];
  const ValueId rows = g("embedding", {weight, index});
  const DType dtype = c.type(weight).dtype;
  if (c.node.inputs.size() == 2) {
    const AttrMap along{{"dims", ints({1})}};
    const ValueId length = g.count(weight, c.type(index).dims[1]);
    if (mode == "max") {
      const ValueId none = g("eq", {length, g.number(weight, 0)});
      return g.give({g("where", {none, g.number(weight, 0), g("max", {rows}, along)})});
    }
    const ValueId sum = g("sum", {rows}, along);
    return g.give({mode == "sum" ? sum : g("div", {sum, g("maximum", {length, g.number(weight, 1)})})});
  }
  // Element k is in the last bag that begins at k or before; none begins before one that precedes it.
  const ValueId offsets = g("cummax", {c.node.inputs[2]}, {{"dim", 0}});
  const Shape &count = c.type(index).dims;
  const DType counts = c.type(offsets).dtype;
  const ValueId numbers = g("iota", {}, {{"dtype", counts}, {"shape", AttrValue(count)}});
  const ValueId behind = g("searchsorted", {offsets, numbers}, {{"right", true}});
  const ValueId bag = g("sub", {behind, g.number(behind, 1)});
  const ValueId begin = g.full(dtype, c.node.results[0].dims, 0);
  if (mode == "max")
    return g.give({g("index_reduce", {begin, bag, rows}, {{"dim", 0}, {"reduction", "max"}, {"include_self", false}})});
  const ValueId sum = g("index_add", {begin, bag, rows}, {{"dim", 0}});
  if (mode == "sum") return g.give({sum});
  const Shape bags{c.node.results[0].dims[0]};
  const ValueId lengths = g("index_add", {g.full(dtype, bags, 0), bag, g.full(dtype, count, 1)}, {{"dim", 0}});
  const ValueId divisor = g("unsqueeze", {g("maximum", {lengths, g.number(lengths, 1)})}, {{"dims", ints({1})}});
  return g.give({g("div", {sum, divisor})});
}

Status reference_embedding_bag(ReferenceContext &c) {
  const RefTensor &weight = *c.inputs[0], &index = *c.inputs[1];
  const std::string &mode = c.attr("mode").text_value();
  const int64_t rows = weight.shape[0], columns = weight.shape[1], bags = c.results[0].shape[0];
  const ReadElements<double> weights(weight);
  const ReadElements<int64_t> indices(index), offsets(*c.inputs.back());
  std::vector<int64_t> lengths(static_cast<size_t>(bags), 0), begins;
  for (int64_t b = 0; c.inputs.size() > 2 && b < bags; ++b) begins.push_back(offsets[static_cast<size_t>(b)]);
  for (size_t b = 1; b < begins.size(); ++b) begins[b] = std::max(begins[b], begins[b - 1]);
  std::vector<long double> sums(static_cast<size_t>(bags * columns), 0);
  for (int64_t k = 0; k < index.size(); ++k) {
    int64_t bag = c.inputs.size() == 2 ? k / index.shape[1] : -1;
    for (const int64_t begin : begins) bag += begin <= k;
    if (bag < 0) return out_of_range(bag, bags);
    const int64_t row = indices[static_cast<size_t>(k)];
    if (row < 0 || row >= rows) return out_of_range(row, rows);
    const bool first = lengths[static_cast<size_t>(bag)]++ == 0;
    for (int64_t d = 0; d < columns; ++d) {
      long double &at = sums[static_cast<size_t>(bag * columns + d)];
      const long double value = weights[static_cast<size_t>(row * columns + d)];
      at = mode != "max" ? at + value : first ? value : larger(at, value);
    }
  }
  for (size_t k = 0; k < sums.size(); ++k) {
    const int64_t length = mode == "mean" ? std::max<int64_t>(lengths[k / static_cast<size_t>(columns)], 1) : 1;
    sums[k] /= static_cast<long double>(length);
  }
  give_all(c.results[0], sums);
  return {};
}

// ---- samples

void samples_scatter_reduce(SampleSink &out) {
  const Dim n = sym("n"), m = sym("m");
  for (const Reduction &r : reductions)
    for (const bool self : {true, false})
      add_index_sample(out, str_cat(r.name, self ? "" : "_without_self"), {f32({7, 17}), i64({5, 17}), f32({5, 17})},
                       {{"dim", 0}, {"reduction", std::string(r.name)}, {"include_self", self}}, 7);
  add_index_sample(out, "integers", {i64({9}), i64({4}), i64({4})},
                   {{"dim", 0}, {"reduction", "max"}, {"include_self", false}}, 9);
  add_index_sample(out, "symbolic", {f32({n, m}), i64({n, 9}), f32({n, 9})}, {{"dim", 1}, {"reduction", "mean"}}, 7,
                   {{"n", 5}, {"m", 7}});
}
void samples_index_add(SampleSink &out) {
  const Dim n = sym("n"), m = sym("m");
  add_index_sample(out, "rows", {f32({7, 17}), i64({9}), f32({9, 17})}, {{"dim", 0}}, 7);
  add_index_sample(out, "columns", {f32({3, 33}), i64({5}), f32({3, 5})}, {{"dim", -1}}, 33);
  add_index_sample(out, "integers", {i64({9}), i64({4}), i64({4})}, {{"dim", 0}}, 9);
  add_index_sample(out, "nothing", {f32({7, 3}), i64({0}), f32({0, 3})}, {{"dim", 0}}, 7);
  add_index_sample(out, "symbolic", {f32({n, m}), i64({9}), f32({9, m})}, {{"dim", 0}}, 5, {{"n", 5}, {"m", 33}});
}
void samples_index_reduce(SampleSink &out) {
  const Dim n = sym("n"), m = sym("m");
  for (const Reduction &r : reductions)
    add_index_sample(out, std::string(r.name), {f32({7, 17}), i64({9}), f32({9, 17})},
                     {{"dim", 0}, {"reduction", std::string(r.name)}, {"include_self", r.mode == Mode::mul}}, 7);
  add_index_sample(out, "symbolic", {f32({n, m}), i64({m}), f32({n, m})}, {{"dim", 1}, {"reduction", "min"}}, 7,
                   {{"n", 5}, {"m", 7}});
}
void samples_scatter_nd(SampleSink &out) {
  const Dim n = sym("n"), m = sym("m");
  add_index_sample(out, "elements", {f32({7, 9}), i64({33, 2}), f32({33})}, {}, 7);
  add_index_sample(out, "rows", {f32({7, 17}), i64({2, 3, 1}), f32({2, 3, 17})}, {}, 7);
  add_index_sample(out, "one", {f32({5, 5, 5}), i64({2}), f32({5})}, {}, 5);
  add_index_sample(out, "integers", {i64({9, 9}), i64({4, 2}), i64({4})}, {}, 9);
  add_index_sample(out, "nothing", {f32({7, 3}), i64({0, 2}), f32({0})}, {}, 7);
  add_index_sample(out, "symbolic", {f32({n, 9, m}), i64({5, 2}), f32({5, m})}, {}, 5, {{"n", 5}, {"m", 33}});
}
void samples_embedding_bag(SampleSink &out) {
  const Dim n = sym("n"), m = sym("m");
  for (const char *mode : {"sum", "mean", "max"}) {
    add_index_sample(out, str_cat(mode, "_rows"), {f32({7, 9}), i64({5, 4})}, {{"mode", mode}}, 7);
    add_index_sample(out, str_cat(mode, "_ragged"), {f32({7, 9}), i64({12}), i64({5})}, {{"mode", mode}}, 7);
    out.back().given = {{2, i64_data({5}, {0, 3, 3, 4, 12})}};
  }
  add_index_sample(out, "indices_of_32_bits", {f32({7, 9}), make_type(DType::i32, {5, 4})}, {{"mode", "sum"}}, 7);
  add_index_sample(out, "empty_bags", {f32({7, 9}), i64({3, 0})}, {{"mode", "max"}}, 7);
  add_index_sample(out, "symbolic", {f32({n, 9}), i64({n, m})}, {{"mode", "mean"}}, 7, {{"n", 7}, {"m", 3}});
}

// ---- records

const AttrDef scatter_reduction_attr{.name = "reduction",
                                     .doc = "'add', 'mul', 'min', 'max' or, of floats, 'mean'",
                                     .kind = AttrKind::text,
                                     .required = true};
const AttrDef include_self_attr =
    flag("include_self", "x is one of those that are combined, also where others come", true);

ArgDef index_arg(std::string_view name, std::string_view doc, Arity arity = Arity::one) {
  return {name, doc, index_types, arity, /*same_dtype=*/false};
}

Op by_rows(std::string_view name, std::string_view doc, uint32_t flags, DTypes types) {
  return {{.name = name,
           .doc = doc,
           .flags = flags,
           .args = {{"x", "any shape", types},
                    index_arg("indices", "[..., k]: for the first k dims of x"),
                    {"source", "[..., x's dims after these]", types}},
           .result_names = {"y"},
           .infer = infer_scatter_nd},
          {.decompose = decompose_scatter_nd,
           .reference = reference_scatter_nd,
           .gradient = through_decomposition(),
           .samples = samples_scatter_nd}};
}

const Op combining_records[] = {
    {{.name = "scatter_reduce",
      .doc =
          "x, with all source[..., k, ...] combined that are for y[..., index[..., k, ...], ...], in row-major order.",
      .args = {{"x", "any shape", numeric_types},
               index_arg("index", "of x's rank, and in no dim but `dim` longer than x"),
               {"source", "of x's rank, and in no dim shorter than index", numeric_types}},
      .result_names = {"y"},
      .attrs = {dim_attr("the dim that index tells the place in"), scatter_reduction_attr, include_self_attr},
      .infer = infer_scatter_reduce},
     {.decompose = decompose_scatter_reduce,
      .reference = reference_along,
      .gradient = through_decomposition(),
      .samples = samples_scatter_reduce}},
    {{.name = "index_add",
      .doc = "x, with part k of source along a dim added to part index[k] of x, in the order of k.",
      .args = {{"x", "at least one dim", numeric_types},
               index_arg("index", "[n]"),
               {"source", "x's shape, with n for its dim", numeric_types}},
      .result_names = {"y"},
      .attrs = {dim_attr("the dim that index tells the place in")},
      .infer = infer_index_add},
     {.decompose = decompose_index_add,
      .reference = reference_along,
      .gradient = through_decomposition(),
      .samples = samples_index_add}},
    {{.name = "index_reduce",
      .doc = "x, with all parts k of source along a dim combined that are for part index[k] of x, in the order of k.",
      .args = {{"x", "at least one dim", numeric_types},
               index_arg("index", "[n]"),
               {"source", "x's shape, with n for its dim", numeric_types}},
      .result_names = {"y"},
      .attrs = {dim_attr("the dim that index tells the place in"), scatter_reduction_attr, include_self_attr},
      .infer = infer_index_reduce},
     {.decompose = decompose_index_reduce,
      .reference = reference_along,
      .gradient = through_decomposition(),
      .samples = samples_index_reduce}},
    by_rows("scatter_nd",
            "x, with source[i, ...] at y[indices[i, 0], indices[i, 1], ..., ...]. Of two for one element the last in "
            "row-major order stays.",
            op_flags::moves, any_type),
    by_rows("scatter_nd_add",
            "x, with source[i, ...] added to y[indices[i, 0], indices[i, 1], ..., ...], in row-major order.", 0,
            numeric_types),
    {{.name = "embedding_bag",
      .doc =
          "The sum, mean or maximum of the rows of weight that each bag of indices names; 0 of an empty bag. A maximum "
          "is NaN if an element is, where PyTorch's depends on their order.",
      .args = {{"weight", "[rows, columns]", float_types},
               index_arg("index", "[bags, n]; with offsets [n]"),
               index_arg("offsets",
                         "[bags]: where in index each bag begins, the first at 0, each at the begin of the one before "
                         "it at least",
                         Arity::optional)},
      .result_names = {"y"},
      .attrs = {{.name = "mode", .doc = "'sum', 'mean' or 'max'", .kind = AttrKind::text, .fallback = "mean"}},
      .infer = infer_embedding_bag},
     {.decompose = decompose_embedding_bag,
      .reference = reference_embedding_bag,
      .gradient = by_rule("weight", Ties::first),
      .samples = samples_embedding_bag}},
};

}  // namespace

std::span<const Op> combining_ops() { return combining_records; }

}  // namespace kiln::ops
