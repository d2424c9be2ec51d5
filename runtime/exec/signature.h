// The signature of a plan at given sizes: binds symbols from input arrays, and checks arrays against it.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/exec/executable.h"
#include "runtime/exec/sizes.h"

namespace kiln {

bool is_static(const Plan::Argument &argument);  // its dims and strides depend on no symbol

// The slots of a signature: inputs, then parameters, then outputs.
struct SlotRange {
  uint32_t begin, end;
  bool contains(uint32_t slot) const { return begin <= slot && slot < end; }
};
class Signature {
 public:
  explicit Signature(const Plan &plan);
  SlotRange inputs() const { return {0, input_count_}; }
  SlotRange parameters() const { return {input_count_, input_count_ + parameter_count_}; }
  SlotRange outputs() const { return {input_count_ + parameter_count_, count()}; }
  uint32_t count() const { return static_cast<uint32_t>(arguments_.size()); }
  const Plan::Argument &argument(uint32_t slot) const { return *arguments_[slot]; }
  std::string describe(uint32_t slot) const;  // "input 'x'"

 private:
  uint32_t input_count_, parameter_count_;
  std::vector<const Plan::Argument *> arguments_;
};

// An array from its lowest to past its highest element, in elements.
struct ArraySpan {
  int64_t elements = 0;  // 0: the array is empty
  int64_t below = 0;     // of them, below the array's first element
};
// As if sizes of 0 were 1. None: the span overflows.
std::optional<ArraySpan> span_of(std::span<const int64_t> dims, std::span<const int64_t> strides);

// The same of an array by itself, in bytes; of one that is empty 0. None: that overflows.
struct ArrayExtent {
  uint64_t bytes = 0, below = 0;
};
std::optional<ArrayExtent> extent_of(const ArrayRef &type);

// What an argument is at the sizes of the current call.
struct ResolvedArgument {
  DType dtype = DType::f32;
  std::vector<int64_t> dims, strides;  // strides in elements
  int64_t elements = 0;                // product of dims
  uint64_t span_bytes = 0;             // from the lowest to past the highest element; 0: empty
  uint64_t below_bytes = 0;            // how far below the array's first element the lowest lies
  // Of an output whose size the run resolves: what it takes at most, and until then the rest is of an earlier run.
  bool late = false;
  uint64_t most_bytes = 0;
  bool row_major = true;  // NULL strides mean these
  bool made = true;       // false: an output that is a view, which no step makes

  bool is_of_type(const ArrayRef &array) const;  // dtype and dims

  // The hot path's check. Strides of dims of one element, and of empty arrays, say nothing and are not compared.
  bool matches(const ArrayRef &array) const;
};

// All of a plan's sizes, at the shapes of a call. Memory is reused from call to call.
class ResolvedSizes {
 public:
  ResolvedSizes(const Plan &plan, const Signature &signature, const PlanSizes &sizes);
  // Binds the symbols from `inputs` (one array each), checks their ranges and the plan's checks, and evaluates all
  // sizes. On failure the values are those of no call.
  Status resolve(std::span<const ArrayRef> inputs);
  // The same of a nested plan, whose inputs' symbols the plan that runs it knows.
  Status resolve(std::span<const int64_t> symbols);
  // Only what depends on no symbol: parameters, but those that do, and what is prepared of them. They are checked
  // against the plan's slots.
  Status resolve_parameters();
  // A run begins: what steps resolve is not known any more.
  void begin_run() { known_.assign(known_.size(), false); }
  // A step resolved a symbol: sizes that all of whose symbols are known are checked, outputs get their shapes. code
  // type_mismatch for a size that is beyond the symbol's bound or properties, and for what its check finds.
  Status set(uint32_t symbol, int64_t size);
  // The message for an array that does not match; ok when it does.
  Status check(uint32_t slot, const ArrayRef &array) const;
  // Of an array of these strides, that a run writes: type_mismatch where they lead to an element twice.
  Status check_written(uint32_t slot, std::span<const int64_t> strides) const;
  // The plan's bounds, and its slots of arguments against these. code corrupt.
  Status check_bounds() const;

  const ResolvedArgument &argument(uint32_t slot) const { return arguments_[slot]; }
  std::span<const int64_t> symbols() const { return symbols_; }
  int64_t operator[](uint32_t number) const { return values_[number]; }
  // At most, whatever steps resolve.
  int64_t most(uint32_t number) const { return ranges_.empty() ? values_[number] : ranges_[number].high; }
  // Whether all symbols are known. Before, sizes are those of some run.
  bool is_complete() const;
  // The numbered sizes, in bytes, and those of the arguments of a part of the signature; at most, whatever steps
  // resolve.
  std::vector<uint64_t> bytes(std::span<const uint32_t> numbers) const;
  std::vector<uint64_t> bytes(SlotRange slots) const;

 private:
  Status bind_symbols(std::span<const ArrayRef> inputs);
  Status bind(size_t symbol, int64_t size);
  void evaluate();
  Status check_sizes();  // the plan's checks, then the outputs
  Status check_use(size_t number) const;
  Status check_bound(size_t number) const;
  Status resolve_argument(uint32_t slot);
  Status check_equal(size_t number) const;  // of the plan's checks
  std::string origins(std::initializer_list<Expr> sizes) const;
  std::string reason(const Expr &size) const;

  const Plan &plan_;
  const Signature &signature_;
  const PlanSizes &sizes_;
  std::vector<int64_t> symbols_, values_;
  std::vector<bool> known_;           // of the symbols, in the run at hand; those of inputs always are
  std::vector<Sizes::Range> ranges_;  // empty: steps resolve nothing
  std::vector<ResolvedArgument> arguments_;
};

}  // namespace kiln
