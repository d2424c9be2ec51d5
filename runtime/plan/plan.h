// The plan: what an executable does at each call, as data. Steps over slots; symbolic sizes are Exprs over the symbols
// of the signature. Serialised into the artifact.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "jit/base/bytes.h"
#include "jit/base/dtype.h"
#include "jit/base/expr.h"
#include "jit/base/status.h"

namespace kiln {

inline constexpr int deepest_plan = 33;  // plans in plans: a graph's own and 32 in it, as for graphs

struct Plan {
  // A tensor of the signature. Layout is exact: strides in elements.
  struct Argument {
    std::string name;
    DType dtype = DType::f32;
    Shape dims, strides;
    bool operator==(const Argument &) const = default;
  };
  // A node that messages name; runtime/plan/node_names.h keeps the name true.
  struct NodeRef {
    // Its position in the graph that the key was made of. If it lies in a graph that a node carries, then that node's
    // position, which of the node's graphs it is, and the position in there; and so on. Empty: passes made it.
    std::vector<uint32_t> path;
    std::string name;        // empty with the path
    std::string debug = {};  // what its annotations `debug.*` say, "debug.line=model.py:12"
    bool operator==(const NodeRef &) const = default;
  };
  // Bound from the first input that has it as a bare dimension, or by a step (resolve), whose node it names.
  struct Symbol {
    std::string name;
    uint32_t input = 0, dim = 0;
    int64_t min = 0, max = INT64_MAX, divisor = 1;
    bool resolved = false;  // by a step; then it is at most `bound`, too
    Expr bound = {};
    NodeRef node = {};
    bool operator==(const Symbol &) const = default;
  };
  struct Check {  // must be equal at each call
    Expr left, right;
    std::string what;  // "[add] a dim 1 and b dim 0 must be equal"
    NodeRef node = {};
    std::string text() const;  // for the message
  };
  // A node whose kernel may set the error word of a call: bits KILN_ERROR_*.
  struct Risk {
    NodeRef node;
    std::string op;
    uint32_t bits = 0;
    std::string text() const;  // "node 'y' [div]"
  };
  // A node that a kernel computes, or a part of which. Of one that passes made, a fresh compile knows the name.
  struct Origin {
    NodeRef node;
    std::string op;
    std::string text() const;  // "'y' [softmax]"
    bool operator==(const Origin &) const = default;
  };

  struct Slot {
    enum class Kind : uint8_t { input = 1, parameter, constant, output, arena, prepared };
    Kind kind = Kind::arena;
    uint32_t index = 0;  // of the input, parameter, constant, output; of the storage (arena, prepared)
    Expr size_bytes;
  };
  static bool same_memory(const Slot &a, const Slot &b) { return a.kind == b.kind && a.index == b.index; }
  // Memory that slots of disjoint lifetimes share. Offsets are a prefix sum (64-byte aligned), made when shapes change.
  struct Storage {
    Expr size_bytes;
  };

  // One of the nested plans, as a step runs it.
  struct Nested {
    uint32_t plan = 0;
    std::vector<Expr> symbols =
        {};  // what each of its symbols is, over this plan's; unread where it resolves it itself
  };
  // In turn t of a scan, the last one first if `reverse`, its plan reads and writes element t of the sequences: arrays
  // that begin where these begin, and go on by as many bytes as an element has. A loop has none of it but the most
  // turns that there are; -1: nothing bounds them.
  struct Scan {
    uint32_t carried = 0, sequences = 0;  // of the inputs
    bool reverse = false;
    Expr turns = {};
  };
  // Nested plans read their inputs and write their outputs in slots of the plan that runs them.
  struct Step {
    enum class Kind : uint8_t {
      launch = 1,  // a kernel. slots: one for each of its buffers
      copy,        // slots: from, to; dense, of the same size
      reference,   // a graph on the reference kernels. slots: the plan's inputs, parameters, outputs
      call,        // nested: one plan. slots: its inputs, its outputs
      branch,      // nested: if true, if false. slots: a bool, their inputs, their outputs
      loop,     // nested: whether to go on (to a bool), a turn. slots: their inputs, of which those that a turn makes
                // anew come first; the results; as many again for every other turn
      scan,     // nested: a turn. slots: its inputs: what is carried, sequences, the rest; the results: what is carried
                // in the end, and sequences; once more what is carried
      resolve,  // slots: an i64. symbols: the one that it is from here on
    };
    // Why a copy's value was not made where it is to be (text_of).
    enum class Why : uint8_t {
      given = 1,  // it is an argument or a constant
      prepared,   // it is made once for all calls
      elsewhere,  // it is made where another output or input lies
      read,       // a step reads later what it would overwrite
      kept,       // what it would overwrite is an output, or what an input becomes
      order,      // the step that makes it reads other elements than it would overwrite
      shared,     // it has memory of its piece, with others
      written,    // it is what an input was that is written, too
    };
    Kind kind = Kind::launch;
    Why why = Why::given;  // copy
    uint32_t kernel = 0;   // launch: index of the image
    uint32_t graph = 0;    // reference: index of the artifact's graph
    std::vector<uint32_t> slots = {};
    std::vector<uint32_t> symbols = {};  // launch: the plan's symbol for each of the kernel's sizes
    std::vector<uint32_t> risks = {};    // launch: those of the plan's that its kernel may meet, for messages
    std::vector<Nested> nested = {};     // call, branch, loop, scan
    Scan scan = {};
    NodeRef node = {};                    // call, loop, scan: for messages; copy: who reads later, if known
    std::vector<Origin> origins = {};     // launch: likewise; copy: whose value it is
    Expr tasks = {}, scratch_bytes = {};  // launch: over the plan's symbols; from its kernel's contract (verify_plan.h)
  };
  // What must hold at each call: `size` bytes lie within `room` bytes. Not in the bytes: verify_plan() makes it.
  struct Bound {
    static constexpr uint32_t no_slot = UINT32_MAX;
    Expr size, room;
    uint32_t slot = no_slot;  // whose bytes they are; no_slot: no bytes, but sizes that are equal
  };

  // What a call is given an output as, where that is not row-major.
  struct Presented {
    enum class Kind : uint8_t {
      strided = 1,  // copied to an array of these strides (elements)
      any,          // copied to an array of its own strides
      view,         // not made: elements of `input`, from element `offset` on, by these strides
    };
    uint32_t output = 0;
    Kind kind = Kind::strided;
    Shape strides = {};  // none of kind any
    uint32_t input = 0;
    Expr offset = {};
    bool operator==(const Presented &) const = default;
  };

  std::vector<Argument> inputs, parameters, outputs;   // outputs as steps make them: row-major
  std::vector<Presented> presented;                    // in the order of outputs
  const Presented *presented_as(size_t output) const;  // null: row-major
  bool makes(size_t output) const;                     // whether steps do: it is no view
  // Inputs that a copy_ epilogue writes, and others whose memory a call may use as its own. In the bytes with the
  // contracts.
  std::vector<uint32_t> written_inputs, donated_inputs;
  // Those of inputs, then those that steps resolve, in the order of these steps. A step that speaks of one comes after.
  std::vector<Symbol> symbols;
  std::vector<Check> checks;
  std::vector<Risk> risks;
  std::vector<Slot> slots;
  std::vector<Storage> arena, prepared;
  std::vector<Step> prepare;  // run once per binding of all parameters
  std::vector<Step> steps;    // run at each call
  uint32_t in_place = 0;      // how many copies there would be besides, were nothing made where its old value lies
  std::vector<Bound> bounds;  // what could not be told when the plan was loaded
  // Plans that steps run. They have neither parameters nor anything to prepare, write no inputs, and take and yield
  // arrays that are row-major.
  std::vector<Plan> nested;
};

// The step of a plan that does nothing but run one graph; null: it does more.
inline const Plan::Step *only_reference_step(const Plan &plan) {
  const bool is_one = plan.prepare.empty() && plan.steps.size() == 1;
  return is_one && plan.steps[0].kind == Plan::Step::Kind::reference ? plan.steps.data() : nullptr;
}

// `known`: the table of the contracts, which the plan's expressions go on from (contract_format.h).
void serialize(const Plan &plan, std::span<const Expr> known, ByteWriter &out);
// Of the signature, all that its readers rely on is checked. Slots and steps are verify_plan()'s.
Result<Plan> parse_plan(ByteReader &in, std::span<const Expr> known);
std::string text_of(const Plan &plan, const Plan::Step &step);  // "kernel 2(x, arena 0)"
std::string why_text(const Plan::Step &copy);                   // "the step of 'z' reads later what it would overwrite"
// "'x' [exp], 'y' [softmax] and 3 more"; "": none is known.
std::string text_of(std::span<const Plan::Origin> origins);
std::string print(const Plan &plan);

}  // namespace kiln
