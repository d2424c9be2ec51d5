#include "runtime/backends/backend.h"

#include <algorithm>

#include "runtime/backends/rows.h"
#include "runtime/functions/function.h"
#include "runtime/ops/nested.h"
#include "runtime/ops/registered.h"

namespace kiln {
namespace {

constexpr std::string_view decompose_mark = "kiln.decompose";

constexpr const BackendInfo *table[] = {&cpu_backend, &cuda_backend, &reference_backend};

}  // namespace

std::span<const BackendInfo *const> backends() { return table; }

Result<const BackendInfo *> find_backend(std::string_view name, std::span<const std::string> others) {
  for (const BackendInfo *backend : table)
    if (backend->name == name) return backend;
  std::string known = join(table, ", ", [](const BackendInfo *b) { return b->name; });
  for (const std::string &other : others) str_append(known, str_cat(", ", other));
  return error(Code::unknown_name, "backend '", name, "' is not known; there are ", known);
}

const BackendInfo &base_backend(std::string_view name) {
  const Result<const BackendInfo *> own = find_backend(name);
  return own.ok() ? **own : cpu_backend;
}

std::optional<std::string> refuse_kept_composites(const Graph &, const Node &node) {
  const auto mark = node.annotations.find(decompose_mark);
  if (mark == node.annotations.end() || mark->second.text_value() != "keep" || !op_of(node).decompose) return {};
  return "it is marked to be kept whole, and there is code for its decomposition alone";
}

Result<Target> target_of(const BackendInfo &backend, std::string_view cpu, std::string_view arch) {
  if (!backend.on_device()) {
    if (arch != "native")
      return invalid("option 'arch' is '", arch, "', but backend ", backend.name, " runs on this processor: use 'cpu'");
    if (cpu != "native" && !backend.makes_code())
      return invalid("option 'cpu' is '", cpu, "', but backend ", backend.name, " generates no code");
    return Target::by_name(cpu);
  }
  if (cpu != "native")
    return invalid("option 'cpu' is '", cpu, "', but backend ", backend.name, " runs on a device: use 'arch'");
  if (arch == "native") return Target::device("");
  if (std::ranges::find(backend.archs, arch) == backend.archs.end())
    return error(Code::unknown_name, "arch '", arch, "' of backend ", backend.name, " is not known; there are native, ",
                 join(backend.archs, ", ", [](std::string_view a) { return a; }));
  return Target::device(arch);
}

std::string Refusals::handed_down(const AttrMap &annotations) {
  const auto mark = annotations.find(decompose_mark);
  return mark == annotations.end() ? "" : mark->second.text_value();
}

std::optional<std::string> Refusals::of(const Graph &graph, const Node &node) {
  if (!backend_.refuses || !node.op) return {};
  if (const std::string_view function = function_of(node); !function.empty()) return runs_it(function);
  if (makes_token(node)) return node.op->flags & op_flags::effect ? "it has an effect" : "it orders effects";
  if (runs_itself(node)) return "a function of its own runs it";
  if (std::optional<std::string> why = backend_.refuses(graph, node)) return why;
  for (const auto &[attr, nested] : nested_graphs(node)) {
    if (is_call(node) && attr != called_attr(node)) continue;
    if (const auto &why = first_in(*nested, is_call(node) ? handed_down(node.annotations) : ""))
      return str_cat("in its ", attr, ", ", *why);
  }
  return {};
}

const std::optional<std::string> &Refusals::first_in(const Graph &graph, const std::string &decompose) {
  const auto [known, is_new] = known_.try_emplace({&graph, decompose});
  if (!is_new) return known->second;
  for (const Node &node : graph.nodes()) {
    std::optional<std::string> why;
    if (node.op && !decompose.empty() && !node.annotations.contains(decompose_mark)) {
      Node marked = node;
      marked.annotations.emplace(decompose_mark, decompose);
      why = of(graph, marked);
    } else {
      why = of(graph, node);
    }
    if (!why) continue;
    known->second = str_cat("node '", node.name, "' [", node.op->name, "]: ", *why);
    break;
  }
  return known->second;
}

}  // namespace kiln
