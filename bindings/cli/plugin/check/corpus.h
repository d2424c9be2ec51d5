// The graphs on which a plugin is checked: samples of the ops, those of its patterns, models, random ones, and files.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../../handles.h"
#include "../trial.h"

namespace kiln::cli::plugin_check {

struct Item {
  std::string name;  // "sample softmax/rows", "pattern PASS/PATTERN 2", "model chars", "random 7", or the file's path
  std::string json;
  std::optional<Range> range = {};  // of the elements that are drawn for it
  double tolerance = 0;             // as of `difference`
};
// Of long chains in bf16: what is rounded otherwise at the beginning grows.
inline constexpr double bfloat_tolerance = 0.25;

// The samples of the op, each a graph with one node, `most` of them. Those are left out that have no result to compare.
std::vector<Item> samples_of(const Context &context, kiln_op op, size_t most = SIZE_MAX);
// Those of all built-in ops that a plugin may meet, or (`registered`) of the ones that plugins brought.
std::vector<Item> samples(const Context &context, bool registered, size_t most = SIZE_MAX);

// The models that come with Kiln (tests/models), of small batches. They are in the program, and have no weights, which
// are drawn.
std::vector<Item> models();

// Graphs in which the patterns are found that the plugin's passes declare.
std::vector<Item> pattern_graphs(const Context &context, const Registered &registered);

// What may vary in a random graph without changing what it computes, or its key.
struct Dress {
  std::string prefix = "node_";  // of names of nodes
  bool debug = false;            // annotations debug.* on nodes
};
// A graph of some ten to thirty nodes, that follows from the seed: of f32, f16 or bf16, with graphs that nodes carry,
// and effects (effects.h). Ops and compositions of which the plugin's file has the names come more often. `bytes` is
// that file.
Item random_graph(uint64_t seed, std::string_view bytes, const Dress &dress = {});

}  // namespace kiln::cli::plugin_check
