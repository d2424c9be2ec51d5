// Marks the nodes of some ops with a region's name (kiln.region), so that under mode "marked" they, and nothing else,
// are compiled together. Options say which ops, and the name. What is marked already stays as it is.
#include <kiln/pass.hpp>

KILN_PLUGIN_NOTE(0, 0, "mark_regions");

namespace {

using kiln::pass::Attr;
using kiln::pass::Rewriter;

std::vector<Attr> options() { return {{"ops", "matmul,linear"}, {"region", "marked"}}; }

// The ops that are listed by commas; fails for a name that is no op's.
std::vector<kiln_op> ops_of(Rewriter &graph, std::string_view names) {
  std::vector<kiln_op> ops;
  while (!names.empty()) {
    const size_t comma = std::min(names.find(','), names.size());
    const std::string name(names.substr(0, comma));
    names.remove_prefix(std::min(comma + 1, names.size()));
    if (name.empty()) continue;
    ops.push_back(graph.op(name));
    if (!ops.back()) graph.fail(KILN_UNKNOWN_NAME, "option 'ops' names '" + name + "', which is no op");
  }
  return ops;
}

bool is_marked(const Rewriter &graph, kiln_node node) {
  const kiln_host &host = graph.host();
  uint64_t count = 0;
  if (kiln_error *error = host.node->annotations(graph.graph(), node, nullptr, 0, &count))
    return host.error->destroy(error), false;
  std::vector<kiln_attr> annotations(count);
  if (kiln_error *error = host.node->annotations(graph.graph(), node, annotations.data(), count, &count))
    return host.error->destroy(error), false;
  for (const kiln_attr &annotation : annotations)
    if (std::string_view(annotation.name, annotation.name_size) == "kiln.region") return true;
  return false;
}

uint64_t rewrite(Rewriter &graph) {
  const std::vector<kiln_op> ops = ops_of(graph, graph.text_option("ops"));
  const std::string region = graph.text_option("region");
  uint64_t marked = 0;
  for (kiln_node node : graph.nodes()) {
    bool is_listed = false;
    for (kiln_op op : ops) is_listed = is_listed || graph.op_of(node) == op;
    if (!is_listed || is_marked(graph, node)) continue;
    graph.annotate(node, {{"kiln.region", region}});
    marked++;
  }
  return marked;
}

constexpr kiln::pass::Definition definition = {
    "mark_regions",
    "1",
    {0x1e, 0x86, 0xb0, 0x4c, 0x77, 0x39, 0x4d, 0x15, 0x83, 0xce, 0x52, 0xa9, 0x0f, 0x6b, 0xd4, 0x20},
    KILN_STAGE_POST_GRAD,
    rewrite,
    options};

}  // namespace

const kiln_plugin *kiln_plugin_entry_v1(void) { return kiln::pass::plugin<definition>(); }
