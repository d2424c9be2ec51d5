// Kernel IR: what an emitter compiles, and all that it may read. Data only; no backend is known here.
//
// A kernel walks the flattened tiles of its parallel axes; for each point it runs its stages in order. Axis ids: the
// parallel axes are 0 .. P-1; the axes of each stage go on from P (so ids are reused from stage to stage). A stage is
//   - a map:         for each point of its loop axes: body, then stores of its yields;
//   - a reduction:   (carriers and reduce axes) loop axes outside, reduce axes inside: the body's yields are combined
//                    into the carriers; then stores of the carriers;
//   - a scan:        (carriers and a scan axis) loop axes outside, the scan axis inside: point after point the body's
//                    first yields are combined into the carriers, and stores write them, and its further yields;
//   - a sort:        (sort present) its one axis, a scan axis, counts the elements of row_local buffers;
//   - a contraction: (contract present) accumulator(m, n) = sum over k of a(m, k) * b(k, n), where a and b are bodies
//                    with one yield each (a may not depend on n, nor b on m); then body, the epilogue, runs for each
//                    (m, n) and reads it through Core::accumulator; then stores. As a kernel's only stage with one
//                    axis, k (reduce), it has the last two parallel axes for m and n, in tiles; among other stages its
//                    last loop axes are m and n, its reduce axis k, and the sum is a plain loop in order, or, where a
//                    schedule has a microkernel, a tile of the last parallel axis at a time (is_in_row_tiles()).
// Stages that follow one another and begin with a block axis, of one extent, run together: all of them for the first
// block, then for the next. What they leave in row_local buffers they find there again in the next block.
// Stages pass values to later stages through row_local buffers, which live for one point of the parallel axes.
//
// The order of sums. Where a combination rounds, its order shows. It is a function of the extents of the reduce axes
// and of the target's features, so that a sum is the same bits whatever else a kernel does, and however it is
// scheduled:
//   - a reduction numbers the points of its reduce axes in row-major order, and cuts them into chunks of sum_chunk, the
//     last of which may be shorter. A chunk of N points has sum_sets sets of L partial results, L being
//     Schedule::lanes(). As long as whole blocks of sum_sets * L points last, point i belongs to partial i % L of set
//     i / L % sum_sets; after them to partial i % L of set 0. Each partial takes its points in order, beginning with
//     the identity. Then the sets are combined in order, and halves, quarters, ... of the partials, the lower one on
//     the left. On a device there is one set, of device_partials, and chunks are of device_chunk points.
//     Of several chunks the first 2^k, the most that are not all, are combined by this same rule, then the others, then
//     the two: so errors of long sums grow with the logarithm of their length. Groups of 2^k chunks may therefore be
//     summed by kernels' tasks of their own, and their sums combined as chunks are (Carriers::until, in_pairs);
//   - a contraction sums its products in order, apart for each sum_depth of k, and adds those sums up in order.
// Schedule::ordered false frees it, but for chunks, and what those are made of where they lie along several axes or
// lanes are points.
//
// A value's index map is an Expr over symbols, axes in scope and (Expr::value) values of the same body.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jit/base/bytes.h"
#include "jit/base/dtype.h"
#include "jit/base/expr.h"
#include "jit/base/status.h"
#include "jit/base/target.h"

namespace kiln::kernel {

enum class Core : uint8_t {
#define CORE_OP(name, operands, group, cost, kind, meaning) name,
#include "jit/kernel/core_ops.def"
#undef CORE_OP
};
inline constexpr size_t core_count = 0
#define CORE_OP(name, operands, group, cost, kind, meaning) +1
#include "jit/kernel/core_ops.def"
#undef CORE_OP
    ;
// Which types an operation takes and gives.
enum class CoreGroup : uint8_t {
  leaf,      // takes none; what it reads says which it gives
  convert,   // any; any
  number,    // one type, which is the result's
  real,      // the same, of floats
  integer,   // the same, of integers
  compare,   // one type; boolean
  logical,   // booleans; boolean
  select,    // a boolean and two of the result's type
  in_range,  // two i64; boolean
  search,    // one of any type, which is the buffer's; i64
};
// What an operation does to floats, and how much code that is.
enum class CoreClass : uint8_t {
  exact,     // rounds nothing; an instruction or a few
  rounded,   // rounds once or twice; an instruction or a few
  function,  // a function of its own, which emitters write in place: twenty instructions and more
};
struct CoreInfo {
  Core op;
  std::string_view name;
  int operands;
  CoreGroup group;
  int cost;  // of one evaluation, in additions
  CoreClass kind;
};
const CoreInfo &core_info(Core op);

// `index` has one expression per dimension while a compute is built (compute.h), and exactly one, the offset in
// elements, in a kernel; of a search two, the offset of the row's first element and the step to the next one. Where
// value `valid` (a boolean of the same body; -1: always) is false, `fill` is read.
struct Access {
  uint16_t buffer = 0;
  std::vector<Expr> index;
  int32_t valid = -1;
  uint64_t fill = 0;  // an immediate, as Core::constant's
};

struct Value {
  Core op = Core::constant;
  DType type = DType::f32;
  std::array<int32_t, 3> args{-1, -1, -1};  // earlier values of the same body
  uint64_t immediate = 0;                   // constant, carrier; search: bits of SearchFlags
  Access access;                            // load, search
  Expr expr;                                // index; search: how many elements the row has
};
enum SearchFlags : uint64_t { search_upper = 1, search_descending = 2 };
inline bool has_expr(Core op) { return op == Core::index || op == Core::search; }  // in Value::expr
inline bool reads_memory(Core op) { return op == Core::load || op == Core::search; }

struct Body {
  std::vector<Value> values;
  std::vector<int32_t> yields;
};

// Whether a value of it is a rounded float, so that the order of such combinations shows.
bool rounds(const Body &body);

// See "The order of sums".
inline constexpr uint32_t sum_sets = 4, device_partials = 256, sum_depth = 1024;
inline constexpr int64_t sum_chunk = 4096, device_chunk = 65536;  // powers of two

struct Axis {
  enum class Role : uint8_t { parallel, loop, reduce, scan, block };
  Expr extent;
  Role role = Role::parallel;
};

struct Carriers {
  std::vector<DType> types;
  std::vector<uint64_t> identities;  // immediates
  Body combine;                      // of 2n Core::carrier values; yields n
  // Of a scan: what is stored at a point are the carriers before that point, not with it; points go from last to first.
  bool exclusive = false, reverse = false;
  // Of a reduction over one axis, which is cut into groups of whole chunks: of the axis's points so many, from the
  // first on, over the other axes (a group has as many as there are left); none: all.
  std::optional<Expr> until = {};
  // What is combined are the results of such groups in order: each takes the place of a chunk.
  bool in_pairs = false;
};

// A stage's results are what its stores write, and what their indices and guards may name: of a map or a contraction
// the body's yields; of a reduction the carriers; of a scan the carriers, then the yields beyond them. `to.index` reads
// them as Expr::value, `to.valid` is the number of a boolean one: where it is false, nothing is written. `to.fill` is
// unused.
//
// Stores happen in the order of points, so that of two to one element the later one holds, and sums are the same in
// every run. Whatever may run at once keeps out of each other's way: a store to memory that combines, or whose index
// reads results, either has a stride for each parallel axis that shows that no two points of these share an element
// (separates()), or its kernel is one task. Devices have no such order: there what is exact in any order is atomic, and
// for the rest one thread does it all.
struct Store {
  enum class Mode : uint8_t { plain, add, mul, min, max, bit_and, bit_or };  // else: with what lies there, on the left
  Access to;
  int32_t value = 0;  // the number of a result
  Mode mode = Mode::plain;

  bool combines() const { return mode != Mode::plain; }
  bool scatters() const { return to.index[0].depends_on_value(); }
};
// The operation of a combining store, of `type`.
Core core_of(Store::Mode mode, DType type);
// Whether `index` is an element of its own for each point of `axes`, whatever else it depends on: each of them can be
// told from it, by a division by its stride, what is left by a division by its stride times its extent, or both.
bool separates(const Expr &index, std::vector<uint32_t> axes);

// Sorts row_local buffers in place: the first column by its values, the others along with it. Equal elements keep their
// order, in either direction; so do NaN, which are greater than all numbers, and 0 and -0. `spare` is as large as
// `buffer`; what it holds is lost.
struct Sort {
  struct Column {
    uint16_t buffer = 0, spare = 0;
  };
  std::vector<Column> columns;
  bool descending = false;
  Expr runs = 1;               // the elements come in sorted runs of this many, which are merged: so tiles become a row
  std::optional<Expr> wanted;  // the first so many are all that is asked for; what lies behind them is lost
};

struct Contract {
  Body a, b;
  DType accumulator = DType::f32;
  // What the panels of a microkernel hold, packed anew in scratch or lying packed in a buffer: what the bodies yield,
  // or, where a type is given, what the conversion takes that the body ends in. The elements of `group` (1, 2 or 4)
  // consecutive k stand together, zero beyond K.
  DType a_factor = DType::none, b_factor = DType::none;
  uint32_t group = 1;
  // Not 0: b lies packed in buffer `packed_buffer`, in panels of this many columns: element (k, n) is at
  // packed_offset + ((n / panel) * ceil(K / group) + k / group) * panel * group + (n % panel) * group + k % group,
  // zero beyond K and N; body b says the same by loads. For tiles K is rounded up to whole ones, of 16 groups.
  uint32_t panel = 0;
  uint16_t packed_buffer = 0;
  Expr packed_offset;  // over symbols and the batch axes

  DType a_type() const { return a_factor == DType::none ? accumulator : a_factor; }  // of an element in a panel
  DType b_type() const { return b_factor == DType::none ? accumulator : b_factor; }
};

struct Stage {
  std::vector<Axis> axes;
  std::optional<Contract> contract;
  Body body;
  Carriers carriers;  // types empty: none
  std::vector<Store> stores;
  std::optional<Sort> sort;

  bool scans() const { return !axes.empty() && axes.back().role == Axis::Role::scan; }  // a scan, or a sort
  bool in_blocks() const { return !axes.empty() && axes.front().role == Axis::Role::block; }
};

// The same of a stage's store, whose guard may show between which bounds the results are that its index names.
bool separates(const Stage &stage, const Store &store, const std::vector<uint32_t> &axes);

struct Buffer {
  enum class Space : uint8_t { in, out, row_local };
  DType type = DType::f32;
  Space space = Space::in;
  Expr size;  // elements; row_local: per point of the parallel axes
};

// How to run it. `tiles` has one entry per parallel axis: a task covers that many consecutive indices of it.
struct Schedule {
  enum class Vector : uint8_t {
    inner,     // each stage's innermost axis (stages without axes are scalar code)
    parallel,  // the last parallel axis; stage axes are sequential. row_local buffers then hold lanes() values an
               // element
  };
  Vector vector = Vector::parallel;
  uint32_t vector_bytes = 4;  // of the widest vectors used
  std::vector<uint32_t> tiles;
  bool masked_tail = false;  // the target has masks; otherwise tails are scalar
  bool ordered = true;       // sums are in the order that is told above; false: as it is fastest
  // From this many bytes on, an out buffer that the kernel does not read is written past the caches; 0: never. Known at
  // the call, for the size may be symbolic.
  uint64_t stream_bytes = 0;
  // Contraction: microkernel rows and columns, and the depth of a packed block. All 0: no microkernel, a plain loop
  // over k for each (m, n). Among other stages it makes a kernel one in tiles of rows.
  uint32_t mr = 0, nr = 0, kc = 0;
  // How a microkernel multiplies. Sums of integers are the same in each way. Those of bf16 are rounded once a product
  // when it is widened; otherwise as the instruction does it, which takes denormals for zeros and gives none.
  enum class Products : uint8_t {
    widened,  // both factors as the accumulator's type, in the order of k
    dot,      // a group of k at once: i8 or u8 by i8 in groups of 4, bf16 by bf16 in groups of 2
    tiles,    // the same in tile registers, of 16 rows by 64 bytes: 16 groups of k at once, mr and nr 16 or 32
  } products = Products::widened;
  bool vector_m = false;  // contraction: the epilogue runs along m (a store has unit stride there), not n

  // How many elements of a size a vector holds. So many points of an axis run side by side, whatever types their
  // bodies mix: as many as elements of 4 bytes.
  uint32_t lanes(uint32_t element_bytes = 4) const { return std::max(vector_bytes / element_bytes, 1u); }
};

struct Kernel {
  std::vector<std::string> symbols;  // "s0", "s1", ...: kernels that differ in names only are one kernel
  std::vector<Buffer> buffers;       // in and out first, in the order of kiln_kernel_args.buffers
  std::vector<Axis> parallel;
  std::vector<Stage> stages;
  Schedule schedule;
};

// Whether no two tasks meet in an element of what this store of the stage writes; a store that neither combines nor
// scatters is at a place of its own.
bool keeps_tasks_apart(const Kernel &kernel, const Stage &stage, const Store &store);

// All that an emitter reads, and therefore what a kernel's key is made of (runtime/cache/key.h). parse() accepts only
// what verify() accepts.
Bytes serialize(const Kernel &kernel);
Result<Kernel> parse(ByteSpan bytes);
// Structure, ids in range, what is in scope where, types of every value, the limits of a schedule: what an emitter and
// print() rely on. An error is a bug in fusion or a damaged file. Not verified: that an index stays below its buffer's
// size, which may depend on what guards it.
Status verify(const Kernel &kernel);
std::string print(const Kernel &kernel);

// The number of tasks (flattened tiles), over Kernel::symbols.
Expr task_count(const Kernel &kernel);

// Whether a reduction is in the order that is told above: where that shows, and it is not free.
bool is_ordered(const Kernel &kernel, const Stage &stage);
// How many sums of chunks (of `chunk` points each) may have to wait for the sum on their right while a reduction whose
// order shows goes on. 0: its points are known to be one chunk.
int64_t waiting_sums(const Stage &stage, int64_t chunk);
inline int64_t chunk_of(const Stage &stage) { return stage.carriers.in_pairs ? 1 : sum_chunk; }
// The same where they lie in scratch: for each carrier, and point side by side. 0 on a device, where there are no
// lanes.
int64_t waiting_in_scratch(const Kernel &kernel, const Stage &stage);
// How many partial results a reduction keeps in scratch, for each carrier and point, where lanes are points: at most
// sum_sets * lanes where the order shows, fewer where its extent is known to be small; one where the order does not
// show and pieces of memory are walked (points_side_by_side()). 0: none.
int64_t partials_in_scratch(const Kernel &kernel, const Stage &stage);
// How many points of the last parallel axis run side by side where lanes are points: a vector of them, or several where
// all that the kernel does is to reduce columns, which then walks pieces of memory, not a line here and there.
uint32_t points_side_by_side(const Kernel &kernel);
// The number of points of a stage's reduce axes, over Kernel::symbols.
Expr reduced_points(const Stage &stage);
// Whether a microkernel of `mr` rows of a may read them where they lie, an address for each: of more the addresses
// would not be in registers. (To be measured with the 12 of AVX-512, where one is loaded for each product.)
inline bool may_read_rows_in_place(uint32_t mr) { return mr >= 2 && mr <= 6; }
// Whether its one stage is a contraction in tiles of m and n.
bool is_tiled_contraction(const Kernel &kernel);
// Whether a task runs stage after stage, each for all rows of its tile, which lie along the last parallel axis:
// attention, whose scores then lie in row_local buffers, one for each row. A contraction's m, of one point, stands for
// the row: b is the same for all of them.
bool is_in_row_tiles(const Kernel &kernel);
// How many points of the parallel axes have their row_local buffers in scratch one behind the other, and from which
// element of one to that of the next: an odd number of cache lines where rows are long, or of unknown length, so that
// columns of a tile do not meet in a few sets of a cache.
int64_t rows_in_scratch(const Kernel &kernel);
Expr row_step(const Buffer &buffer);
// The axes of a contraction that has a microkernel, by id.
struct ContractionAxes {
  uint32_t m, n, k;
};
ContractionAxes contraction_axes(const Kernel &kernel, const Stage &stage);
// How much of k and of n a task's blocks of it have; of n, 0: all, for each panel's sums are used at once.
int64_t block_depth(const Kernel &kernel, const Stage &stage);
int64_t block_columns(const Kernel &kernel, const Stage &stage);
// How many k a step of its microkernel takes, which stand together in a row of a's panels: a group, or a tile's 16.
int64_t k_step(const Contract &contract, const Schedule &schedule);
// How many elements of a row of a stand together in its panels: where memory runs along k, a vector of them is copied
// as it is; else a step's.
int64_t group_of_rows(const Contract &contract, const Schedule &schedule, bool along_k);
// The end of the stages that run together with stage `first`, block after block; without a block axis: first + 1.
size_t end_of_blocks(const Kernel &kernel, size_t first);

// An input and an output of a kernel that may be one piece of memory: each point reads of the one the element alone
// that it writes of the other, and before it does; no other point reads that element. So emitters may not take buffers
// for distinct, nor read an element again once the point has stored, nor store a point twice.
struct InPlace {
  uint16_t read, written;
  bool operator==(const InPlace &) const = default;
};
std::vector<InPlace> in_place(const Kernel &kernel);

// Scratch of one running task, as the emitter lays it out and the executor allocates it. Each area is 64-byte aligned.
struct ScratchLayout {
  std::vector<Expr> row_local;    // byte offset of each row_local buffer, in the order of Kernel::buffers (of row 0)
  Expr a_panel, b_panel, c_tile;  // microkernel: packed A block [ceil(mc/mr)][kc, whole vectors][mr], or of rows in
                                  // place an i64 for each of kc, packed B panel [kc][nr] (unless prepacked),
                                  // accumulators [mc rounded up to mr][nc rounded up to nr]
  Expr partials;                  // of sums at points_side_by_side(): [carrier][set][partial][point]
  Expr waiting;  // sums of chunks: [carrier][waiting_in_scratch()][point], a point alone unless lanes are points
  Expr size_bytes;
};
ScratchLayout scratch_layout(const Kernel &kernel);

}  // namespace kiln::kernel
