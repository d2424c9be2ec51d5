#include "runtime/ops/registered.h"

#include <algorithm>

#include "jit/base/utf8.h"
#include "runtime/ops/nested.h"
#include "runtime/ops/reference.h"

namespace kiln {
namespace {

const RegisteredOp &of(const OpSchema &op) { return static_cast<const RegisteredOp &>(static_cast<const Op &>(op)); }

Status infer_by_function(InferContext &c) { return of(c.op).functions->infer(c); }

Status decompose_by_function(DecomposeContext &c) {
  KILN_TRY(of(c.op).functions->decompose(c));
  for (size_t k = 0; k < c.results.size(); ++k)
    if (c.results[k] == ValueId()) return error(Code::plugin_failed, "its decomposition yields no result ", k);
  return {};
}

// The node as the only one of a graph, with operands of these sizes.
Result<uint32_t> add_alone(const ReferenceContext &c, Edit &edit) {
  std::vector<ValueId> inputs;
  for (const RefTensor *x : c.inputs) {
    const Shape dims(x->shape.begin(), x->shape.end());
    KILN_ASSIGN(inputs.emplace_back(), edit.input(str_cat("x", inputs.size()), make_type(x->dtype, dims)));
  }
  return edit.add(&c.op, inputs, c.attrs);
}

Status reference_by_function(ReferenceContext &c) {
  Edit edit;
  KILN_ASSIGN(const uint32_t id, add_alone(c, edit));
  const Node &node = *edit.view().find(id);
  std::vector<TensorType> types;
  for (const ValueId input : node.inputs) types.push_back(edit.view().type(input));
  KILN_ASSIGN(const std::unique_ptr<OpRun> run, of(c.op).functions->open(node, std::move(types)));
  std::vector<RefTensor> dense;  // operands and results, where the function has them
  for (const RefTensor *x : c.inputs) dense.push_back(narrowed(*x));
  for (const RefTensor &y : c.results) {
    dense.push_back({y.dtype, y.shape, {}, {}});
    dense.back().allocate_native();
  }
  std::vector<RunArray> arrays;
  std::vector<void *> data;
  for (const RefTensor &array : dense) {
    arrays.push_back({array.dtype, array.shape});
    data.push_back(array.native->first);
  }
  run->resize(arrays);
  KILN_TRY(run->run(data));
  for (size_t k = 0; k < c.results.size(); ++k) {
    RefTensor &made = dense[c.inputs.size() + k];
    c.results[k] = c.results[k].native ? std::move(made) : widened(made);
  }
  return {};
}

Status too_deep(const OpSchema &op) {
  return error(Code::plugin_failed, "[", op.name, "] its decomposition has not ended ", most_decompositions,
               " deep: it comes back to itself, or is made of too many others");
}

// How many are under way, on the stack.
thread_local int decompositions = 0;
struct Deeper {
  Deeper() { ++decompositions; }
  ~Deeper() { --decompositions; }
};

Status reference_by_decomposition(ReferenceContext &c) {
  const Deeper deeper;
  if (decompositions > most_decompositions) return too_deep(c.op);
  Edit edit;
  KILN_ASSIGN(const uint32_t id, add_alone(c, edit));
  const Node node = *edit.view().find(id);
  DecomposeContext parts{.op = c.op, .edit = edit, .ops = *of(c.op).table, .node = node, .results = {}};
  KILN_TRY(c.op.decompose(parts));
  KILN_TRY(edit.set_output_values(parts.results));
  KILN_ASSIGN(const GraphPtr graph, edit.finish());
  KILN_ASSIGN(std::vector<RefTensor> results, c.run_graph(*graph, c.inputs));
  for (size_t k = 0; k < c.results.size(); ++k) c.results[k] = std::move(results[k]);
  return {};
}

}  // namespace

const RegisteredOp *registered(const OpSchema &op) { return op.flags & op_flags::registered ? &of(op) : nullptr; }

void ask_for_ops(const Graph &graph, const OpTable &ops) {
  for (const Node &node : graph.nodes())
    if (node.op && registered(*node.op)) (void)ops.find(node.op->name);
}

Status ask_for_parts(const Graph &graph, const OpTable &ops) {
  ask_for_ops(graph, ops);
  for (const Node &node : graph.nodes()) {
    for (const auto &[name, nested] : nested_graphs(node)) KILN_TRY(ask_for_parts(*nested, ops));
    const RegisteredOp *op = node.op ? registered(*node.op) : nullptr;
    if (!op || op->runs) continue;
    const Deeper deeper;
    if (decompositions > most_decompositions) return too_deep(*op);
    Edit edit;
    std::vector<ValueId> inputs;
    for (const ValueId input : node.inputs) {
      const TensorType &type = graph.type(input);
      KILN_ASSIGN(inputs.emplace_back(), edit.input(str_cat("x", inputs.size()), make_type(type.dtype, type.dims)));
    }
    KILN_ASSIGN(const uint32_t id, edit.add(op, inputs, node.attrs));
    const Node alone = *edit.view().find(id);
    DecomposeContext parts{.op = *op, .edit = edit, .ops = ops, .node = alone, .results = {}};
    if (Status status = op->decompose(parts); !status.ok())
      return std::move(status)
          .with_prefix(str_cat("decomposing '", node.name, "' [", op->name, "]: "))
          .with_node(node.name);
    KILN_TRY(edit.set_output_values(parts.results));
    KILN_ASSIGN(const GraphPtr made, edit.finish());
    KILN_TRY(ask_for_parts(*made, ops));
  }
  return {};
}

bool runs_itself(const Node &node) {
  const RegisteredOp *op = node.op ? registered(*node.op) : nullptr;
  if (!op || !op->runs) return false;
  const auto mark = node.annotations.find("kiln.decompose");
  return !op->decomposes || (mark != node.annotations.end() && mark->second.text_value() == "keep");
}

void complete(RegisteredOp &op) {
  op.flags |= op_flags::registered;
  op.OpSchema::infer = infer_by_function;
  if (op.decomposes) op.decompose = decompose_by_function;
  op.gradient = op.decomposes ? through_decomposition() : no_gradient("it was registered without one");
  op.reference = op.runs ? reference_by_function : reference_by_decomposition;
}

std::string wrong_with_name(std::string_view name) {
  constexpr size_t longest = 100;
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           c == '-';
  };
  if (!name.empty() && name.size() <= longest && std::ranges::all_of(name, is_letter)) return "";
  return str_cat("'", printable(name), "' is no name: 1 to ", longest, " letters, digits and _ . -");
}

std::vector<Sample> samples_of(const Op &op) {
  if (const RegisteredOp *own = registered(op)) return own->own_samples;
  SampleSink samples;
  if (op.samples) op.samples(samples);
  return samples;
}

}  // namespace kiln
