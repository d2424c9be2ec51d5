#include "runtime/regions/extract.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "runtime/regions/writes.h"

namespace kiln {
namespace {

using Texts = std::set<std::string, std::less<>>;

// A path that leaves the part and comes back, "a, b, c": from a member over nodes that are none to a member. What
// writes an input comes after what reads it.
std::string path_around(const Graph &graph, const std::set<uint32_t> &members) {
  const ReadersOfWritten readers(graph);
  std::map<uint32_t, uint32_t> from;  // of nodes that are none but follow from members: the node before
  for (const Node &node : graph.nodes()) {
    if (node.kind != Node::Kind::op) continue;
    std::vector<uint32_t> used;
    for (const ValueId input : node.inputs) used.push_back(input.node);
    for (const Node *resolver : graph.resolvers_for(node)) used.push_back(resolver->id);
    std::ranges::copy(readers.before(node), std::back_inserter(used));
    const bool is_member = members.contains(node.id);
    for (uint32_t before : used) {
      if (!is_member && (members.contains(before) || from.contains(before))) from.try_emplace(node.id, before);
      if (!is_member || !from.contains(before)) continue;
      std::vector<std::string> names = {node.name};
      for (; !members.contains(before); before = from.at(before)) names.push_back(graph.find(before)->name);
      names.push_back(graph.find(before)->name);
      std::ranges::reverse(names);
      return join(names, ", ", [](const std::string &name) { return str_cat("'", name, "'"); });
    }
  }
  return "";
}

}  // namespace

Result<Region> extract(const Graph &graph, std::string_view key, std::string_view value) {
  std::vector<bool> chosen;
  std::set<uint32_t> members;
  Texts values;
  for (const Node &node : graph.nodes()) {
    if (node.kind != Node::Kind::op) continue;
    const auto mark = node.annotations.find(key);
    const bool is_text =
        mark != node.annotations.end() && mark->second.kind() == AttrKind::text && !mark->second.is_list;
    if (is_text) values.insert(mark->second.text_value());
    chosen.push_back(is_text && mark->second.text_value() == value);
    if (chosen.back()) members.insert(node.id);
  }
  if (members.empty()) {
    const std::string there = join(values, ", ", [](const std::string &text) { return str_cat("'", text, "'"); });
    return error(Code::unknown_name, "no node has '", value, "' as annotation '", key, "'; ",
                 there.empty() ? "none has a text there" : str_cat("there are ", there));
  }
  const std::string what = str_cat("the part '", value, "' (annotation '", key, "') ");
  KILN_ASSIGN(std::vector<Region> parts, cut_out(graph, chosen));
  if (parts.empty()) return invalid(what, "yields nothing that other nodes or outputs need");
  if (parts.size() > 1)
    return invalid(what, "is no graph of its own: a path leaves it and comes back, ", path_around(graph, members));
  KILN_TRY(verify(*parts[0].graph));
  return std::move(parts[0]);
}

}  // namespace kiln
