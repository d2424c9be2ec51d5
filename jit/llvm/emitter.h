// The emitter's inner interfaces: a kernel on its way to LLVM IR, points at which bodies run, loops.
//
// Code is emitted either for one point (scalar code) or for `width` points side by side along one axis. A value of a
// body is then *uniform* (the same for all lanes: an LLVM scalar) or *varying* (a vector of `width` elements); uniform
// values stay scalar until they meet a varying one. Booleans are i1 in registers and bytes of 0 or 1 in memory; floats
// of 16 bits and fewer are their bits, which only loads, stores, choices and conversions take.
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
#include "jit/kernel/hidden.h"
#include "jit/kernel/kernel.h"
#include "jit/llvm/features.h"
#include "jit/llvm/math.h"

namespace kiln::codegen {

struct KernelState {
  const kernel::Kernel &kernel;
  const Features &features;
  llvm::Module &module;
  llvm::Function *function;
  llvm::IRBuilder<> b;
  kernel::ScratchLayout layout;

  llvm::Value *args;                   // const kiln_kernel_args *
  std::vector<llvm::Value *> buffers;  // by number; of row_local ones: their area in scratch
  std::vector<llvm::Value *> symbols;  // i64, by number
  std::vector<llvm::Value *> streams;  // i1, by buffer: whether stores bypass the caches in this call; null: never
  // i64, bytes: how far ahead of a load its buffer is asked for, into the first cache and into the second; 0 in a call
  // that need not. Empty: never.
  llvm::SmallVector<llvm::Value *, 2> ahead;
  llvm::Value *scratch;
  llvm::Value *error_word;
  // i64, in tiles of rows: the tile's first, to which the areas of row_local buffers belong. Null: there is one row.
  llvm::Value *first_row = nullptr;
  std::optional<kernel::HiddenColumns> hidden;
  // Of the tile at hand where that is: columns that all of its rows see, and those that stages go through.
  struct Columns {
    llvm::Value *begin, *end;  // i64
  };
  std::optional<Columns> visible, shown;

  Status status;  // the first failure

  void fail(Status why) {
    if (status.ok()) status = std::move(why);
  }
};

using Values = llvm::SmallVector<llvm::Value *, 4>;

// Where code runs: the axes in scope, and how lanes lie along one of them.
struct Point {
  std::vector<llvm::Value *> axes;  // i64 by axis id; of the vector axis: lane 0's; null: not in scope
  int vector_axis = -1;             // its id, or -1: scalar code
  unsigned width = 1;               // lanes: a power of two; 1 in scalar code
  llvm::Value *active = nullptr;    // <width x i1>: lanes that exist (lane 0 always does); null: all
  llvm::Value *whole = nullptr;     // i1: whether all lanes of `active` exist; null: some do not
  // Lane 0 of the vector axis is a multiple of this; it shows that i // 16 is uniform over 16 lanes, say.
  int64_t alignment = 1;
  // Active lanes stand in one row of a flattened axis: in [row_begin, row_begin + row_length), where it begins at a
  // multiple of its length; so i / row_length is uniform. Null: not known.
  llvm::Value *row_begin = nullptr;
  int64_t row_length = 0;
  // An axis that two loops go along: it is period * turn + place. -1: none.
  int split_axis = -1;
  int64_t period = 1;
  llvm::Value *turn = nullptr, *place = nullptr;  // i64
  // The axis that the innermost loop goes along, where that is not the vector axis; -1: it is.
  int stepping = -1;
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
  std::optional<int64_t> count = std::nullopt;  // end - begin where it is known: spares guards, single passes and tails
  int64_t multiple = 1;                         // end - begin is a multiple of this: spares tails

  bool has_rest(int64_t step) const { return multiple % step != 0 && (!count || *count % step != 0); }
};

// ---- loops.cpp
// for (i = begin; i < end; i += step) body(i).
void emit_loop(KernelState &state, Range range, int64_t step, const std::function<void(llvm::Value *i)> &body);
// The same with values carried from pass to pass: body returns the next ones; the result is the last ones.
Values emit_loop(KernelState &state, Range range, int64_t step, Values initial,
                 const std::function<Values(llvm::Value *i, const Values &carried)> &body);
// At least once, and again as long as body says so, with what it gives.
struct Repeated {
  Values values;
  llvm::Value *again;  // i1
};
Values emit_repeat(KernelState &state, const Values &initial,
                   const std::function<Repeated(const Values &carried)> &body);
// if (condition) then(); else otherwise(), where there is one.
void emit_if(KernelState &state, llvm::Value *condition, const std::function<void()> &then);
void emit_if_else(KernelState &state, llvm::Value *condition, const std::function<void()> &then,
                  const std::function<void()> &otherwise);
// condition ? then() : otherwise
Values emit_if(KernelState &state, llvm::Value *condition, Values otherwise, const std::function<Values()> &then);

// The lesser and the greater of two i64.
llvm::Value *less_of(KernelState &state, llvm::Value *x, llvm::Value *y);
llvm::Value *greater_of(KernelState &state, llvm::Value *x, llvm::Value *y);

// ---- index.cpp
// An expression's value over the lanes of a point: base + stride * lane, or (lanes not null) a vector of i64.
struct LaneIndex {
  llvm::Value *base = nullptr;    // i64: lane 0's
  llvm::Value *stride = nullptr;  // i64; null: 0, the same for all lanes
  llvm::Value *lanes = nullptr;   // <width x i64>
  bool uniform() const { return !stride && !lanes; }
  bool contiguous() const;  // stride is the constant 1
};
// `values`: what Expr::value(i) is, in a body.
LaneIndex emit_index(KernelState &state, const Expr &expr, const Point &point,
                     std::span<llvm::Value *const> values = {});
// The index of every lane: <width x i64>, or i64 in scalar code.
llvm::Value *emit_lanes(KernelState &state, const LaneIndex &at, const Point &point);
// The same in i32, or as one i32 where all lanes have the same; null: they may need more bits.
llvm::Value *emit_narrow_lanes(KernelState &state, const Expr &expr, const Point &point,
                               std::span<llvm::Value *const> values);
// For an expression that does not vary with the lanes (extents, sizes, offsets of panels): its i64.
llvm::Value *emit_scalar(KernelState &state, const Expr &expr, const Point &point);

// ---- memory.cpp
// `valid`: uniform or varying i1, or null. Gives a uniform value where the address and `valid` are uniform.
llvm::Value *emit_load(KernelState &state, const kernel::Access &access, const LaneIndex &at, const Point &point,
                       llvm::Value *valid);
// Asks for the cache line at `pointer`, which need not exist. Locality 3: into the first cache, 2: the second.
void emit_prefetch(KernelState &state, llvm::Value *pointer, uint32_t locality);
// Does a store, in active lanes only. `results`: of the stage, uniform or varying.
void emit_store(KernelState &state, const kernel::Store &store, const Values &results, const Point &point);

// ---- masked.cpp: for pointers to vectors of elements that lie side by side (in memory a bool is an i8), `mask` is
// <width x i1>, and lanes where it is false touch no memory and give `otherwise`. Where Features::has_masked holds.
llvm::Value *emit_masked_load(KernelState &state, llvm::Type *type, llvm::Value *pointer, llvm::Value *mask,
                              llvm::Value *otherwise);
void emit_masked_store(KernelState &state, llvm::Value *elements, llvm::Value *pointer, llvm::Value *mask);
// The same for a vector of pointers. Where Features::has_scattered holds.
llvm::Value *emit_gather(KernelState &state, llvm::Type *type, llvm::Value *pointers, llvm::Value *mask,
                         llvm::Value *otherwise);
void emit_scatter(KernelState &state, llvm::Value *elements, llvm::Value *pointers, llvm::Value *mask);

// ---- body.cpp
// What the leaves of a body read beside memory.
struct Leaves {
  std::span<llvm::Value *const> carriers;  // combine bodies: left side's, then right side's
  llvm::Value *accumulator = nullptr;      // epilogues
  // By number of a body's value: what is there already; null, or none: it is to be made.
  std::span<llvm::Value *const> loaded = {};
};
// Emits a body at a point; gives its yields, uniform or varying.
Values emit_body(KernelState &state, const kernel::Body &body, const Point &point, const Leaves &leaves = {});
// `results`: yields or carriers, by number.
// A map at a point. Where nothing that it reads can be what it writes, each result is stored as soon as it is there: of
// many fewer are kept.
void emit_map(KernelState &state, const kernel::Stage &stage, const Point &point);
void emit_stores(KernelState &state, std::span<const kernel::Store> stores, const Values &results, const Point &point);

// ---- crossed.cpp
// Rows of as many lanes, which become columns of 2 or 4 elements, lane after lane: by blocks of four lanes, as x86's
// shuffles go. Of two rows a and b the first vector has a0 b0 a1 b1 (a4 b4 a5 b5, ...), the second a2 b2 a3 b3; of four
// the first has a0 b0 c0 d0 (a4 b4 c4 d4, ...), the second lane 1 of each block, and so on.
Values interleave_two(llvm::IRBuilder<> &b, llvm::ArrayRef<llvm::Value *> rows);
Values interleave_four(llvm::IRBuilder<> &b, llvm::ArrayRef<llvm::Value *> rows);
// A block of lanes() x lanes() points of the kernel's last two parallel axes, from (i, j) on, whose loads `crossed`
// (kernel::crossed_loads) are read along i and transposed in registers.
void emit_crossed_block(KernelState &state, std::span<const size_t> crossed, const Point &point, llvm::Value *i,
                        llvm::Value *j);

// ---- arithmetic.cpp
llvm::Type *type_of(KernelState &state, DType type);  // of a scalar in registers
llvm::Type *memory_type_of(KernelState &state, DType type);
llvm::Constant *constant_of(KernelState &state, DType type, uint64_t immediate);
llvm::Value *splat(KernelState &state, llvm::Value *value, unsigned width);  // a vector, or width 1: `value` as it is
inline MathBuilder math_builder(KernelState &state) { return {state.b, state.features.fma, state.features.rounding}; }
llvm::Value *emit_floor(KernelState &state, llvm::Value *x);  // a scalar or a vector of f32 or f64
// a * b + c; of floats rounded once where the level has such an instruction.
llvm::Value *emit_multiply_add(KernelState &state, llvm::Value *a, llvm::Value *b, llvm::Value *c);
// Sets an error bit if `bad` (uniform or varying) is true in a lane of `active` (as Point::active).
void emit_error(KernelState &state, llvm::Value *bad, llvm::Value *active, uint32_t bit);

// ---- core_ops.cpp, convert.cpp
struct CoreTypes {
  DType result, operand;  // operand: of the last one (a comparison's and a conversion's differs)
};
// What `op`, which is no leaf, gives; operands are uniform or varying, in any mixture.
llvm::Value *emit_core(KernelState &state, kernel::Core op, CoreTypes types, const Values &operands,
                       llvm::Value *active);
llvm::Value *emit_convert(KernelState &state, llvm::Value *x, DType from, DType to);

// ---- sort.cpp, sort_digits.cpp, search.cpp: the order of kernel::Sort
// i1, or a vector of it: whether x comes before y. Both are of `type`, both uniform or both varying.
llvm::Value *emit_before(KernelState &state, DType type, llvm::Value *x, llvm::Value *y, bool descending);
// The number of bits that a number (i64 >= 0, or a vector of it) needs.
llvm::Value *emit_bit_count(KernelState &state, llvm::Value *number);
void emit_sort(KernelState &state, const kernel::Stage &stage, const Point &point);
// `valid`: as emit_load's. `values`: as emit_index's.
llvm::Value *emit_search(KernelState &state, const kernel::Value &search, llvm::Value *key, const Point &point,
                         llvm::Value *valid, std::span<llvm::Value *const> values);

// ---- stages.cpp, reduce.cpp, partial_sums.cpp, chunks.cpp, scan.cpp
// How to run along one axis, `width` lanes at a time.
struct LanePlan {
  size_t axis;         // its id
  unsigned width;      // 1: point by point
  bool masked;         // the rest in one pass under a mask; otherwise point by point
  bool single;         // all passes under a mask, in one loop: the body is too long to be there twice
  int64_t alignment;   // Point::alignment
  bool pairs = false;  // two vectors at a time while there are two: emit_over_lanes()
};
// The plan for what `stages` do along `axis`: masked if there are masks for all their stores.
LanePlan make_plan(const KernelState &state, std::span<const kernel::Stage> stages, size_t axis, unsigned width,
                   int64_t alignment);
Point at_lanes(const LanePlan &plan, Point point, llvm::Value *i);   // all `width` of them
Point at_scalar(const LanePlan &plan, Point point, llvm::Value *i);  // one
// The lanes from i up to `end`, which are fewer than `width` unless plan.single.
Point at_masked(KernelState &state, const LanePlan &plan, Point point, llvm::Value *i, llvm::Value *end);
// A range's part that fills vectors, and the rest.
struct LaneRanges {
  Range vectors, rest;
};
LaneRanges split_range(KernelState &state, const Range &range, unsigned width);
// body at every point of the range.
void emit_over_lanes(KernelState &state, const LanePlan &plan, Range range, const Point &point,
                     const std::function<void(const Point &)> &body);
// Whether it is so for all values of its symbols.
bool is_multiple(const Expr &expr, int64_t divisor);
// How many lanes it is known to be a multiple of: of two vectors, of one, or 1.
int64_t whole_vectors(const kernel::Schedule &schedule, const Expr &extent);
Range stage_range(KernelState &state, const kernel::Axis &axis, const Point &point);
// All stages at one point, or `width` points, of the parallel axes.
void emit_stages(KernelState &state, const Point &point);
// All stages for a tile of the last parallel axis (kernel::is_in_row_tiles). `point` has the axes before it set.
void emit_row_tile(KernelState &state, const Point &point, const Range &rows);
// A reduction at one point of its loop axes; `first` is the number (among the stage's axes) of its first reduce axis.
void emit_reduction(KernelState &state, const kernel::Stage &stage, size_t first, const Point &point);
// The carriers that it ends with, where its lanes are points and its partial results lie in scratch (partial_sums.cpp).
Values emit_partial_sums(KernelState &state, const kernel::Stage &stage, size_t first, const Point &point);
// The carriers of all of a reduction's points, from those of its chunks (chunks.cpp). `all` is the numbers of its
// points, from 0 on, and `sum_of`, which is called once, emits the carriers of a part of them, of `width` lanes.
Values emit_chunks(KernelState &state, const kernel::Stage &stage, const Range &all, unsigned width,
                   const std::function<Values(const Range &part)> &sum_of);
// Carriers in scratch, from `offset` on: [carrier][number of `count`][point of kernel::points_side_by_side()], of which
// `width` are in use.
class CarriersInScratch {
 public:
  CarriersInScratch(KernelState &state, const kernel::Carriers &carriers, const Expr &offset, int64_t count,
                    unsigned width);
  Values load(llvm::Value *number) const;
  void store(llvm::Value *number, const Values &values) const;

 private:
  llvm::Value *place(size_t carrier, llvm::Value *number) const;
  llvm::Type *vector(llvm::Type *element) const;

  KernelState &state_;
  const kernel::Carriers &carriers_;
  const int64_t lanes_;
  const unsigned width_;
  Values areas_;  // by carrier
};
// A scan at one point of its loop axes.
void emit_scan(KernelState &state, const kernel::Stage &stage, const Point &point);
// Carriers of `width` lanes: at the start, and combined.
Values emit_identities(KernelState &state, const kernel::Carriers &carriers, unsigned width);
Values emit_combination(KernelState &state, const kernel::Carriers &carriers, const Values &left, const Values &right,
                        unsigned width);

// ---- contraction.cpp: the tile m x n of a contraction. `point` has the axes outside it set and is scalar.
void emit_contraction(KernelState &state, const kernel::Stage &stage, const Point &point, const Range &m,
                      const Range &n);

// ---- kernel.cpp: adds the function `kernel` (kiln_kernel_fn) to the module.
inline constexpr const char *entry_name = "kernel";
Status emit_kernel(const kernel::Kernel &kernel, const Features &features, llvm::Module &module);

}  // namespace kiln::codegen
