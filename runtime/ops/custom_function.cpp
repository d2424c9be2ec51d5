// custom_function: a graph with a gradient of its author's. What it is called is no part of it: its graphs are all it
// is.
#include <algorithm>
#include <cassert>
#include <set>
#include <utility>

#include "runtime/ops/family.h"
#include "runtime/ops/nesting.h"

namespace kiln::ops {
namespace {

Status infer_forward(InferContext &c, std::vector<TensorType> &saved) {
  KILN_ASSIGN(c.results, infer_nested(c, *c.attr("forward_graph").graph(), c.inputs));
  const int64_t results = c.attr("results").i64();
  if (results < 1 || results > static_cast<int64_t>(c.results.size()))
    return c.fail("results is ", results, ", expected 1 to the ", c.results.size(), " outputs of forward_graph");
  const auto first_saved = c.results.begin() + results;
  saved.assign(std::make_move_iterator(first_saved), std::make_move_iterator(c.results.end()));
  c.results.erase(first_saved, c.results.end());
  return {};
}

// The operands that `gradients` names, in its order.
Result<std::vector<TensorType>> differentiated(const InferContext &c) {
  std::vector<TensorType> types;
  std::set<int64_t> seen;
  for (const int64_t k : c.attr("gradients").i64_list()) {
    if (k < 0 || k >= static_cast<int64_t>(c.inputs.size()))
      return c.fail("gradients has ", k, "; there are ", c.inputs.size(), " operands");
    if (!seen.insert(k).second) return c.fail("gradients has ", k, " twice");
    const TensorType &operand = c.inputs[static_cast<size_t>(k)];
    if (!dtype_info(operand.dtype).is_float)
      return c.fail("gradients has ", k, ", but that operand is ", operand.text(), "; expected floats");
    types.push_back(make_type(operand.dtype, operand.dims));
  }
  return types;
}

Result<std::vector<TensorType>> infer_backward(InferContext &c, std::vector<TensorType> given) {
  given.insert(given.end(), c.results.begin(), c.results.end());
  Result<std::vector<TensorType>> outputs = infer_nested(c, *c.attr("backward_graph").graph(), given);
  if (!outputs.ok()) return outputs.take_status().with_prefix("backward_graph, of what is saved, then tangents: ");
  return outputs;
}

Status infer_custom_function(InferContext &c) {
  std::vector<TensorType> saved;
  KILN_TRY(infer_forward(c, saved));
  KILN_ASSIGN(const std::vector<TensorType> expected, differentiated(c));
  KILN_ASSIGN(const std::vector<TensorType> outputs, infer_backward(c, std::move(saved)));
  return require_outputs(c, "backward_graph", outputs, expected, "the operands that gradients names");
}

Status reference_custom_function(ReferenceContext &c) {
  KILN_ASSIGN(std::vector<RefTensor> made, c.run_graph(*c.attr("forward_graph").graph(), c.inputs));
  std::move(made.begin(), made.begin() + static_cast<ptrdiff_t>(c.results.size()), c.results.begin());
  return {};
}

// (x, w) -> x * w, saving both; its gradient as the product's is.
AttrMap product() {
  const std::vector<TensorType> two = {f32({sym("n"), sym("k")}), f32({sym("n"), sym("k")})};
  std::vector<TensorType> three = two;
  three.push_back(two[0]);
  return {{"forward_graph", small_graph(two, {{"mul", {0, 1}}}, {2, 0, 1})},
          {"backward_graph", small_graph(three, {{"mul", {2, 1}}, {"mul", {2, 0}}}, {3, 4})},
          {"results", 1},
          {"gradients", ints({0, 1})}};
}

void samples_custom_function(SampleSink &out) {
  out.push_back({.name = "literal", .inputs = {f32({3, 8}), f32({3, 8})}, .attrs = product()});
  const Dim m = sym("m");
  out.push_back(
      {.name = "symbolic", .inputs = {f32({m + 1, m}), f32({m + 1, m})}, .attrs = product(), .sizes = {{"m", 7}}});
  // Nothing is saved, and no operand has a gradient.
  const std::vector<TensorType> all = one_of_each({2, 3});
  SampleSink::value_type every{.name = "all_types", .inputs = all};
  std::vector<size_t> outputs;
  for (size_t i = 0; i < all.size(); ++i) outputs.push_back(i);
  every.attrs = {{"forward_graph", small_graph(all, {}, outputs)},
                 {"backward_graph", small_graph(all, {}, {})},
                 {"results", static_cast<int64_t>(all.size())},
                 {"gradients", ints({})}};
  out.push_back(std::move(every));
}

const Op custom_function_records[] = {
    {{.name = "custom_function",
      .doc = "The first `results` outputs of forward_graph at these operands. What else it gives is saved for "
             "backward_graph, which takes that, then a tangent of each result, and gives a gradient of each operand "
             "that `gradients` names. As of a call, passes see both graphs, and forward_graph is inlined after them.",
      .flags = op_flags::moves,
      .args = {{"args", "forward_graph's inputs, in order", any_type, Arity::variadic, /*same_dtype=*/false}},
      .attrs = {{.name = "forward_graph",
                 .doc = "of the operands: the results, then what is saved",
                 .kind = AttrKind::graph,
                 .required = true},
                {.name = "backward_graph",
                 .doc = "of what is saved, then the results' tangents: gradients",
                 .kind = AttrKind::graph,
                 .required = true},
                {.name = "results", .doc = "how many there are", .kind = AttrKind::i64, .fallback = 1},
                {.name = "gradients",
                 .doc = "the operands, by number, whose gradients backward_graph gives; floats",
                 .kind = AttrKind::i64,
                 .is_list = true,
                 .required = true}},
      .infer = infer_custom_function},
     {.reference = reference_custom_function, .gradient = by_rule("args"), .samples = samples_custom_function}},
};

}  // namespace

std::span<const Op> custom_function_ops() { return custom_function_records; }

}  // namespace kiln::ops
