#include "runtime/functions/function.h"

#include <algorithm>

#include "runtime/graph/annotations.h"
#include "runtime/ops/nested.h"

namespace kiln {

const FunctionTable &no_functions() {
  static const HostFunctions none;
  return none;
}

FunctionPtr HostFunctions::find(std::string_view name) const {
  const auto found = functions_.find(name);
  return found == functions_.end() ? nullptr : found->second.function;
}

FunctionPtr HostFunctions::fallback(std::string_view op) const {
  const auto found = fallbacks_.find(op);
  return found == fallbacks_.end() ? nullptr : find(found->second.function);
}

std::string HostFunctions::known() const {
  if (functions_.empty()) return "; none is registered";
  return str_cat("; there are ", join(functions_, ", ", [](const auto &f) { return f.first; }));
}

Status HostFunctions::add(uint64_t id, FunctionPtr function) {
  const auto [known, is_new] = functions_.try_emplace(function->name, Named{id, function});
  return is_new ? Status() : invalid("function '", function->name, "': the name is taken by another function already");
}

Status HostFunctions::add_fallback(uint64_t id, std::string_view op, std::string_view function) {
  if (!find(function)) return error(Code::unknown_name, "no function is named '", function, "'", known());
  const auto [known, is_new] = fallbacks_.try_emplace(std::string(op), Fallback{id, std::string(function)});
  if (is_new) return {};
  return invalid("op '", op, "' falls back to function '", known->second.function, "' already");
}

Status HostFunctions::remove(uint64_t id) {
  const auto found = std::ranges::find(functions_, id, [](const auto &f) { return f.second.id; });
  if (found == functions_.end()) return error(Code::out_of_range, "no function has id ", id);
  const auto user = std::ranges::find(fallbacks_, found->first, [](const auto &f) { return f.second.function; });
  if (user != fallbacks_.end())
    return invalid("op '", user->first, "' falls back to function '", found->first, "'; unregister that first");
  functions_.erase(found);
  return {};
}

Status HostFunctions::remove_fallback(uint64_t id) {
  const auto found = std::ranges::find(fallbacks_, id, [](const auto &f) { return f.second.id; });
  if (found == fallbacks_.end()) return error(Code::out_of_range, "no fallback has id ", id);
  fallbacks_.erase(found);
  return {};
}

void HostFunctions::write_report(JsonWriter &json) const {
  json.key("functions").begin_list();
  for (const auto &[name, known] : functions_) {
    const Function &function = *known.function;
    json.begin_object().member("name", name).member("plugin", function.plugin).member("version", function.version);
    json.member("signature", function.signature.text).member("library", function.library);
    json.member("identity", function.identity).end_object();
  }
  json.end_list().key("fallbacks").begin_list();
  for (const auto &[op, fallback] : fallbacks_)
    json.begin_object().member("op", op).member("function", fallback.function).end_object();
  json.end_list();
}

namespace {

// Calls visit(node) for each that names a function.
template <class Visit>
Status for_each_marked(const Graph &graph, std::set<const Graph *> &seen, const Visit &visit) {
  if (!seen.insert(&graph).second) return {};
  for (const Node &node : graph.nodes()) {
    if (!node.op) continue;
    if (!function_of(node).empty()) KILN_TRY(visit(node));
    for (const auto &[name, nested] : nested_graphs(node)) KILN_TRY(for_each_marked(*nested, seen, visit));
  }
  return {};
}

}  // namespace

Status check_function_marks(const Graph &graph) {
  std::set<const Graph *> seen;
  return for_each_marked(graph, seen, [](const Node &node) {
    const bool mutates = node.op->flags & op_flags::mutates;
    if (!is_call(node) && !is_control(node) && !mutates) return Status();
    return invalid("is marked to be run by function '", function_of(node), "', and it ",
                   mutates ? "writes an input" : "is not one step")
        .at_node(node.name, str_cat(" [", node.op->name, "] "));
  });
}

std::set<std::string> functions_named(const Graph &graph) {
  std::set<const Graph *> seen;
  std::set<std::string> names;
  (void)for_each_marked(graph, seen, [&](const Node &node) {
    names.emplace(function_of(node));
    return Status();
  });
  return names;
}

std::string_view function_of(const Node &node) {
  const auto found = node.annotations.find(function_annotation);
  return found == node.annotations.end() ? std::string_view() : std::string_view(found->second.text_value());
}

std::string runs_it(std::string_view function) { return str_cat("function '", function, "' runs it"); }

}  // namespace kiln
