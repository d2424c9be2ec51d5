// The size expressions of a plan, flattened at load: one list of operations over the symbols, each distinct one once,
// that a single sweep evaluates when shapes change. Sizes that overflow saturate, and are refused where memory is asked
// for.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "jit/base/expr.h"
#include "runtime/plan/plan.h"

namespace kiln {

class Sizes {
 public:
  // The number under which evaluate() delivers `e`, whose symbols must be among `symbols`.
  uint32_t add(const Expr &e, std::span<const Plan::Symbol> symbols);
  size_t count() const { return operations_.size(); }
  // One value for each symbol in; one for each number out. `out` has count() elements.
  void evaluate(std::span<const int64_t> symbols, std::span<int64_t> out) const;
  // The least and the most that each can be, for symbols that are anywhere from `low` to `high`: these, or beyond.
  struct Range {
    int64_t low = 0, high = 0;
  };
  void evaluate(std::span<const Range> symbols, std::span<Range> out) const;

 private:
  enum class Kind : uint8_t { constant, symbol, add, multiply, floor_div, mod, min, max };
  struct Operation {
    Kind kind;
    uint32_t a = 0, b = 0;  // earlier operations; symbol: its number in a
    int64_t immediate = 0;
  };
  uint32_t push(Operation operation);

  std::vector<Operation> operations_;
  std::map<Expr, uint32_t> numbers_;
};

// The numbers of everything in a plan that has a size.
struct PlanSizes {
  explicit PlanSizes(const Plan &plan);

  struct Argument {
    std::vector<uint32_t> dims, strides;
  };
  struct Presented {
    std::vector<uint32_t> strides;
    uint32_t offset;
  };
  struct Check {
    uint32_t left, right;
  };
  struct Step {
    uint32_t tasks, scratch_bytes, turns;
    std::vector<std::vector<uint32_t>> nested;  // the symbols of each nested plan that it runs
  };
  // A check, bound, argument or use that speaks of symbols which steps resolve, and these.
  struct Late {
    enum class Kind : uint8_t { check, bound, use, argument } kind;
    uint32_t number;
    std::vector<uint32_t> symbols;
  };
  struct Use {
    uint32_t plan_slot, argument;  // a slot of the plan, and what it stands for in the signature
  };
  Sizes sizes;
  std::vector<Argument> arguments;  // of the signature: inputs, parameters, outputs
  std::vector<Presented> presented;
  std::vector<Check> checks;
  std::vector<Check> bounds;                     // the left one is at most the right one
  std::vector<uint32_t> slots, arena, prepared;  // bytes
  std::vector<Step> prepare, steps;
  std::vector<Use> uses;
  std::vector<uint32_t> symbol_bounds;  // of those that steps resolve; 0 for the others
  std::vector<Late> late;
  bool is_late(Late::Kind kind, uint32_t number) const;
  std::vector<PlanSizes> nested;  // of the plan's nested plans
};

}  // namespace kiln
