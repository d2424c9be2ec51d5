#include "runtime/regions/pieces.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "runtime/ops/nested.h"
#include "runtime/regions/writes.h"

namespace kiln {
namespace {

bool any_in(const Graph &graph, const Cuts &cuts, std::set<const Graph *> &seen) {
  if (!seen.insert(&graph).second) return false;
  return std::ranges::any_of(graph.nodes(), [&](const Node &node) {
    if (node.kind != Node::Kind::op) return false;
    return cuts.has(node) || (is_call(node) && any_in(called_graph(node), cuts, seen));
  });
}

// A node while its piece is sought.
struct Place {
  uint32_t piece = 0;
  bool fixed = true;                     // it follows from parameters and constants alone
  std::optional<uint32_t> readers = {};  // the piece of all that read it
  bool scattered = false;                // they are in several, or it is an output
};

}  // namespace

bool Cuts::has(const Node &node) const {
  return node.annotations.contains("kiln.cut") || std::ranges::find(after, node.op->name) != after.end();
}

bool Cuts::any_in(const Graph &graph) const {
  std::set<const Graph *> seen;
  return kiln::any_in(graph, *this, seen);
}

std::vector<uint32_t> pieces_of(const Graph &graph, const Cuts &cuts) {
  std::vector<const Node *> nodes;
  std::map<uint32_t, Place> places;  // by id
  const ReadersOfWritten readers(graph);
  for (const Node &node : graph.nodes()) {
    if (node.kind != Node::Kind::op) continue;
    nodes.push_back(&node);
    Place &place = places[node.id];
    const auto after = [&](const Node &other) {
      if (other.kind == Node::Kind::input) place.fixed = false;
      if (other.kind != Node::Kind::op) return;
      const Place &before = places.at(other.id);
      place.piece = std::max(place.piece, before.piece + (cuts.has(other) ? 1 : 0));
      place.fixed = place.fixed && before.fixed;
    };
    for (const ValueId input : node.inputs) after(*graph.find(input.node));
    for (const Node *resolver : graph.resolvers_for(node)) after(*resolver);
    for (const uint32_t reader : readers.before(node)) place.piece = std::max(place.piece, places.at(reader).piece);
    place.fixed = place.fixed && !cuts.has(node);
  }

  for (const GraphOutput &output : graph.outputs())
    if (const auto place = places.find(output.value.node); place != places.end()) place->second.scattered = true;
  for (size_t i = nodes.size(); i-- > 0;) {
    Place &place = places.at(nodes[i]->id);
    if (place.fixed && !place.scattered && place.readers) place.piece = *place.readers;
    const auto is_read = [&](uint32_t id) {
      const auto found = places.find(id);
      if (found == places.end()) return;
      Place &read = found->second;
      read.scattered = read.scattered || read.readers.value_or(place.piece) != place.piece;
      read.readers = place.piece;
    };
    for (const ValueId input : nodes[i]->inputs) is_read(input.node);
    for (const Node *resolver : graph.resolvers_for(*nodes[i])) is_read(resolver->id);
  }

  std::map<uint32_t, uint32_t> numbers;  // without gaps: a piece may have given away all that it had
  for (const auto &[id, place] : places) numbers[place.piece];
  uint32_t count = 0;
  for (auto &[piece, number] : numbers) number = count++;
  std::vector<uint32_t> pieces;
  for (const Node *node : nodes) pieces.push_back(numbers.at(places.at(node->id).piece));
  return pieces;
}

}  // namespace kiln
