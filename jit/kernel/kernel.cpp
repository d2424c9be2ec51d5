#include "jit/kernel/kernel.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>

namespace kiln::kernel {

const CoreInfo &core_info(Core op) {
  static constexpr std::array table = {
#define CORE_OP(name, operands, group, cost, kind, meaning) \
  CoreInfo{Core::name, #name, operands, CoreGroup::group, cost, CoreClass::kind},
#include "jit/kernel/core_ops.def"
#undef CORE_OP
  };
  return table[static_cast<size_t>(op)];
}

Core core_of(Store::Mode mode, DType type) {
  switch (mode) {
    case Store::Mode::mul:
      return Core::mul;
    case Store::Mode::min:
      return Core::min;
    case Store::Mode::max:
      return Core::max;
    case Store::Mode::bit_and:
      return type == DType::boolean ? Core::logical_and : Core::bit_and;
    case Store::Mode::bit_or:
      return type == DType::boolean ? Core::logical_or : Core::bit_or;
    case Store::Mode::plain:  // no operation
    case Store::Mode::add:
      break;
  }
  return Core::add;
}

namespace {

// Neither axes nor values: the same at all points.
bool is_constant(const Expr &e) {
  bool constant = true;
  e.substitute([&](const Expr &leaf) -> std::optional<Expr> {
    constant = constant && leaf.kind() == Expr::Kind::symbol;
    return {};
  });
  return constant;
}

// The same index with each axis at 0.
Expr at_origin(const Expr &index) {
  return index.substitute([](const Expr &leaf) -> std::optional<Expr> {
    if (leaf.kind() == Expr::Kind::axis) return Expr(0);
    return {};
  });
}

bool is_separated(const Expr &index, std::vector<uint32_t> axes) {
  std::map<uint32_t, Expr> extents;
  index.substitute([&](const Expr &leaf) -> std::optional<Expr> {
    if (leaf.kind() == Expr::Kind::axis) extents[leaf.id()] = leaf.extent();
    return {};
  });
  Expr rest = index;
  while (!axes.empty()) {
    bool found = false;
    for (size_t i = 0; i < axes.size() && !found; ++i) {
      const std::optional<Expr> stride = rest.coefficient(axes[i]);
      if (!stride || stride->is(0) || !is_constant(*stride)) continue;
      const Expr inner = rest.substitute([&](const Expr &leaf) -> std::optional<Expr> {
        if (leaf.kind() == Expr::Kind::axis && leaf.id() == axes[i]) return Expr(0);
        return {};
      });
      const Expr all = Expr::axis(axes[i], extents.at(axes[i])), period = *stride * extents.at(axes[i]);
      if (!floor_div(inner, *stride).is(0) && floor_div(mod(rest, period), *stride) != all) continue;
      rest = inner;
      axes.erase(axes.begin() + static_cast<ptrdiff_t>(i));
      found = true;
    }
    if (!found) return false;
  }
  return true;
}

}  // namespace

// Where all points begin changes nothing, but may hide a stride: sizes that might be negative leave min(0, n - 1)
// there.
bool separates(const Expr &index, std::vector<uint32_t> axes) {
  if (is_separated(index, axes)) return true;
  const Expr begin = at_origin(index);
  return !begin.is_integer() && is_constant(begin) && is_separated(index - begin, std::move(axes));
}

bool separates(const Stage &stage, const Store &store, const std::vector<uint32_t> &axes) {
  const std::vector<Value> &values = stage.body.values;
  std::map<int32_t, std::vector<Expr>> extents_of;  // of values that the guard holds to ranges; the last is found first
  std::vector<int32_t> guards;
  if (store.to.valid >= 0 && stage.carriers.types.empty())
    guards.push_back(stage.body.yields[static_cast<size_t>(store.to.valid)]);
  while (!guards.empty()) {
    const Value &guard = values[static_cast<size_t>(guards.back())];
    guards.pop_back();
    if (guard.op == Core::logical_and) guards.insert(guards.end(), {guard.args[0], guard.args[1]});
    if (guard.op != Core::in_range) continue;
    const Value &extent = values[static_cast<size_t>(guard.args[1])];
    if (extent.op == Core::index && is_constant(extent.expr)) extents_of[guard.args[0]].push_back(extent.expr);
    if (extent.op == Core::constant) extents_of[guard.args[0]].emplace_back(static_cast<int64_t>(extent.immediate));
  }
  struct Leaf {
    const std::vector<Expr> *extents;
    size_t first, tried = 0;
    const Expr &extent() const { return (*extents)[(first + tried) % extents->size()]; }
  };
  std::map<uint32_t, Leaf> leaves;
  std::map<int32_t, size_t> uses;
  store.to.index[0].substitute([&](const Expr &leaf) -> std::optional<Expr> {
    if (leaf.kind() != Expr::Kind::value) return {};
    const int32_t value = stage.body.yields[leaf.id()];
    if (const auto found = extents_of.find(value); found != extents_of.end() && !leaves.contains(leaf.id()))
      leaves.emplace(leaf.id(), Leaf{&found->second, found->second.size() - 1 - uses[value]++ % found->second.size()});
    return {};
  });
  // As far as this is concerned such a value is one more axis. One that indexes several dims keeps to the extents of
  // all: of each dim to its own at first, then whichever serves.
  constexpr int most_tries = 1000;
  for (int tries = 0; tries < most_tries; ++tries) {
    const Expr index = store.to.index[0].substitute([&](const Expr &leaf) -> std::optional<Expr> {
      if (leaf.kind() != Expr::Kind::value || !leaves.contains(leaf.id())) return {};
      const Expr &extent = leaves.at(leaf.id()).extent();
      return extent.is(1) ? Expr(0) : Expr::axis(UINT32_MAX - leaf.id(), extent);
    });
    if (separates(index, axes)) return true;
    auto next = leaves.begin();
    while (next != leaves.end() && ++next->second.tried == next->second.extents->size()) next++->second.tried = 0;
    if (next == leaves.end()) return false;
  }
  return false;
}

bool keeps_tasks_apart(const Kernel &kernel, const Stage &stage, const Store &store) {
  const Buffer &buffer = kernel.buffers[store.to.buffer];
  if (buffer.space != Buffer::Space::out || (!store.combines() && !store.scatters())) return true;
  if (buffer.size.is(0)) return true;  // where no point can be, strides say nothing
  std::vector<uint32_t> axes;
  bool one_task = true;
  for (uint32_t id = 0; id < kernel.parallel.size(); ++id) {
    const Expr &extent = kernel.parallel[id].extent;
    if (!extent.is(1)) axes.push_back(id);
    one_task &= extent.is_integer() && extent.integer() <= kernel.schedule.tiles[id];
  }
  return one_task || separates(stage, store, axes);
}

bool rounds(const Body &body) {
  return std::ranges::any_of(body.values, [](const Value &v) {
    return dtype_info(v.type).is_float && core_info(v.op).kind != CoreClass::exact;
  });
}

Expr reduced_points(const Stage &stage) {
  Expr count = 1;
  for (const Axis &axis : stage.axes)
    if (axis.role == Axis::Role::reduce) count *= axis.extent;
  return count;
}

int64_t waiting_sums(const Stage &stage, int64_t chunk) {
  if (stage.scans() || !rounds(stage.carriers.combine)) return 0;
  const Expr points = reduced_points(stage);
  const int64_t most = points.is_integer() ? points.integer() : INT64_MAX;
  return most <= chunk ? 0 : std::bit_width(static_cast<uint64_t>((most - 1) / chunk + 1));
}

int64_t waiting_in_scratch(const Kernel &kernel, const Stage &stage) {
  return kernel.schedule.lanes() == 1 ? 0 : waiting_sums(stage, chunk_of(stage));
}

bool is_ordered(const Kernel &kernel, const Stage &stage) {
  if (stage.scans() || stage.carriers.in_pairs || !rounds(stage.carriers.combine)) return false;
  const bool one_axis = std::ranges::count(stage.axes, Axis::Role::reduce, &Axis::role) == 1;
  if (kernel.schedule.ordered || (!one_axis && waiting_sums(stage, sum_chunk) > 0)) return true;
  // Each point would add up all that it has one by one.
  constexpr int64_t few = 256;
  const Expr points = reduced_points(stage);
  return kernel.schedule.vector == Schedule::Vector::parallel && (!points.is_integer() || points.integer() > few);
}

namespace {

// Whether all that a reduction does is short, and of words that lie side by side as its points do: of many points one
// piece of memory is read after the other.
bool takes_pieces(const Kernel &kernel) {
  constexpr size_t short_body = 8;  // values
  if (kernel.stages.size() != 1 || kernel.parallel.empty()) return false;
  const Stage &stage = kernel.stages[0];
  const auto last = static_cast<uint32_t>(kernel.parallel.size()) - 1;
  const auto is_plain = [&](const Value &v) {
    const bool is_word = size_of(v.type) == 4 && v.type != DType::none;
    const std::optional<Expr> step = v.op == Core::load ? v.access.index[0].coefficient(last) : Expr(0);
    return is_word && core_info(v.op).kind != CoreClass::function && v.op != Core::search && step &&
           (step->is(0) || (step->is(1) && v.access.valid < 0));
  };
  const auto is_row_local = [](const Buffer &buffer) { return buffer.space == Buffer::Space::row_local; };
  return !stage.carriers.types.empty() && !stage.scans() && std::ranges::none_of(kernel.buffers, is_row_local) &&
         stage.body.values.size() <= short_body && std::ranges::all_of(stage.body.values, is_plain) &&
         std::ranges::all_of(stage.carriers.combine.values, is_plain);
}

}  // namespace

int64_t partials_in_scratch(const Kernel &kernel, const Stage &stage) {
  constexpr int64_t few = 64;  // points, with which a piece is soon done
  const Schedule &s = kernel.schedule;
  if (s.vector != Schedule::Vector::parallel || s.lanes() == 1) return 0;
  const Expr points = reduced_points(stage);
  if (!is_ordered(kernel, stage)) {
    const bool many = !points.is_integer() || points.integer() > few;
    return many && !stage.carriers.in_pairs && takes_pieces(kernel) ? 1 : 0;
  }
  const int64_t all = int64_t{sum_sets} * s.lanes();
  if (!points.is_integer() || points.integer() >= all) return all;
  const auto number = static_cast<uint64_t>(std::max<int64_t>(points.integer(), 1));
  return std::min<int64_t>(static_cast<int64_t>(std::bit_ceil(number)), s.lanes());
}

uint32_t points_side_by_side(const Kernel &kernel) {
  // Of a row of 1,024 columns pieces of 512 bytes came at 0.7 of the rate of a whole row, lines of 64 bytes at 0.1.
  constexpr uint32_t piece_bytes = 512;
  const Schedule &s = kernel.schedule;
  if (s.vector != Schedule::Vector::parallel || kernel.parallel.empty()) return 1;
  const bool suits = takes_pieces(kernel) && partials_in_scratch(kernel, kernel.stages[0]) > 0;
  uint32_t points = s.lanes();
  const Expr &extent = kernel.parallel.back().extent;
  const auto leaves_tasks = [&](int64_t n) { return !extent.is_integer() || extent.integer() >= 4 * n; };
  while (suits && points * 4 < piece_bytes && leaves_tasks(2 * points)) points *= 2;
  return points;
}

bool is_tiled_contraction(const Kernel &kernel) {
  return kernel.stages.size() == 1 && kernel.stages[0].contract && kernel.stages[0].axes.size() == 1;
}

bool is_in_row_tiles(const Kernel &kernel) { return kernel.schedule.mr != 0 && !is_tiled_contraction(kernel); }

int64_t rows_in_scratch(const Kernel &kernel) { return is_in_row_tiles(kernel) ? kernel.schedule.tiles.back() : 1; }

Expr row_step(const Buffer &buffer) {
  constexpr int64_t line_bytes = 64;
  const int64_t line = line_bytes / static_cast<int64_t>(size_of(buffer.type));
  if (buffer.size.is_integer() && buffer.size.integer() <= line) return buffer.size;
  return ceil_div(max(buffer.size, 0), 2 * line) * (2 * line) + line;
}

ContractionAxes contraction_axes(const Kernel &kernel, const Stage &stage) {
  const auto rows = static_cast<uint32_t>(kernel.parallel.size()), own = static_cast<uint32_t>(stage.axes.size());
  if (is_tiled_contraction(kernel)) return {rows - 2, rows - 1, rows};
  return {rows - 1, rows + own - 2, rows + own - 1};
}

int64_t block_depth(const Kernel &kernel, const Stage &stage) {
  const Expr &depth = stage.axes.back().extent;
  const int64_t most = kernel.schedule.kc;
  return depth.is_integer() && !is_tiled_contraction(kernel) ? std::clamp<int64_t>(depth.integer(), 1, most) : most;
}

int64_t block_columns(const Kernel &kernel, const Stage &stage) {
  constexpr int64_t most = 512;
  const Schedule &s = kernel.schedule;
  const Expr &depth = stage.axes.back().extent;
  if (depth.is_integer() && depth.integer() <= s.kc) return 0;
  if (is_tiled_contraction(kernel)) return s.tiles.back();
  const Expr &columns = stage.axes[stage.axes.size() - 2].extent;
  return columns.is_integer() ? std::clamp<int64_t>(columns.integer(), 1, most) : most;
}

int64_t k_step(const Contract &contract, const Schedule &schedule) {
  return int64_t{contract.group} * (schedule.products == Schedule::Products::tiles ? 16 : 1);
}

int64_t group_of_rows(const Contract &contract, const Schedule &schedule, bool along_k) {
  const int64_t step = k_step(contract, schedule);
  const bool whole = size_of(contract.a_type()) * schedule.lanes() == schedule.vector_bytes;
  return along_k && whole && step == 1 && schedule.lanes() > 4 ? schedule.lanes() : step;
}

size_t end_of_blocks(const Kernel &kernel, size_t first) {
  size_t end = first + 1;
  if (!kernel.stages[first].in_blocks()) return end;
  while (end < kernel.stages.size() && kernel.stages[end].in_blocks()) ++end;
  return end;
}

Expr task_count(const Kernel &kernel) {
  Expr count = 1;
  for (size_t i = 0; i < kernel.parallel.size(); ++i) {
    count *= ceil_div(kernel.parallel[i].extent, Expr(static_cast<int64_t>(kernel.schedule.tiles[i])));
  }
  return count;
}

ScratchLayout scratch_layout(const Kernel &kernel) {
  constexpr int64_t alignment = 64;
  ScratchLayout layout;
  Expr &end = layout.size_bytes;
  auto area = [&](const Expr &bytes) {
    Expr begin = end;
    end += ceil_div(max(bytes, 0), alignment) * alignment;  // a size below 0 would move what follows out of the scratch
    return begin;
  };
  const Schedule &s = kernel.schedule;
  const int64_t lanes = points_side_by_side(kernel);
  for (const Buffer &buffer : kernel.buffers) {
    if (buffer.space != Buffer::Space::row_local) continue;
    const int64_t rows = rows_in_scratch(kernel);
    const Expr elements = rows == 1 ? buffer.size * lanes : row_step(buffer) * rows;
    layout.row_local.push_back(area(elements * static_cast<int64_t>(size_of(buffer.type))));
  }
  int64_t partials = 0, waiting = 0;
  for (const Stage &stage : kernel.stages) {
    int64_t bytes = 0;
    for (DType type : stage.carriers.types) bytes += size_of(type) * lanes;
    partials = std::max(partials, bytes * partials_in_scratch(kernel, stage));
    waiting = std::max(waiting, bytes * waiting_in_scratch(kernel, stage));
  }
  layout.partials = area(partials);
  layout.waiting = area(waiting);
  if (s.mr == 0) return layout;
  // Of one contraction after the other.
  int64_t a_panel = 0, b_panel = 0, c_tile = 0;
  for (const Stage &stage : kernel.stages) {
    if (!stage.contract) continue;
    const Contract &c = *stage.contract;
    const auto up = [](int64_t v, int64_t to) { return (v + to - 1) / to * to; };
    const int64_t depth = block_depth(kernel, stage), mc = up(s.tiles[contraction_axes(kernel, stage).m], s.mr),
                  nc = up(is_tiled_contraction(kernel) ? s.tiles.back() : block_columns(kernel, stage), s.nr);
    a_panel = std::max<int64_t>(a_panel, mc * up(depth, s.lanes()) * size_of(c.a_type()));
    if (may_read_rows_in_place(s.mr)) a_panel = std::max<int64_t>(a_panel, depth * int64_t{sizeof(int64_t)});
    if (c.panel == 0) b_panel = std::max<int64_t>(b_panel, depth * s.nr * size_of(c.b_type()));
    c_tile = std::max<int64_t>(c_tile, mc * std::max<int64_t>(nc, s.nr) * size_of(c.accumulator));
  }
  layout.a_panel = area(a_panel);
  if (b_panel > 0) layout.b_panel = area(b_panel);
  layout.c_tile = area(c_tile);
  return layout;
}

}  // namespace kiln::kernel
