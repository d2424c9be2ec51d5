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
  const FunctionPtr *const found = functions_.find(name);
  return found ? *found : nullptr;
}

FunctionPtr HostFunctions::fallback(std::string_view op) const {
  const std::string *const found = fallbacks_.find(op);
  return found ? find(*found) : nullptr;
}

Status HostFunctions::add(uint64_t id, FunctionPtr function) {
  if (functions_.add(id, function->name, function)) return {};
  return invalid("function '", function->name, "': the name is taken by another function already");
}

Status HostFunctions::add_fallback(uint64_t id, std::string_view op, std::string_view function) {
  if (!find(function)) return error(Code::unknown_name, "no function is named '", function, "'", known());
  if (fallbacks_.add(id, op, std::string(function))) return {};
  return invalid("op '", op, "' falls back to function '", *fallbacks_.find(op), "' already");
}

Status HostFunctions::remove(uint64_t id) {
  const std::string *const name = functions_.name_of(id);
  if (!name) return error(Code::out_of_range, "no function has id ", id);
  const auto user = std::ranges::find(fallbacks_, *name, [](const auto &f) { return f.second.value; });
  if (user != fallbacks_.end())
    return invalid("op '", user->first, "' falls back to function '", *name, "'; unregister that first");
  functions_.remove(id);
  return {};
}

Status HostFunctions::remove_fallback(uint64_t id) {
  return fallbacks_.remove(id) ? Status() : error(Code::out_of_range, "no fallback has id ", id);
}

void HostFunctions::write_report(JsonWriter &json) const {
  json.key("functions").begin_list();
  for (const auto &[name, known] : functions_) {
    const Function &function = *known.value;
    json.begin_object().member("name", name).member("plugin", function.plugin).member("version", function.version);
    json.member("signature", function.signature.text).member("library", function.library);
    json.member("identity", function.identity).end_object();
  }
  json.end_list().key("fallbacks").begin_list();
  for (const auto &[op, fallback] : fallbacks_)
    json.begin_object().member("op", op).member("function", fallback.value).end_object();
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
