#include "runtime/ops/reference.h"

#include <optional>

#include "runtime/ops/element_access.h"
#include "runtime/ops/family.h"
#include "runtime/ops/nested.h"

namespace kiln {

// ---- one node

namespace {

using Sizes = std::map<std::string, int64_t>;

int64_t evaluate(const Dim &dim, const Sizes &sizes) {
  return dim.evaluate([&](const std::string &symbol) {
    auto found = sizes.find(symbol);
    return found == sizes.end() ? int64_t{0} : found->second;
  });
}
Shape evaluate(const Shape &shape, const Sizes &sizes) {
  Shape values;
  for (const Dim &dim : shape) values.push_back(evaluate(dim, sizes));
  return values;
}

}  // namespace

TensorType evaluate(const TensorType &type, const Sizes &sizes) {
  return make_type(type.dtype, evaluate(type.dims, sizes));
}

AttrMap evaluate(AttrMap attrs, const Sizes &sizes) {
  for (auto &[name, value] : attrs)
    if (auto *dims = std::get_if<std::vector<Dim>>(&value.items)) *dims = evaluate(*dims, sizes);
  return attrs;
}

namespace {

std::vector<int64_t> integers(const Shape &shape) {
  std::vector<int64_t> values;
  for (const Dim &dim : shape) values.push_back(dim.integer());
  return values;
}

// The view's map as one step a dim through the operand's elements, where it is that regular.
struct Strided {
  int64_t begin = 0;
  std::vector<int64_t> strides;
};
std::optional<Strided> strided(const Expr &offset, size_t rank) {
  Strided s;
  Expr rest = offset;
  for (size_t d = 0; d < rank; ++d) {
    const auto id = static_cast<uint32_t>(d);
    std::optional<Expr> step = offset.coefficient(id);
    if (!step || !step->is_integer()) return std::nullopt;
    s.strides.push_back(step->integer());
    rest = rest.substitute([&](const Expr &leaf) -> std::optional<Expr> {
      if (leaf.kind() == Expr::Kind::axis && leaf.id() == id) return Expr(0);
      return std::nullopt;
    });
  }
  if (!rest.is_integer()) return std::nullopt;
  s.begin = rest.integer();
  return s;
}

Result<Expr> view_offset(const Op &op, const TensorType &operand, const TensorType &result, const AttrMap &attrs,
                         std::span<const Expr> index) {
  ViewContext context{op, operand, result, attrs, index, {}};
  KILN_TRY(op.view(context));
  const Shape strides = row_major_strides(operand.dims);
  Expr offset = 0;
  for (size_t d = 0; d < strides.size(); ++d) offset += context.operand_index[d] * strides[d];
  return offset;
}

// Walks the map of a view op.
Status run_view(const ReferenceContext &c, const TensorType &operand, const TensorType &result) {
  const RefTensor &x = *c.inputs[0];
  RefTensor &y = c.results[0];
  if (y.size() == 0) return {};
  std::vector<Expr> axes;
  for (size_t d = 0; d < result.rank(); ++d) axes.push_back(Expr::axis(static_cast<uint32_t>(d), result.dims[d]));
  KILN_ASSIGN(Expr offset, view_offset(c.op, operand, result, c.attrs, axes));
  return ops::dispatch(y, [&](auto zero) -> Status {
    using T = decltype(zero);
    const ops::ReadElements<T> in(x);
    const ops::WriteElements<T> out(y);
    if (std::optional<Strided> map = strided(offset, result.rank()))
      return ops::walk_in_ranges<1>(c, y.shape, {map->strides}, [&](size_t k, auto at) {
        out.set(k, in[static_cast<size_t>(map->begin + at[0])]);
      });
    std::vector<Expr> index(y.shape.size(), 0);  // otherwise: at each index on its own
    for (size_t k = 0; k < static_cast<size_t>(y.size()); ++k) {
      KILN_ASSIGN(Expr from, view_offset(c.op, operand, result, c.attrs, index));
      out.set(k, in[static_cast<size_t>(from.integer())]);
      for (size_t d = index.size(); d-- > 0;) {
        index[d] += 1;
        if (!(index[d] == result.dims[d])) break;
        index[d] = 0;
      }
    }
    return {};
  });
}

// ---- one graph

// What flows through the graph: of each value that is still needed, its tensor.
class Run {
 public:
  Run(const Graph &graph, const OnResults &on_results, const OnTurn &on_turn, const ReferenceExecution &how)
      : graph_(graph), on_results_(on_results), on_turn_(on_turn), how_(how) {}

  Status bind(std::span<const RefTensor *const> arguments) {
    std::vector<uint32_t> signature(graph_.inputs().begin(), graph_.inputs().end());
    signature.insert(signature.end(), graph_.parameters().begin(), graph_.parameters().end());
    if (arguments.size() != signature.size())
      return invalid("reference: ", arguments.size(), " tensors are given, expected ", signature.size(),
                     " (inputs, then parameters)");
    for (size_t k = 0; k < signature.size(); ++k) KILN_TRY(bind_symbols(*graph_.find(signature[k]), *arguments[k]));
    for (size_t k = 0; k < signature.size(); ++k) {
      const Node &node = *graph_.find(signature[k]);
      if (integers(evaluate(node.results[0].dims, sizes_)) != arguments[k]->shape) return mismatch(node, *arguments[k]);
      values_[{node.id, 0}] = *arguments[k];
    }
    for (const auto &[name, info] : graph_.symbols()) {
      auto bound = sizes_.find(name);
      if (bound == sizes_.end()) continue;
      if (bound->second < info.min || bound->second > info.max || bound->second % info.divisor)
        return invalid("symbol '", name, "' is ", bound->second, ", expected ", info.min, " to ", info.max,
                       " in steps of ", info.divisor);
    }
    return {};
  }

  Status run(std::map<size_t, RefTensor> *copied) {
    for (const Node &node : graph_.nodes()) {
      if (node.kind == Node::Kind::constant) values_[{node.id, 0}] = constant(*node.constant);
      if (node.kind != Node::Kind::op) continue;
      KILN_TRY(named(node, run_node(node)));
      if (copied && node.op->flags & op_flags::mutates) note_copy(node, *copied);
    }
    return {};
  }

  const Sizes &sizes() const { return sizes_; }
  std::vector<RefTensor> outputs() {
    std::vector<RefTensor> all;
    for (const GraphOutput &output : graph_.outputs()) all.push_back(values_.at(output.value));
    return all;
  }

 private:
  static Status mismatch(const Node &node, const RefTensor &given) {
    auto number = [](int64_t n) { return str_cat(n); };
    return error(Code::type_mismatch, "'", node.name, "' is given as ", name_of(given.dtype), "[",
                 join(given.shape, ", ", number), "], expected ", node.results[0].text());
  }

  RefTensor constant(const TensorData &data) const {
    if (!how_.native) return to_reference(data);
    return view_of(data.dtype, data.shape, ops::dense_strides(data.shape), data.bytes.data());
  }

  Status bind_symbols(const Node &node, const RefTensor &given) {
    const TensorType &type = node.results[0];
    if (given.dtype != type.dtype || given.shape.size() != type.rank()) return mismatch(node, given);
    for (size_t d = 0; d < type.rank(); ++d)
      if (type.dims[d].kind() == Expr::Kind::symbol) sizes_.emplace(type.dims[d].symbol_name(), given.shape[d]);
    return {};
  }

  // The op is told once, here or by what failed.
  Status named(const Node &node, Status status) const {
    if (status.ok()) return status;
    const bool tells_op = status.message().starts_with(str_cat("[", node.op->name, "] "));
    if (!how_.is_of_a_node)
      return std::move(status).at_node(node.name, tells_op ? ": " : str_cat(" (", node.op->name, "): "));
    return tells_op ? std::move(status) : std::move(status).with_prefix(str_cat("[", node.op->name, "] "));
  }

  Status run_node(const Node &node) {
    for (const auto &[a, b, what] : node.equalities)
      if (evaluate(a, sizes_) != evaluate(b, sizes_))
        return error(Code::type_mismatch, what, "; ", a.text(), " is ", evaluate(a, sizes_), ", ", b.text(), " is ",
                     evaluate(b, sizes_));
    const Op &op = op_of(node);
    const AttrMap attrs = evaluate(node.attrs, sizes_);
    std::vector<const RefTensor *> inputs;
    for (ValueId input : node.inputs) inputs.push_back(&values_.at(input));
    std::vector<RefTensor> results;
    // What a kernel gave a graph of its own may be wider than its dtype, and views leave it so.
    const bool native = how_.native && (!op.view || inputs[0]->native);
    for (const TensorType &type : node.results) {
      results.push_back({type.dtype, integers(evaluate(type.dims, sizes_)), {}, {}});
      native ? results.back().allocate_native() : results.back().allocate();
    }
    ReferenceContext context{op,
                             inputs,
                             results,
                             attrs,
                             [&](const Graph &graph, std::span<const RefTensor *const> arguments) {
                               return in_graph_of(node, graph,
                                                  run_reference(graph, arguments, nullptr, on_results_, nullptr,
                                                                on_turn_ ? turns_in(node, graph) : on_turn_,
                                                                {how_.native, how_.threads, false}));
                             },
                             [&](int64_t turn) { return on_turn_ ? on_turn_(node.name, turn) : Status(); },
                             how_.threads};
    if (op.view) {
      KILN_TRY(run_view(context, evaluate(graph_.type(node.inputs[0]), sizes_), evaluate(node.results[0], sizes_)));
    } else {
      KILN_TRY(op.reference(context));
      for (RefTensor &result : results) {
        if (native && !result.native) result = narrowed(result);  // that a graph of the node gave
        result.fit();
      }
      for (const ResolvedSymbol &symbol : node.symbols)
        KILN_TRY(resolve(symbol, ops::ReadElements<int64_t>(results.back())[0]));
      if (on_results_) on_results_(graph_, node, context);
    }
    for (uint32_t k = 0; k < results.size(); ++k) values_[{node.id, k}] = std::move(results[k]);
    for (ValueId input : node.inputs)
      if (++used_[input] == graph_.use_count(input)) values_.erase(input);
    return {};
  }

  Status resolve(const ResolvedSymbol &symbol, int64_t size) {
    const SymbolInfo &info = graph_.symbols().at(symbol.name);
    const int64_t most = std::min(evaluate(symbol.bound, sizes_), info.max);
    if (size < info.min || size > most || size % info.divisor != 0)
      return error(Code::type_mismatch, resolved_size_error(symbol.name, size, info.min, most, info.divisor));
    sizes_[symbol.name] = size;
    return {};
  }

  // What a graph of the node's came to: an error at one of its nodes tells which of the graphs it is in, unless that is
  // the one which the node calls, or stands for several attributes.
  static Result<std::vector<RefTensor>> in_graph_of(const Node &node, const Graph &graph,
                                                    Result<std::vector<RefTensor>> made) {
    if (made.ok() || made.status().info()->node.empty()) return made;
    std::vector<std::string_view> attrs;
    for (const auto &[attr, nested] : nested_graphs(node))
      if (nested.get() == &graph) attrs.push_back(attr);
    if (attrs.size() != 1 || (is_call(node) && attrs[0] == called_attr(node))) return made;
    return made.take_status().with_node(attrs[0]);
  }

  // Of a graph that the node carries.
  OnTurn turns_in(const Node &node, const Graph &graph) const {
    std::string prefix = node.name;
    const auto graphs = nested_graphs(node);
    for (const auto &[attr, nested] : graphs)
      if (nested.get() == &graph && graphs.size() > 1) str_append(prefix, str_cat(".", attr));
    return [this, prefix](std::string_view name, int64_t turn) { return on_turn_(str_cat(prefix, ".", name), turn); };
  }

  void note_copy(const Node &node, std::map<size_t, RefTensor> &copied) {
    for (size_t k = 0; k < graph_.inputs().size(); ++k)
      if (graph_.inputs()[k] == node.inputs[0].node) copied[k] = values_.at({node.id, 0});
  }

  const Graph &graph_;
  const OnResults &on_results_;
  const OnTurn &on_turn_;
  const ReferenceExecution &how_;
  Sizes sizes_;
  std::map<ValueId, RefTensor> values_;
  std::map<ValueId, uint32_t> used_;
};

}  // namespace

std::string resolved_size_error(std::string_view symbol, int64_t size, int64_t min, int64_t max, int64_t divisor) {
  return str_cat("the size is ", size, ", expected ", min, " to ", max,
                 divisor == 1 ? "" : str_cat(" in steps of ", divisor), " (symbol '", symbol, "')");
}

Result<std::vector<RefTensor>> run_reference(const Graph &graph, std::span<const RefTensor *const> inputs,
                                             std::map<size_t, RefTensor> *copied, const OnResults &on_results,
                                             std::map<std::string, int64_t> *sizes, const OnTurn &on_turn,
                                             const ReferenceExecution &how) {
  Run run(graph, on_results, on_turn, how);
  KILN_TRY(run.bind(inputs));
  KILN_TRY(run.run(copied));
  if (sizes) *sizes = run.sizes();
  return run.outputs();
}

}  // namespace kiln
