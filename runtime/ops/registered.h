// Ops that plugins and hosts add to a context: records as those of built-in ops, whose functions ask what the op was
// registered with.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/ops/op.h"

namespace kiln {

// An array that an op's own function is run on: row-major.
struct RunArray {
  DType dtype = DType::f32;
  std::vector<int64_t> dims;
};

// What runs one node of one call object. One thread at a time.
class OpRun {
 public:
  virtual ~OpRun() = default;
  // Before the first run, and when dims change. Operands, then results.
  virtual void resize(std::span<const RunArray> arrays) = 0;
  // Where the same arrays are. Returns when the results are there.
  virtual Status run(std::span<void *const> data) = 0;
};

// What an op was registered with (abi/src/op_def.cpp makes it). Threads: any.
class OpFunctions {
 public:
  virtual ~OpFunctions() = default;
  virtual Status infer(InferContext &context) const = 0;
  virtual Status decompose(DecomposeContext &context) const = 0;  // of one that decomposes
  // Of one that runs: for a node with operands of these types.
  virtual Result<std::unique_ptr<OpRun>> open(const Node &node, std::vector<TensorType> operands) const = 0;
};

struct RegisteredOp : Op {
  std::string identity;                   // with its version; also of one without a UUID
  bool has_uuid = false;                  // without, what is made with it cannot be cached
  bool runs = false, decomposes = false;  // which functions there are; one at least
  bool any_thread = false;                // what runs it may be called on threads of Kiln's
  std::string plugin;                     // "": the host's
  uint32_t number = 0;                    // of the context
  const OpTable *table = nullptr;         // in which it is
  std::unique_ptr<const OpFunctions> functions;
  std::deque<std::string> texts = {};    // what the views of the record are of
  std::vector<Sample> own_samples = {};  // which it was registered with
};

// Null: the op is built in.
const RegisteredOp *registered(const OpSchema &op);
// Whether a function of its op runs the node, and no code that is made for it: there is one, and no decomposition or
// the node is to be kept whole.
bool runs_itself(const Node &node);

// Has the record's functions ask those that it was registered with.
void complete(RegisteredOp &op);

// What is wrong with the name of an op, or of what else hosts name as ops are; empty: nothing. Letters, digits and
// "_.-", as they are written in graphs and options.
std::string wrong_with_name(std::string_view name);

// Those of a record of either kind.
std::vector<Sample> samples_of(const Op &op);
// Asks the table for the registered ops among the graph's, but for those of graphs that nodes carry: one that records
// what it is asked has them then, too, where they were added by number.
void ask_for_ops(const Graph &graph, const OpTable &ops);
// The same for what ops that are nothing but a decomposition are made of when the graph's nodes run on reference
// kernels, and for what their functions look up.
Status ask_for_parts(const Graph &graph, const OpTable &ops);
// How deep decompositions may stand in one another: one that comes back to itself would go on for ever.
inline constexpr int most_decompositions = 16;

}  // namespace kiln
