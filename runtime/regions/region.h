// Regions: the parts that a graph is cut into, each compiled or run as a whole.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/backends/backend.h"
#include "runtime/functions/function.h"
#include "runtime/graph/graph.h"
#include "runtime/regions/offers.h"
#include "runtime/regions/region_options.h"

namespace kiln {

struct Region {
  // code: a graph that the backend compiles as a whole. control: one node, whose graphs are plans of their own.
  // reference: one node, which its reference kernel runs, or a function. part: a graph that is cut on into regions of
  // its own. piece: a graph that is looked up and compiled by itself. program: a graph that a registered backend
  // compiles and runs.
  enum class Kind : uint8_t { code, control, reference, part, piece, program };
  Kind kind = Kind::code;
  std::string backend = {};
  // Of all but nodes, its inputs, parameters and outputs are what crosses the border; of code it is flat. Of a piece
  // there are more inputs than `inputs`, which nothing reads, where no other tells a size that it speaks of. Of
  // reference the node by itself.
  GraphPtr graph = {};
  uint32_t node = 0;  // control, reference: its id in the whole graph
  // Of a part, a piece and a program the ids in the whole graph of what the op nodes of `graph` are, in their order
  // there. Equal parts may have one graph, whose nodes have the names of one of them.
  std::vector<uint32_t> nodes = {};
  // The values of the whole graph that the region's are: of a graph in the order of its signature, of a node its
  // operands and its results. What a region yields is dense. What follows from parameters and constants alone, and
  // another part may make once a binding, is a parameter of the part that reads it.
  std::vector<ValueId> inputs = {}, parameters = {}, outputs = {};
  RegionOptions options = {};  // of a part, a program
  std::optional<std::string> name =
      {};                     // likewise: what its nodes are marked for, or ""; nothing: a node that falls back
  std::string function = {};  // reference: of the host's, which runs the node; empty: none does
  std::map<size_t, size_t> in_place = {};  // reference: results that the function makes in place of operands
  std::shared_ptr<const Bytes> blob = {};  // program: what the backend made of the graph; null: nothing yet
  std::string refused = {};  // of a node that falls back: why the backend does not take it; empty: it does
  // Of the nodes: those that were offered to a registered backend, which does not take them, by id.
  struct Declined {
    uint32_t node;
    std::string backend, why;
  };
  std::vector<Declined> declined = {};
};

// The regions of `graph`, whose calls are inlined, in an order in which they can run. All but control flow is compiled
// for `backend`: the whole graph is one region where there is none, else what lies between control nodes. Arguments and
// constants that are outputs, or that a control node needs dense, are outputs of the first region.
Result<std::vector<Region>> partition(const GraphPtr &graph, const BackendInfo &backend);

// The parts of `graph` under `modes`, in an order in which they can run: nodes of one region in as few parts as can be
// (grouping.h), each other node alone. A call that is marked is a part of its own, which has the graph that it calls;
// no other calls are left. In a part nodes have no annotations of Kiln's. Nodes of a region whose options differ, as
// those of two phases may, go into different parts. A node that the backend refuses is in none: its reference kernel
// runs it; an error, if none can, or if it is marked for a region and such a node is to be one (Fallback::error). A
// node that names a function is in none either, and a node that falls back is run by the function that its op falls
// back to. Nodes for which a registered backend is chosen are offered to it: what it takes are programs of it, the rest
// is in a part of the same region; under Fallback::error a node that it does not take is an error.
Result<std::vector<Region>> partition(const GraphPtr &graph, Refusals &refusals, const Modes &modes,
                                      const RegionChoices &choices = {},
                                      const FunctionTable &functions = no_functions(),
                                      const Offers &offers = Offers::none());

// Whether the node can be a graph of its own that reference kernels run: it writes no input and tells no size, and its
// operands tell all sizes that it speaks of.
bool runs_as_reference(const Graph &graph, const Node &node);

// The pieces that `piece_of` (pieces.h) makes of `graph`, in the order of their numbers. Nodes keep what they are
// marked for where `modes` cut, which each piece is by itself; calls stay.
Result<std::vector<Region>> partition(const GraphPtr &graph, const BackendInfo &backend, const Modes &modes,
                                      std::span<const uint32_t> piece_of);

// What `members` (of op nodes, in their order) are as graphs of their own: one, unless other nodes lie between. Kind
// piece, but inputs and outputs have the names of their values ("y", of result 1 "y_1"), and nodes all annotations.
// Nothing, if they yield nothing.
Result<std::vector<Region>> cut_out(const Graph &graph, const std::vector<bool> &members);

}  // namespace kiln
