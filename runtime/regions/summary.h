// How a compile's graphs were cut, for people.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/regions/lower_graphs.h"
#include "runtime/regions/modes.h"

namespace kiln {

inline constexpr std::string_view nothing_marked =
    "no node is marked for a region (kiln.region), so that nothing is compiled together";

struct PartitionSummary {
  // Nodes by the names that they had when the graph was cut; those of a graph that a node carries have the name of the
  // node and of the attribute before them: "loop.body_graph.y".
  struct Part {
    std::string region, backend;
    std::vector<std::string> options = {};  // "fuse=false": what is not as the compile's own
    std::vector<std::string> nodes = {};
    std::vector<std::string> inputs = {}, outputs = {};  // values that cross its border, "y" or "y:1"
    uint64_t kernels = 0;
    std::optional<uint64_t> same_as = {};  // number of the part before it whose code it shares
  };
  // Of two parts of one region, why the second is not in the first.
  struct Split {
    std::string region, node;  // node: the first of the second part
    std::string why;           // "unmarked": `with` lies between, in no region; "name": in another; "unsupported": the
                               // backend does not take it; "effect": none does; "call"; "cycle"; "options": it is
                               // compiled in another way;
                               // "backend": of the region, `with` is another backend's
    std::string with;
    std::string op = {}, reason = {};  // unsupported, effect: of `with`, and what the backend says of it
  };
  struct Fallback {
    std::string node, op;
    std::vector<std::string> inputs;
    // "kernel", "reference", "function" (its op's own), a function of the host's by its name, "steps": control flow,
    // whose graphs are cut, too.
    std::string by;
    // "marked": to fall back; "unmarked"; "mode": nothing is compiled together; "unsupported", "effect": as of a split.
    std::string why;
    std::string reason = {};  // what the backend says of one that it does not take, wherever it was to be
  };
  // A node that the registered backend which was chosen for it does not take, so that `cpu` has it.
  struct Declined {
    std::string node, op, backend, reason;
  };
  std::string mode;  // described()
  std::vector<Part> parts;
  std::vector<Split> splits;
  std::vector<Fallback> fallbacks;
  std::vector<Declined> declined;
  std::vector<std::string> warnings;
};

// Of fused graphs. Nothing, if they are not cut.
std::optional<PartitionSummary> summarize(const LoweredGraphs &graphs, const Modes &modes);

}  // namespace kiln
