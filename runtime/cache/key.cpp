#include "runtime/cache/key.h"

#include <map>
#include <set>

#include "runtime/ops/registered.h"

namespace kiln {
namespace {

KeyComponent component(std::string name, ByteSpan bytes, std::string text) {
  return {std::move(name), digest_of(bytes), std::move(text)};
}
KeyComponent component(std::string name, std::string text) {
  const Digest digest = digest_of(text);
  return {std::move(name), digest, std::move(text)};
}

// A graph that is used several times is looked at once: graphs that call one another twice each would take twice as
// long with each level.
void collect_ops(const Graph &graph, std::set<const Graph *> &seen, std::map<std::string, const OpSchema *> &ops) {
  if (!seen.insert(&graph).second) return;
  for (const Node &node : graph.nodes()) {
    if (node.kind != Node::Kind::op) continue;
    ops[std::string(node.op->name)] = node.op;
    for (const auto &[name, value] : node.attrs) {
      if (const auto *nested = std::get_if<std::vector<GraphPtr>>(&value.items)) {
        for (const GraphPtr &g : *nested) collect_ops(*g, seen, ops);
      }
    }
  }
}

KeyComponent graph_component(const Graph &graph) {
  ByteWriter bytes;
  hash_bytes(graph, bytes);
  return component("graph", bytes.bytes(), str_cat(graph.nodes().size(), " nodes"));
}

// Kiln's own together; those of plugins and hosts each by itself, so that a miss names it.
void add_ops(const Graph &graph, std::vector<KeyComponent> &components) {
  std::string own;
  for (const auto &[name, op] : ops_of(graph)) {
    if (const RegisteredOp *other = registered(*op))
      components.push_back(component(str_cat("op ", name), other->identity));
    else
      str_append(own, str_cat(own.empty() ? "" : ", ", name, " ", op->version));
  }
  components.push_back(component("ops", std::move(own)));
}

Result<KeyComponent> pass_component(const Pass &pass, uint64_t position, Questions *questions,
                                    std::string &uncacheable) {
  Fingerprint identity{.questions = questions};
  KILN_TRY(write_identity(pass, position, identity));
  if (!identity.uncacheable.empty() && uncacheable.empty())
    uncacheable = str_cat(described(pass), ": uncacheable because ", identity.uncacheable);
  return component(str_cat("pass ", pass.name), identity.key.bytes(),
                   str_cat(name_of(pass.stage), ", version '", pass.version, "', place ", position));
}

}  // namespace

std::map<std::string, const OpSchema *> ops_of(const Graph &graph) {
  std::map<std::string, const OpSchema *> ops;
  std::set<const Graph *> seen;
  collect_ops(graph, seen, ops);
  return ops;
}

Result<std::vector<KeyComponent>> key_components(const KeyInputs &inputs, std::string &uncacheable) {
  std::vector<KeyComponent> components;
  components.reserve(inputs.late.size() + inputs.registered.size() + 8);
  components.push_back(graph_component(inputs.graph));
  add_ops(inputs.graph, components);
  components.push_back(component("options", std::string(inputs.options)));
  uint64_t position = 0;
  for (const std::shared_ptr<const Pass> &pass : inputs.late) {
    KILN_ASSIGN(KeyComponent of_pass, pass_component(*pass, position++, inputs.questions, uncacheable));
    components.push_back(std::move(of_pass));
  }
  for (const auto &[what, identity] : inputs.registered) components.push_back(component(what, identity));
  components.push_back(component("target", inputs.target.name()));
  components.push_back(component("backend", std::string(inputs.backend)));
  components.push_back(component("build", std::string(inputs.build_id)));
  return components;
}

Digest graph_key(std::span<const KeyComponent> components) {
  ByteWriter bytes;
  for (const KeyComponent &c : components) {
    bytes.text(c.name);
    bytes.raw(c.digest.bytes);
  }
  return digest_of(bytes.bytes());
}

Digest kernel_key(ByteSpan kernel, std::string_view backend, const Target &target, std::string_view build_id,
                  std::string_view compiler) {
  ByteWriter bytes;
  bytes.blob(kernel);
  bytes.text(backend);
  bytes.text(target.name());
  bytes.text(build_id);
  bytes.text(compiler);
  return digest_of(bytes.bytes());
}

}  // namespace kiln
