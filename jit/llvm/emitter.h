// The emitter's inner interfaces: a kernel on its way to LLVM IR, points at which bodies run, loops.
//
// Code is emitted either for one point (scalar code) or for `width` points side by side along one axis. A value of a body
// is then *uniform* (the same for all lanes: an LLVM scalar) or *varying* (a vector of `width` elements); uniform values
// stay scalar until they meet a varying one. Booleans are i1 in registers and bytes of 0 or 1 in memory; f16 and bf16 are
// i16 bits, which only loads, stores and conversions take.
//
// The kernel was verified before; what the emitter cannot do all the same (arithmetic on f16) is reported by
// KernelState::fail. One KernelState is used by one thread.
#pragma once
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "jit/base/status.h"
#include "jit/kernel/kernel.h"
#include "jit/llvm/features.h"

namespace kiln::codegen {

struct KernelState {
  const kernel::Kernel &kernel;
  const Features &features;
  llvm::Module &module;
  llvm::Function *function;
  llvm::IRBuilder<> b;
  kernel::ScratchLayout layout;

  llvm::Value *args;                      // const kiln_kernel_args *
  std::vector<llvm::Value *> buffers;     // by number; of row_local ones: their area in scratch
  std::vector<llvm::Value *> symbols;     // i64, by number
  llvm::Value *scratch;
  llvm::Value *error_word;

  Status status;                          // the first failure

  void fail(Status why) {
    if (status.ok()) status = std::move(why);
  }
};

// Where code runs: the axes in scope, and how lanes lie along one of them.
struct Point {
  std::vector<llvm::Value *> axes;        // i64 by axis id; of the vector axis: lane 0's; null: not in scope
  int vector_axis = -1;                   // its id, or -1: scalar code
  unsigned width = 1;                     // lanes: a power of two; 1 in scalar code
  llvm::Value *active = nullptr;          // <width x i1>: lanes that exist (lane 0 always does); null: all
  // Lane 0 of the vector axis is a multiple of this; it shows that i // 16 is uniform over 16 lanes, say.
  int64_t alignment = 1;
  // How many values a row_local element has (Schedule::Vector::parallel).
  unsigned row_local_lanes = 1;

  bool is_vector() const { return width > 1; }
  void set_axis(size_t id, llvm::Value *value) {
    if (axes.size() <= id) axes.resize(id + 1);
    axes[id] = value;
  }
};

// Half-open, i64.
struct Range {
  llvm::Value *begin, *end;
};

// ---- loops.cpp
// for (i = begin; i < end; i += step) body(i).
void emit_loop(KernelState &state, Range range, int64_t step, const std::function<void(llvm::Value *i)> &body);
// The same with values carried from pass to pass: body returns the next ones; the result is the last ones.
using Values = llvm::SmallVector<llvm::Value *, 4>;
Values emit_loop(KernelState &state, Range range, int64_t step, Values initial,
                 const std::function<Values(llvm::Value *i, const Values &carried)> &body);
// if (condition) then().
void emit_if(KernelState &state, llvm::Value *condition, const std::function<void()> &then);

// ---- index.cpp
// An expression's value over the lanes of a point: base + stride * lane, or (lanes not null) a vector of i64.
struct LaneIndex {
  llvm::Value *base = nullptr;            // i64: lane 0's
  llvm::Value *stride = nullptr;          // i64; null: 0, the same for all lanes
  llvm::Value *lanes = nullptr;           // <width x i64>
  bool uniform() const { return !stride && !lanes; }
  bool contiguous() const;                // stride is the constant 1
};
// `values`: what Expr::value(i) is, in a body.
LaneIndex emit_index(KernelState &state, const Expr &expr, const Point &point, std::span<llvm::Value *const> values = {});
// For an expression that does not vary with the lanes (extents, sizes, offsets of panels): its i64.
llvm::Value *emit_scalar(KernelState &state, const Expr &expr, const Point &point);

// ---- memory.cpp
// `valid`: uniform or varying i1, or null. Gives a uniform value where the address and `valid` are uniform.
llvm::Value *emit_load(KernelState &state, const kernel::Access &access, const LaneIndex &at, const Point &point,
                       llvm::Value *valid);
// Stores an element (uniform or varying), in active lanes only.
void emit_store(KernelState &state, const kernel::Access &access, llvm::Value *value, const Point &point);

// ---- body.cpp
// What the leaves of a body read beside memory.
struct Leaves {
  std::span<llvm::Value *const> carriers;   // combine bodies: left side's, then right side's
  llvm::Value *accumulator = nullptr;       // epilogues
};
// Emits a body at a point; gives its yields, uniform or varying.
Values emit_body(KernelState &state, const kernel::Body &body, const Point &point, const Leaves &leaves = {});
// `values`: yields or carriers, by Store::value.
void emit_stores(KernelState &state, std::span<const kernel::Store> stores, const Values &values, const Point &point);

// ---- arithmetic.cpp: pieces that every level can do without a call; on scalars and vectors of f32 and f64.
llvm::Value *emit_floor(KernelState &state, llvm::Value *x);
llvm::Value *emit_round_even(KernelState &state, llvm::Value *x);
llvm::Value *emit_multiply_add(KernelState &state, llvm::Value *a, llvm::Value *b, llvm::Value *c);  // fused where there is fma
llvm::Value *splat(KernelState &state, llvm::Value *value, unsigned width);  // of a scalar; a vector, or width 1: as it is
llvm::Type *type_of(KernelState &state, DType type);                          // in registers
llvm::Type *memory_type_of(KernelState &state, DType type);
llvm::Constant *constant_of(KernelState &state, DType type, uint64_t immediate);
// Whatever `op` means for values of `type` (uniform and varying may mix). `active` as in Point: for the error word.
llvm::Value *emit_core(KernelState &state, kernel::Core op, DType type, std::span<llvm::Value *const> operands,
                       llvm::Value *active);
void emit_error(KernelState &state, llvm::Value *bad, llvm::Value *active, uint32_t bit);  // where `bad` in active lanes

// ---- math.cpp: exp, log, tanh, erf, sin, cos, and pow (y not null), on scalars and vectors of f32 and f64, inline.
llvm::Value *emit_math(KernelState &state, kernel::Core op, llvm::Value *x, llvm::Value *y = nullptr);

// ---- contraction.cpp: the tile m x n of a kernel's one stage. `point` has the batch axes set and is scalar.
void emit_contraction(KernelState &state, const Point &point, Range m, Range n);

}  // namespace kiln::codegen
