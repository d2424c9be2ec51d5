// associative_scan: each element of sequences combined with all before it.
#include <map>
#include <numeric>
#include <utility>

#include "runtime/ops/family.h"
#include "runtime/ops/loop.h"
#include "runtime/ops/nesting.h"

namespace kiln::ops {
namespace {

Status infer_associative_scan(InferContext &c) {
  const size_t count = c.inputs.size();
  if (count == 0) return c.fail("there are no operands, expected at least one sequence");
  if (c.inputs[0].rank() == 0) return c.fail("operand 0 is ", c.inputs[0].text(), ", expected a sequence");
  std::vector<TensorType> pairs;
  for (size_t k = 0; k < count; ++k) {
    if (c.inputs[k].rank() != c.inputs[0].rank())
      return c.fail("operand ", k, " is ", c.inputs[k].text(), ", operand 0 is ", c.inputs[0].text(),
                    "; expected the same rank");
    KILN_ASSIGN(const int64_t dim, c.axis(c.attr("dim").i64(), c.inputs[k].rank(), "dim"));
    Shape dims = c.inputs[k].dims;
    KILN_TRY(c.require_equal(dims[static_cast<size_t>(dim)], c.inputs[0].dims[static_cast<size_t>(dim)],
                             str_cat("dim ", dim, " of operands ", k, " and 0")));
    dims.erase(dims.begin() + dim);
    pairs.push_back(make_type(c.inputs[k].dtype, std::move(dims)));
    c.results.push_back(make_type(c.inputs[k].dtype, c.inputs[k].dims));
  }
  const std::vector<TensorType> elements = pairs;
  pairs.insert(pairs.end(), elements.begin(), elements.end());
  KILN_TRY(require_row_major(c, "combine_graph"));
  const Graph &combine = *c.attr("combine_graph").graph();
  Bindings bindings;
  KILN_TRY(bindings.bind(c, combine, pairs));
  KILN_ASSIGN(const std::vector<TensorType> outputs, bindings.outputs(c, combine));
  return require_outputs(c, "combine_graph", outputs, elements, "an element of the operands");
}

AttrValue dim_brought_to(size_t dim, size_t to, size_t rank) {
  std::vector<int64_t> order;
  for (size_t d = 0; d < rank; ++d)
    if (d != dim) order.push_back(static_cast<int64_t>(d));
  order.insert(order.begin() + static_cast<int64_t>(to), static_cast<int64_t>(dim));
  return ints(std::move(order));
}

// (carried, is this the first?, element) -> (carried anew, the same as a result): the first element as it is, later
// ones combined with what came before.
Result<GraphPtr> combining_turn(const DecomposeContext &c, const GraphPtr &combine,
                                std::span<const TensorType> elements) {
  std::map<Dim, Dim> symbols;  // a nested graph has its own; what binds them are bare dims
  const auto inside = [&](const TensorType &type) {
    Shape dims;
    for (const Dim &dim : type.dims)
      dims.push_back(dim.is_integer()
                         ? dim
                         : symbols.try_emplace(dim, Expr::symbol(str_cat("size", symbols.size()))).first->second);
    return make_type(type.dtype, std::move(dims));
  };
  std::vector<TensorType> types;
  for (const TensorType &element : elements) types.push_back(inside(element));
  const size_t count = elements.size();
  types.push_back(make_type(DType::boolean, {}));
  for (size_t k = 0; k < count; ++k) types.push_back(TensorType(types[k]));
  LoopGraph turn(c);
  KILN_ASSIGN(const std::vector<ValueId> given, turn.inputs(types));
  const ValueId is_first = given[count];
  // Nothing is carried into the first turn: there an element is combined with itself, and not with what may be no data.
  std::vector<ValueId> operands, outputs;
  for (size_t k = 0; k < count; ++k) operands.push_back(turn.g("where", {is_first, given[count + 1 + k], given[k]}));
  operands.insert(operands.end(), given.begin() + static_cast<int64_t>(count) + 1, given.end());
  const ValueId combined = turn.g("call", operands, {{"graph", combine}});
  for (size_t k = 0; k < count; ++k)
    outputs.push_back(turn.g("where", {is_first, operands[count + k], {combined.node, static_cast<uint32_t>(k)}}));
  for (size_t k = 0; k < count; ++k) outputs.push_back(outputs[k]);
  return turn.finish(outputs);
}

struct Scanned {
  std::vector<ValueId> last, all;  // of each sequence: the last result, all of them
};

// Along dim 0.
Result<Scanned> scan_in_order(DecomposeContext &c, const GraphPtr &combine, const std::vector<ValueId> &sequences) {
  Composer g(c);
  const bool reverse = c.attr("reverse").boolean();
  const size_t count = sequences.size();
  const Dim length = c.type(sequences[0]).dims[0];
  std::vector<TensorType> elements;
  std::vector<ValueId> operands;
  for (const ValueId x : sequences) {
    elements.push_back(element_of(c.type(x)));
    operands.push_back(g.full(elements.back().dtype, elements.back().dims, 0));
  }
  const ValueId number = g("iota", {}, {{"shape", AttrValue(Shape{length})}, {"dim", 0}});
  const ValueId first = g.count(number, reverse ? length - 1 : Dim(0));
  operands.push_back(g("eq", {number, first}));
  operands.insert(operands.end(), sequences.begin(), sequences.end());
  KILN_ASSIGN(GraphPtr body, combining_turn(c, combine, elements));
  const ValueId scanned = g("scan", operands,
                            {{"body_graph", std::move(body)},
                             {"carried", static_cast<int64_t>(count)},
                             {"sequences", static_cast<int64_t>(count) + 1},
                             {"reverse", reverse}});
  Scanned made;
  for (uint32_t k = 0; k < count; ++k) made.last.push_back({scanned.node, k});
  for (uint32_t k = 0; k < count; ++k) made.all.push_back({scanned.node, static_cast<uint32_t>(count) + k});
  KILN_TRY(g.give({}));
  return made;
}

// So many elements are combined one after the other, and such blocks side by side: a sequence alone has one lane of one
// thread. In blocks it is walked thrice, so that a sequence of many channels, which has lanes enough, loses by them:
// they are longer than most such sequences. And they do not lie a power of two apart, which caches would put in one
// place.
constexpr int64_t block = 16384 + 16;

// Along dim 0, in blocks: each in order, their last results in order, and what came before a block into each of its
// elements. What fills the last block up is its last element once more.
Result<std::vector<ValueId>> scan_in_blocks(DecomposeContext &c, const std::vector<ValueId> &sequences) {
  Composer g(c);
  const GraphPtr &combine = c.attr("combine_graph").graph();
  KILN_ASSIGN(const GraphPtr of_blocks, side_by_side(*combine, 1));
  KILN_ASSIGN(const GraphPtr of_all, side_by_side(*combine, 2));
  const bool reverse = c.attr("reverse").boolean();
  const Dim length = c.type(sequences[0]).dims[0], blocks = ceil_div(length, block), turns = min(length, block),
            whole = blocks * turns, front = reverse ? whole - length : Dim(0);
  const auto counted = [&](const Dim &size) { return g("iota", {}, {{"shape", AttrValue(Shape{size})}, {"dim", 0}}); };
  const auto swapped = [&](ValueId x) {
    std::vector<int64_t> order(c.type(x).rank());
    std::iota(order.begin(), order.end(), 0);
    std::swap(order[0], order[1]);
    return g("permute", {x}, {{"dims", ints(std::move(order))}});
  };

  const ValueId places = counted(whole);
  const ValueId at = reverse ? g("maximum", {g("sub", {places, g.count(places, front)}), g.number(places, 0)})
                             : g("minimum", {places, g.count(places, max(length - 1, 0))});
  std::vector<ValueId> columns;
  for (const ValueId x : sequences) {
    const ValueId filled = whole == length ? x : g("index_select", {x, at}, {{"dim", 0}});
    KILN_TRY(g.give({}));
    Shape dims = c.type(filled).dims;
    dims.erase(dims.begin());
    dims.insert(dims.begin(), {blocks, turns});
    columns.push_back(swapped(g("reshape", {filled}, {{"shape", AttrValue(std::move(dims))}})));
  }
  KILN_TRY(g.give({}));
  KILN_ASSIGN(const Scanned inside, scan_in_order(c, of_blocks, columns));
  KILN_ASSIGN(const Scanned between, scan_in_order(c, combine, inside.last));

  const ValueId number = counted(blocks), last = g.count(number, max(blocks - 1, 0));
  const ValueId first = reverse ? last : g.number(number, 0);
  const ValueId before = reverse ? g("minimum", {g("add", {number, g.number(number, 1)}), last})
                                 : g("maximum", {g("sub", {number, g.number(number, 1)}), first});
  std::vector<ValueId> operands;
  for (size_t k = 0; k < sequences.size(); ++k) {
    const ValueId came = g("index_select", {between.all[k], before}, {{"dim", 0}});
    operands.push_back(g("expand", {came}, {{"shape", AttrValue(c.type(inside.all[k]).dims)}}));
  }
  operands.insert(operands.end(), inside.all.begin(), inside.all.end());
  const ValueId combined = g("call", operands, {{"graph", of_all}}), is_first = g("eq", {number, first});
  std::vector<ValueId> results;
  for (uint32_t k = 0; k < sequences.size(); ++k) {
    KILN_TRY(g.give({}));
    Shape dims = c.type(sequences[k]).dims, beside(dims.size(), 1);
    beside[0] = blocks;
    const ValueId kept = g("reshape", {is_first}, {{"shape", AttrValue(std::move(beside))}});
    const ValueId y = swapped(g("where", {kept, inside.all[k], {combined.node, k}}));
    dims[0] = whole;
    results.push_back(g("slice", {g("reshape", {y}, {{"shape", AttrValue(std::move(dims))}})},
                        {{"dim", 0}, {"start", front}, {"end", front + length}}));
  }
  KILN_TRY(g.give({}));
  return results;
}

Status decompose_associative_scan(DecomposeContext &c) {
  Composer g(c);
  const size_t rank = c.type(c.node.inputs[0]).rank(), dim = dim_of(c, rank);
  std::vector<ValueId> sequences;
  for (const ValueId x : c.node.inputs)
    sequences.push_back(dim == 0 ? x : g("permute", {x}, {{"dims", dim_brought_to(dim, 0, rank)}}));
  KILN_TRY(g.give({}));
  const GraphPtr &combine = c.attr("combine_graph").graph();
  const Dim length = c.type(sequences[0]).dims[0];
  std::vector<ValueId> all;
  if ((length.is_integer() && length.integer() <= block) || !takes_elements_apart(*combine)) {
    KILN_ASSIGN(Scanned scanned, scan_in_order(c, combine, sequences));
    all = std::move(scanned.all);
  } else {
    KILN_ASSIGN(all, scan_in_blocks(c, sequences));
  }
  for (ValueId &y : all)
    if (dim != 0) y = g("permute", {y}, {{"dims", dim_brought_to(0, dim, rank)}});
  return g.give(std::move(all));
}

Status reference_associative_scan(ReferenceContext &c) {
  const size_t count = c.inputs.size(), dim = dim_of(c, c.inputs[0]->shape.size());
  const auto turns = static_cast<size_t>(c.inputs[0]->shape[dim]);
  std::vector<RefTensor> state;
  for (size_t n = 0; n < turns; ++n) {
    const size_t turn = c.attr("reverse").boolean() ? turns - 1 - n : n;
    std::vector<RefTensor> elements;
    for (const RefTensor *operand : c.inputs) elements.push_back(element_at(c, *operand, dim, turn));
    if (n > 0) {
      std::vector<const RefTensor *> pairs;
      for (const auto *side : {&state, &elements})
        for (const RefTensor &element : *side) pairs.push_back(&element);
      KILN_ASSIGN(state, c.run_graph(*c.attr("combine_graph").graph(), pairs));
    } else {
      state = std::move(elements);
    }
    for (size_t k = 0; k < count; ++k) set_element(c, c.results[k], dim, turn, state[k]);
  }
  return {};
}

void samples_associative_scan(SampleSink &out) {
  const Dim n = sym("n"), t = sym("t");
  // (a, b) then (c, d): x -> c (a x + b) + d.
  const auto affine = [](const TensorType &type) {
    return small_graph({type, type, type, type}, {{"mul", {0, 2}}, {"mul", {2, 1}}, {"add", {5, 3}}}, {4, 6});
  };
  const auto sample = [&](const char *name, Shape shape, int64_t dim, bool reverse = false,
                          std::map<std::string, int64_t> sizes = {}) {
    const TensorType type = f32(std::move(shape));
    Shape inside;
    for (size_t d = 1; d < type.rank(); ++d) inside.push_back(sym(d == 1 ? "k" : "l"));
    out.push_back({.name = name,
                   .inputs = {type, type},
                   .attrs = {{"combine_graph", affine(f32(std::move(inside)))}, {"dim", dim}, {"reverse", reverse}},
                   .sizes = std::move(sizes),
                   .low = -1,
                   .high = 1});
  };
  sample("rows", {5, 17}, 0);
  sample("columns", {5, 9}, -1);
  sample("middle", {2, 7, 3}, 1);
  sample("reverse", {6, 5}, 0, true);
  sample("vector", {9}, 0);
  sample("one", {1, 5}, 0);
  sample("empty", {0, 5}, 0);
  sample("symbolic", {t, 2 * n}, 0, true, {{"t", 4}, {"n", 3}});
  sample("symbolic_none", {n, t}, 1, false, {{"t", 0}, {"n", 3}});
  // Products modulo what came first: nothing is divided by what no sequence holds.
  const auto modular = small_graph({i64({sym("k")}), i64({sym("k")}), i64({sym("k")}), i64({sym("k")})},
                                   {{"mul", {0, 2}}, {"remainder", {4, 1}}}, {5, 1});
  out.push_back({.name = "divides",
                 .inputs = {i64({5, 3}), i64({5, 3})},
                 .attrs = {{"combine_graph", modular}},
                 .int_low = 1,
                 .int_high = 9});
  const std::vector<TensorType> elements = one_of_each({2});
  std::vector<TensorType> inside = elements;
  inside.insert(inside.end(), elements.begin(), elements.end());
  std::vector<size_t> second;
  for (size_t k = 0; k < elements.size(); ++k) second.push_back(elements.size() + k);
  out.push_back({.name = "every_dtype",
                 .inputs = one_of_each({3, 2}),
                 .attrs = {{"combine_graph", small_graph(inside, {}, second)}}});
}

const Op associative_scan_records[] = {
    {{.name = "associative_scan",
      .doc =
          "The elements of sequences along a dim combined with all before them: y[0] = x[0], y[i] = combine(y[i - 1], "
          "x[i]), of several sequences side by side. The combination should be associative: where its graph is of "
          "pointwise ops, blocks of 16,400 elements are combined each in order, then with what came before the block; "
          "other graphs combine in the sequence's order.",
      .flags = op_flags::moves,
      .args = {{"args", "sequences of one length along dim", any_type, Arity::variadic, /*same_dtype=*/false}},
      .attrs = {{.name = "combine_graph",
                 .doc = "of an element of each, then a later one of each, all without dim; gives one of each",
                 .kind = AttrKind::graph,
                 .required = true},
                dim_attr("the dim to go along", 0),
                flag("reverse", "from the last element to the first", false)},
      .infer = infer_associative_scan},
     {.decompose = decompose_associative_scan,
      .reference = reference_associative_scan,
      .gradient = through_decomposition(),
      .samples = samples_associative_scan}},
};

}  // namespace

std::span<const Op> associative_scan_ops() { return associative_scan_records; }

}  // namespace kiln::ops
