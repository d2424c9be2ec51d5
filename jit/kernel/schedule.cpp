// Tiles, vectors and the microkernel, from the kernel's accesses and the target. Figures are from measurements; the
// comment at each says which.
#include <algorithm>

#include "jit/kernel/body.h"
#include "jit/kernel/fuse_steps.h"

namespace kiln::kernel {
namespace {

// Larger outputs would leave the caches before anyone reads them: written past them, they spare a read of each line.
constexpr uint64_t stream_bytes = 32 << 20;
constexpr int64_t small_window = 64;  // points over several axes: too few for what a vector along them costs
// Of an axis that each point goes through. Rows may be long and few: tasks must still be enough for all threads.
constexpr int64_t unknown_extent = 512;
constexpr int64_t task_elements = 4096;       // of one task, where sizes are known: some µs of work, 16 KiB a buffer
constexpr int64_t unrolled_elements = 16384;  // the same where points make several each, from registers to far apart
constexpr int64_t block_side = 64;            // of a transpose: rows read and rows written are pages of their own

int64_t constant_or(const Expr &e, int64_t otherwise) { return e.is_integer() ? e.integer() : otherwise; }

// How many accesses to memory walk `axis` with unit stride.
int unit_strides(const Stage &stage, uint32_t axis, const Kernel &kernel) {
  int count = 0;
  const auto look = [&](const Access &a) {
    if (kernel.buffers[a.buffer].space == Buffer::Space::row_local) return;
    const std::optional<Expr> step = a.index[0].coefficient(axis);
    count += step && step->is(1);
  };
  for (const Value &v : stage.body.values) {
    if (v.op == Core::load) look(v.access);
  }
  for (const Store &store : stage.stores) look(store.to);
  return count;
}

// What a vector of accesses costs: of elements side by side, or all of one element, 1; the others are gathered, but
// every other element, which comes out of two loads.
int64_t vector_cost(const Access &access, uint32_t axis, const Kernel &kernel) {
  if (kernel.buffers[access.buffer].space == Buffer::Space::row_local) return 0;
  const std::optional<Expr> step = access.index[0].coefficient(axis);
  const int64_t stride = step && step->is_integer() ? step->integer() : INT64_MAX;
  return stride == 0 || stride == 1 ? 1 : stride == 2 ? 2 : kernel.schedule.lanes();
}

// That of all loads along `axis` at one point. Numbers that do not count evenly along it are divisions.
int64_t load_cost(const Stage &stage, uint32_t axis, const Kernel &kernel) {
  int64_t cost = 0;
  for (const Value &v : stage.body.values) {
    if (v.op == Core::index && !v.expr.coefficient(axis)) cost += kernel.schedule.lanes();
    if (v.op == Core::load) cost += vector_cost(v.access, axis, kernel);
  }
  return cost;
}
int64_t store_cost(const Stage &stage, uint32_t axis, const Kernel &kernel) {
  int64_t cost = 0;
  for (const Store &store : stage.stores) cost += vector_cost(store.to, axis, kernel);
  return cost;
}

// Whether b is packed already, or packing it is to copy.
bool copies_b(const Contract &contract) { return contract.panel != 0 || contract.b.values.size() == 1; }

// What a task of a contraction works on at a time: `rows` of A by kc, which stay in L2, and the columns for which A
// stays packed. To have more tasks columns are halved before rows, as long as row_worth * columns >= rows.
struct Blocks {
  int64_t rows, kc, columns, row_worth = 1;
};
Blocks choose_blocks(const Contract &contract, int64_t mr, const Target &target) {
  // Each task packs b anew: for more rows (130 to 143 GFLOP/s at 1024^3). With AVX2 for so many that they come from L3,
  // in their order (a product of 2048^3 takes 0.7 of the time). To be measured where vectors are longer.
  if (contract.panel == 0 && copies_b(contract) && target.vector_bytes() == 32) return {96 * mr, sum_depth, 512, 2};
  if (contract.panel == 0) return {24 * mr, sum_depth, 512};
  // Processors with AVX-512 have an L2 of 1 MiB and more. Sums that are complete after one block are never read again,
  // and A is packed once (0.68 to 0.74 of the peak at 1024^3).
  if (target.vector_bytes() == 64) return {6 * mr, sum_depth, 1024};
  return {8 * mr, sum_depth, 512};
}

// Enough tasks for some threads, as long as they are worth their start and what each packs for itself.
constexpr int64_t enough_tasks = 8, enough_products = 1 << 21;
constexpr int64_t unknown_rows = 256, unknown_columns = 512;

// Smaller blocks of a contraction of few rows and columns; `depth` and `batch` are all of k and of batches. Fewer rows
// would pack b once more: that of a convolution is no plain copy.
Blocks divided(Blocks blocks, const Contract &contract, const Expr &m, const Expr &n, const Expr &depth,
               const Expr &batch) {
  const bool copies = copies_b(contract);
  const int64_t fewest_rows = copies ? 48 : 128, fewest_columns = copies ? 128 : 96;
  const auto extent = [](const Expr &e, int64_t otherwise) {
    return std::min(constant_or(e, otherwise), int64_t{1} << 20);
  };
  const int64_t rows = extent(m, unknown_rows), columns = extent(n, unknown_columns), k = extent(depth, sum_depth),
                others = extent(batch, 1);
  const auto count = [](int64_t extent, int64_t tile) { return (extent + tile - 1) / std::max<int64_t>(tile, 1); };
  for (;;) {
    const int64_t r = std::min(rows, blocks.rows), c = std::min(columns, blocks.columns);
    const bool cuts_columns = c >= 2 * fewest_columns && (!copies || blocks.row_worth * c >= r || r < 2 * fewest_rows);
    if (!cuts_columns && r < 2 * fewest_rows) return blocks;
    if (count(rows, r) * count(columns, c) * others >= enough_tasks || r * c * k < 2 * enough_products) return blocks;
    (cuts_columns ? blocks.columns : blocks.rows) = (cuts_columns ? c : r) / 2;
  }
}

void schedule_contraction(Kernel &kernel, const Target &target) {
  Schedule &s = kernel.schedule;
  const size_t rank = kernel.parallel.size();
  const Expr &m = kernel.parallel[rank - 2].extent, &n = kernel.parallel[rank - 1].extent;
  Stage &stage = kernel.stages.front();
  Contract &contract = *stage.contract;
  // Packed anew for each tile, halves are as well widened there.
  if (const Factors factors = choose_factors(contract, target); contract.panel == 0 && factors.group > 1)
    set_factors(contract, factors);
  const Microkernel micro = choose_microkernel(m, contract.accumulator, target);
  s.vector = Schedule::Vector::inner;
  s.mr = micro.mr;
  s.nr = micro.nr;
  Expr batch = 1;
  for (size_t axis = 0; axis + 2 < rank; ++axis) batch *= kernel.parallel[axis].extent;
  const Blocks blocks = divided(choose_blocks(contract, s.mr, target), contract, m, n, stage.axes[0].extent, batch);
  s.kc = static_cast<uint32_t>(std::clamp<int64_t>(constant_or(stage.axes[0].extent, blocks.kc), 1, blocks.kc));
  s.kc = (s.kc + contract.group - 1) / contract.group * contract.group;
  if (contract.group == 4) s.products = Schedule::Products::dot;
  // Tiles of a known extent are balanced: no thin one is left over.
  const auto tile = [](const Expr &extent, int64_t step, int64_t limit) {
    int64_t wanted = limit;
    if (extent.is_integer()) {
      const int64_t count = std::max<int64_t>(1, (extent.integer() + limit - 1) / limit);
      wanted = (extent.integer() + count - 1) / count;
    }
    return static_cast<uint32_t>(std::max<int64_t>(step, (wanted + step - 1) / step * step));
  };
  s.tiles.assign(rank, 1);
  s.tiles[rank - 2] = tile(m, s.mr, blocks.rows);
  s.tiles[rank - 1] = tile(n, s.nr, blocks.columns);
  const uint32_t m_axis = static_cast<uint32_t>(rank) - 2, n_axis = m_axis + 1;
  const auto cost = [&](uint32_t axis) { return load_cost(stage, axis, kernel) + store_cost(stage, axis, kernel); };
  s.vector_m = cost(m_axis) < cost(n_axis);
}

bool is_over_several_axes(const Stage &stage) {
  return stage.axes.size() > 1 && stage.axes[stage.axes.size() - 2].role == Axis::Role::reduce;
}

// Whether lanes along its last axis would not see the points of a sum in their order.
bool needs_flattening(const Stage &stage) { return rounds(stage.carriers.combine) && is_over_several_axes(stage); }

// Whether its contractions have rows and columns that belong to several rows: not those of a scan's turns, which each
// point has for itself.
bool has_row_tiles(const Kernel &kernel) {
  const auto sums = [](const Stage &stage) { return stage.contract.has_value(); };
  return !kernel.parallel.empty() && std::ranges::any_of(kernel.stages, sums) &&
         std::ranges::none_of(kernel.stages, &Stage::in_blocks);
}

// Rows of a tile. b is packed for all of them, which asks for many; of what hidden columns spare more is lost the
// larger a tile is beside all rows, and scratch keeps what lies between contractions of each. Causal attention was
// fastest with 36 to 48 rows of 128, 72 to 96 of 1,024 and 192 of 4,096: the root of 8 times all rows.
uint32_t choose_rows(const Kernel &kernel, const Target &target) {
  constexpr int64_t packing_rows = 8, fewest_rows = 24, most_rows = 192, assumed_columns = 1024;
  const int64_t cache_bytes = int64_t{target.vector_bytes() == 64 ? 6 : 3} << 20;  // some L2 and a part of L3
  const int64_t mr = kernel.schedule.mr;
  int64_t row_bytes = 1, others = 1;
  for (const Buffer &buffer : kernel.buffers)
    if (buffer.space == Buffer::Space::row_local)
      row_bytes += constant_or(buffer.size, assumed_columns) * static_cast<int64_t>(size_of(buffer.type));
  for (size_t i = 0; i + 1 < kernel.parallel.size(); ++i) others *= constant_or(kernel.parallel[i].extent, 1);
  const int64_t all = std::max<int64_t>(1, constant_or(kernel.parallel.back().extent, unknown_rows));
  int64_t rows = fewest_rows;
  while (rows < most_rows && rows * row_bytes < cache_bytes && rows * rows < packing_rows * all) rows += mr;
  const auto count = [&] { return (all + rows - 1) / rows; };
  while (rows > mr && count() * others < enough_tasks) rows = std::max(mr, rows / 2);
  rows = (all + count() - 1) / count();  // no thin tile is left over
  return static_cast<uint32_t>((rows + mr - 1) / mr * mr);
}

void schedule_row_tiles(Kernel &kernel, const Target &target) {
  Schedule &s = kernel.schedule;
  const auto sums = [](const Stage &stage) { return stage.contract.has_value(); };
  const Stage &first = *std::ranges::find_if(kernel.stages, sums);
  const Microkernel micro = choose_microkernel(kernel.parallel.back().extent, first.contract->accumulator, target);
  s.vector = Schedule::Vector::inner;
  s.mr = micro.mr;
  s.nr = micro.nr;
  s.kc = 1;
  for (const Stage &stage : kernel.stages) {
    if (!stage.contract) continue;
    const int64_t depth = constant_or(stage.axes.back().extent, sum_depth);
    s.kc = std::max(s.kc, static_cast<uint32_t>(std::clamp<int64_t>(depth, 1, sum_depth)));
  }
  const auto rows = static_cast<uint32_t>(kernel.parallel.size());
  for (Stage &stage : kernel.stages)
    if (is_ordered(kernel, stage) && needs_flattening(stage)) flatten_reduction(stage, rows);
  s.tiles.assign(rows, 1);
  s.tiles.back() = choose_rows(kernel, target);
}

// A device has threads enough for each point, and splits its own work: tasks are points, nothing is blocked.
void schedule_contraction_on_device(Kernel &kernel) { kernel.schedule.tiles.assign(kernel.parallel.size(), 1); }

// Whether points make several elements of one array each.
bool unrolls(const Kernel &kernel) {
  const std::vector<Store> &stores = kernel.stages[0].stores;
  return kernel.stages.size() == 1 && kernel.stages[0].axes.empty() && stores.size() > 1 &&
         stores[0].to.buffer == stores[1].to.buffer;
}

// Whole vectors of the last axis, which is cut into even pieces, then of the others what fills a task.
void schedule_unrolled(Kernel &kernel) {
  Schedule &s = kernel.schedule;
  const int64_t lanes = s.lanes();
  int64_t left = unrolled_elements / static_cast<int64_t>(kernel.stages[0].stores.size());
  left = std::max(left / lanes, int64_t{1}) * lanes;
  for (size_t i = kernel.parallel.size(); i-- > 0;) {
    const int64_t extent = std::max<int64_t>(constant_or(kernel.parallel[i].extent, unknown_extent), 1);
    const int64_t count = (extent + left - 1) / left, step = i + 1 == kernel.parallel.size() ? lanes : 1;
    const int64_t tile = ((extent + count - 1) / count + step - 1) / step * step;
    s.tiles[i] = static_cast<uint32_t>(tile);
    left = std::max<int64_t>(left / tile, 1);
  }
}

void schedule_loops(Kernel &kernel, const Target &target) {
  Schedule &s = kernel.schedule;
  const uint32_t rows = static_cast<uint32_t>(kernel.parallel.size());
  bool has_axes = false, windows = false, sorts = false, sums = false;
  int along_inner = 0, along_rows = 0;
  int64_t cost_inner = 0, cost_rows = 0;
  int64_t work = 1;  // per point of the parallel axes, as far as it is known
  for (const Stage &stage : kernel.stages) {
    int64_t points = 1;
    for (const Axis &axis : stage.axes) points *= std::max<int64_t>(1, constant_or(axis.extent, unknown_extent));
    work = std::max(work, points);
    has_axes |= !stage.axes.empty();
    sorts |= stage.sort.has_value();     // whose elements then lie together
    sums |= stage.contract.has_value();  // whose columns lie side by side, and are many
    windows |= is_over_several_axes(stage) && constant_or(reduced_points(stage), INT64_MAX) <= small_window;
    if (!stage.axes.empty() && !stage.scans()) {  // which goes along its last axis one by one
      const uint32_t last = rows + static_cast<uint32_t>(stage.axes.size()) - 1;
      along_inner += unit_strides(stage, last, kernel);
      cost_inner += load_cost(stage, last, kernel);
      if (rows > 0) cost_rows += load_cost(stage, rows - 1, kernel);
    }
    if (rows > 0) along_rows += unit_strides(stage, rows - 1, kernel);
  }
  // What lies side by side decides; between equals, what it takes to read the rest.
  const bool reads_inner = along_inner > along_rows || (along_inner == along_rows && cost_inner <= cost_rows);
  const bool inner = rows == 0 || sorts || sums || (has_axes && reads_inner && !windows);
  s.vector = inner ? Schedule::Vector::inner : Schedule::Vector::parallel;
  if (inner && !target.on_device()) {
    for (Stage &stage : kernel.stages)
      if (is_ordered(kernel, stage) && needs_flattening(stage)) flatten_reduction(stage, rows);
  }
  s.tiles.assign(rows, 1);
  if (target.on_device()) return;
  s.stream_bytes = stream_bytes;
  if (!crossed_loads(kernel).empty()) {
    for (size_t i = rows - 2; i < rows; ++i)
      s.tiles[i] =
          static_cast<uint32_t>(std::clamp<int64_t>(constant_or(kernel.parallel[i].extent, block_side), 1, block_side));
    return;
  }
  if (rows > 0 && unrolls(kernel)) return schedule_unrolled(kernel);
  // The innermost parallel axes fill a task, as long as their extents are known.
  int64_t left = std::max<int64_t>(1, task_elements / work);
  if (!inner) left = std::max<int64_t>({left, int64_t{4} * s.lanes(), int64_t{points_side_by_side(kernel)}});
  for (size_t i = rows; i-- > 0 && left > 1;) {
    const int64_t extent = constant_or(kernel.parallel[i].extent, INT64_MAX);
    s.tiles[i] = static_cast<uint32_t>(std::clamp<int64_t>(extent, 1, left));
    if (extent > left) break;
    left /= std::max<int64_t>(extent, 1);
  }
}

}  // namespace

Microkernel choose_microkernel(const Expr &m, DType accumulator, const Target &target) {
  // AVX-512: 12x32 fills 24 of 32 registers and reaches 90 to 97 % of the peak; AVX2: 6x16 reaches the full FMA rate,
  // where 12x8 is bound by loads and 3x32 spills; 16 registers of 4 floats take 4x8.
  Microkernel micro = target.vector_bytes() == 64   ? Microkernel{12, 32}
                      : target.vector_bytes() == 32 ? Microkernel{6, 16}
                                                    : Microkernel{4, 8};
  micro.nr = micro.nr * sizeof(float) / size_of(accumulator);  // as many registers
  if (m.is_integer()) micro.mr = static_cast<uint32_t>(std::clamp<int64_t>(m.integer(), 1, micro.mr));
  return micro;
}

Factors choose_factors(const Contract &contract, const Target &target) {
  const auto converted = [](const Body &body) {
    const Value &yield = body.values[static_cast<size_t>(body.yields[0])];
    return yield.op == Core::convert ? body.values[static_cast<size_t>(yield.args[0])].type : DType::none;
  };
  const DType a = converted(contract.a), b = converted(contract.b);
  if (contract.accumulator == DType::i32 && (a == DType::i8 || a == DType::u8) && b == DType::i8) return {a, b, 4};
  // Halves are widened in registers, which hides behind the products (an instruction or two for each vector of
  // columns); without F16C it would not.
  const bool widens = b == DType::bf16 || (b == DType::f16 && target.features.has(Feature::f16c));
  if (contract.accumulator == DType::f32 && widens) return {DType::none, b, 1};
  return {};
}

void set_factors(Contract &contract, const Factors &factors) {
  contract.a_factor = factors.a;
  contract.b_factor = factors.b;
  contract.group = factors.group;
}

void schedule(Kernel &kernel, const Target &target, const FuseOptions &options) {
  Schedule &s = kernel.schedule;
  s.vector_bytes = target.vector_bytes();
  s.ordered = options.ordered;
  s.masked_tail = s.vector_bytes > 16;
  if (!target.on_device() && !is_tiled_contraction(kernel) && has_row_tiles(kernel))
    schedule_row_tiles(kernel, target);
  else if (!is_tiled_contraction(kernel))
    schedule_loops(kernel, target);
  else if (target.on_device())
    schedule_contraction_on_device(kernel);
  else
    schedule_contraction(kernel, target);
}

}  // namespace kiln::kernel
