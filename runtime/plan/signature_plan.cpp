#include "runtime/plan/signature_plan.h"

#include <algorithm>
#include <map>
#include <set>

#include "runtime/plan/view_output.h"

namespace kiln {
namespace {

Plan::Argument argument_of(const std::string &name, const TensorType &type) {
  return {name, type.dtype, type.dims,
          type.strides.size() == type.rank() ? type.strides : row_major_strides(type.dims)};
}

std::vector<Plan::Argument> arguments_of(const Graph &graph, std::span<const uint32_t> ids) {
  std::vector<Plan::Argument> arguments;
  for (uint32_t id : ids) arguments.push_back(argument_of(graph.find(id)->name, graph.find(id)->results[0]));
  return arguments;
}

void add_slots(const std::vector<Plan::Argument> &arguments, Plan::Slot::Kind kind, Plan &plan) {
  for (uint32_t i = 0; i < arguments.size(); ++i) {
    const Plan::Argument &a = arguments[i];
    plan.slots.push_back({kind, i, span_bytes(a.dtype, a.dims, a.strides)});
  }
}

Status present_outputs(const Graph &graph, Plan &plan) {
  for (uint32_t i = 0; i < graph.outputs().size(); ++i) {
    const OutputLayout &layout = graph.outputs()[i].layout;
    switch (layout.kind) {
      case OutputLayout::Kind::row_major:
        break;
      case OutputLayout::Kind::strided:
        plan.presented.push_back({.output = i, .kind = Plan::Presented::Kind::strided, .strides = layout.strides});
        break;
      case OutputLayout::Kind::any:
        plan.presented.push_back({.output = i, .kind = Plan::Presented::Kind::any});
        break;
      case OutputLayout::Kind::view:
        KILN_ASSIGN(plan.presented.emplace_back(), present_view(graph, i));
        break;
    }
  }
  return {};
}

// Each symbol of the signature is bound by the first input that has it as a bare dimension.
Status bind_symbols(const Graph &graph, Plan &plan) {
  std::map<std::string, Plan::Symbol> bound;
  std::set<std::string> used;
  for (uint32_t i = 0; i < plan.inputs.size(); ++i) {
    for (uint32_t d = 0; d < plan.inputs[i].dims.size(); ++d) {
      const Dim &dim = plan.inputs[i].dims[d];
      if (dim.kind() != Expr::Kind::symbol) continue;
      Plan::Symbol symbol{.name = dim.symbol_name(), .input = i, .dim = d};
      if (auto declared = graph.symbols().find(symbol.name); declared != graph.symbols().end()) {
        symbol.min = declared->second.min;
        symbol.max = declared->second.max;
        symbol.divisor = declared->second.divisor;
      }
      bound.try_emplace(symbol.name, symbol);
    }
  }
  for (const auto *arguments : {&plan.inputs, &plan.parameters, &plan.outputs}) {
    for (const Plan::Argument &a : *arguments) {
      for (const Dim &dim : a.dims) dim.collect_symbols(used);
      for (const Dim &stride : a.strides) stride.collect_symbols(used);
    }
  }
  for (const Plan::Presented &p : plan.presented) {
    for (const Dim &stride : p.strides) stride.collect_symbols(used);
    p.offset.collect_symbols(used);
  }
  for (const std::string &name : used) {
    if (!bound.contains(name) && !graph.resolver(name)) return unbound(name);
  }
  for (auto &[name, symbol] : bound) plan.symbols.push_back(std::move(symbol));
  return {};
}

}  // namespace

Status unbound(std::string_view symbol) {
  return invalid("symbol '", symbol, "' is not bound: no input has it as a dimension by itself");
}

Expr span_bytes(DType dtype, const Shape &dims, const Shape &strides) {
  return span_elements(dims, strides) * Expr(static_cast<int64_t>(size_of(dtype)));
}

void add_checks(const Graph &graph, const NodeNames &names, Plan &plan) {
  std::set<std::pair<Expr, Expr>> seen;
  for (const Plan::Check &check : plan.checks) seen.insert({check.left, check.right});
  for (const Node &node : graph.nodes()) {
    for (const auto &[left, right, what] : node.equalities) {
      if (left == right || !seen.insert({left, right}).second) continue;
      plan.checks.push_back({left, right, str_cat("[", node.op->name, "] ", what), names.find(node.name)});
    }
  }
}

void list_donated(const Graph &graph, Plan &plan) {
  for (uint32_t i = 0; i < plan.inputs.size(); ++i) {
    const Plan::Argument &input = plan.inputs[i];
    const bool is_seen = std::ranges::any_of(plan.presented, [&](const Plan::Presented &p) {
      return p.kind == Plan::Presented::Kind::view && p.input == i;
    });
    if (graph.find(graph.inputs()[i])->annotations.contains("kiln.donate") && !is_seen &&
        input.strides == row_major_strides(input.dims))
      plan.donated_inputs.push_back(i);
  }
}

void add_resolved_symbols(const Graph &graph, const NodeNames &names, Plan &plan) {
  for (const Node &node : graph.nodes()) {
    for (const ResolvedSymbol &symbol : node.symbols) {
      const SymbolInfo &info = graph.symbols().at(symbol.name);
      plan.symbols.push_back({.name = symbol.name,
                              .min = info.min,
                              .max = info.max,
                              .divisor = info.divisor,
                              .resolved = true,
                              .bound = symbol.bound,
                              .node = names.find(node.name)});
    }
  }
}

Status fix_sizes(const FixedSizes &sizes, Plan &plan) {
  for (auto *arguments : {&plan.inputs, &plan.parameters, &plan.outputs})
    for (Plan::Argument &a : *arguments) {
      a.dims = at_sizes(a.dims, sizes);
      a.strides = at_sizes(a.strides, sizes);
    }
  for (Plan::Presented &p : plan.presented) {
    p.strides = at_sizes(p.strides, sizes);
    p.offset = at_sizes(p.offset, sizes);
  }
  for (Plan::Slot &slot : plan.slots) slot.size_bytes = at_sizes(slot.size_bytes, sizes);
  for (Plan::Check &check : plan.checks) {
    const Plan::Check general = check;
    check.left = at_sizes(check.left, sizes);
    check.right = at_sizes(check.right, sizes);
    if (check.left.is_integer() && check.right.is_integer() && !(check.left == check.right))
      return error(Code::type_mismatch, general.text(), "; they are ", check.left.text(), " and ", check.right.text());
  }
  std::erase_if(plan.checks, [](const Plan::Check &check) { return check.left == check.right; });
  std::erase_if(plan.symbols, [&](const Plan::Symbol &symbol) { return sizes.contains(symbol.name); });
  return {};
}

Result<Plan> plan_of_signature(const Graph &graph, const NodeNames &names) {
  Plan plan;
  plan.inputs = arguments_of(graph, graph.inputs());
  plan.parameters = arguments_of(graph, graph.parameters());
  for (const GraphOutput &output : graph.outputs()) {
    const TensorType &type = graph.type(output.value);
    plan.outputs.push_back(argument_of(output.name, make_type(type.dtype, type.dims)));
  }
  KILN_TRY(present_outputs(graph, plan));
  KILN_TRY(bind_symbols(graph, plan));
  add_slots(plan.inputs, Plan::Slot::Kind::input, plan);
  add_slots(plan.parameters, Plan::Slot::Kind::parameter, plan);
  add_slots(plan.outputs, Plan::Slot::Kind::output, plan);
  add_checks(graph, names, plan);
  return plan;
}

}  // namespace kiln
