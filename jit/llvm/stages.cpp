// Map stages, and how any stage runs along a vectorised axis: whole vectors, then the rest.
#include <numeric>

#include "jit/llvm/emitter.h"

namespace kiln::codegen {
namespace {

using kernel::Axis;
using kernel::Schedule;
using kernel::Stage;

// A contraction at points of its loop axes, which differ in n alone: sums over sum_depth of k, in order, and their sum.
// Each waits for the latency of its additions; several side by side hide it.
void emit_sums_of_products(KernelState &state, const Stage &stage, std::span<const Point> points) {
  auto &b = state.b;
  const kernel::Contract &contract = *stage.contract;
  const size_t id = state.kernel.parallel.size() + stage.axes.size() - 1;
  const unsigned width = points[0].width;
  const Values zeros(points.size(), splat(state, constant_of(state, contract.accumulator, 0), width));
  const Range k = stage_range(state, stage.axes.back(), points[0]);
  const auto sum_over = [&](const Range &range) {
    return emit_loop(state, range, 1, zeros, [&](llvm::Value *at, const Values &before) {
      llvm::Value *left = nullptr;
      Values next;
      for (size_t p = 0; p < points.size(); ++p) {
        Point inside = points[p];
        inside.set_axis(id, at);
        if (!left) left = splat(state, emit_body(state, contract.a, inside)[0], width);
        llvm::Value *right = splat(state, emit_body(state, contract.b, inside)[0], width);
        next.push_back(emit_multiply_add(state, left, right, before[p]));
      }
      return next;
    });
  };
  const auto added = [&](const Values &to, const Values &sums) {
    Values next;
    for (size_t p = 0; p < points.size(); ++p)
      next.push_back(
          emit_core(state, kernel::Core::add, {contract.accumulator, contract.accumulator}, {to[p], sums[p]}, nullptr));
    return next;
  };
  const bool one_block = k.count && *k.count <= int64_t{kernel::sum_depth};
  const Values sums =
      one_block ? sum_over(k)
                : emit_loop(state, k, kernel::sum_depth, zeros, [&](llvm::Value *begin, const Values &before) {
                    llvm::Value *end = b.CreateBinaryIntrinsic(
                        llvm::Intrinsic::smin, b.CreateNSWAdd(begin, b.getInt64(kernel::sum_depth)), k.end);
                    return added(before, sum_over({begin, end}));
                  });
  for (size_t p = 0; p < points.size(); ++p) {
    Leaves leaves;
    leaves.accumulator = sums[p];
    emit_stores(state, stage.stores, emit_body(state, stage.body, points[p], leaves), points[p]);
  }
}

// A contraction along n, at a point of its other loop axes: as many whole vectors at a time as there are, up to a limit
// (eight sums, an operand and a factor are in registers at every level).
void emit_columns(KernelState &state, const Stage &stage, const LanePlan &plan, Range range, const Point &point) {
  constexpr int64_t most = 8;
  const auto emit_blocks = [&](int64_t count) {
    const auto [blocks, rest] = split_range(state, range, static_cast<unsigned>(count * plan.width));
    emit_loop(state, blocks, count * plan.width, [&](llvm::Value *i) {
      std::vector<Point> points;
      for (int64_t v = 0; v < count; ++v)
        points.push_back(at_lanes(plan, point, state.b.CreateNSWAdd(i, state.b.getInt64(v * plan.width))));
      emit_sums_of_products(state, stage, points);
    });
    range = rest;
  };
  if (plan.width > 1 && range.count) {
    const int64_t vectors = *range.count / plan.width, blocks = (vectors + most - 1) / most;
    if (blocks > 0) emit_blocks((vectors + blocks - 1) / blocks);
    if (const int64_t left = *range.count / plan.width; left > 1) emit_blocks(left);
  } else if (plan.width > 1) {
    emit_blocks(4);
  }
  emit_over_lanes(state, plan, range, point,
                  [&](const Point &inside) { emit_sums_of_products(state, stage, {&inside, 1}); });
}

// The loop axes from number n on, and inside them the stage's work.
void emit_axes(KernelState &state, const Stage &stage, size_t n, const Point &point) {
  if (n < stage.axes.size() && stage.axes[n].role == Axis::Role::reduce) return emit_reduction(state, stage, n, point);
  if (n < stage.axes.size() && stage.axes[n].role == Axis::Role::scan) return emit_scan(state, stage, point);
  if (n == stage.axes.size()) {
    emit_map(state, stage, point);
    return;
  }
  const size_t id = state.kernel.parallel.size() + n;
  const Schedule &schedule = state.kernel.schedule;
  const bool innermost = n + (stage.contract ? 2 : 1) == stage.axes.size();
  const unsigned width = innermost && schedule.vector == Schedule::Vector::inner ? schedule.lanes() : 1;
  const LanePlan plan = make_plan(state, {&stage, 1}, id, width, width);
  const Range range = stage_range(state, stage.axes[n], point);
  if (innermost && stage.contract) return emit_columns(state, stage, plan, range, point);
  emit_over_lanes(state, plan, range, point, [&](const Point &inside) { emit_axes(state, stage, n + 1, inside); });
}

// Roughly how much code a value becomes. The remainder of integers is an instruction or a few.
size_t instructions_of(const kernel::Value &value) {
  const bool is_function = kernel::core_info(value.op).kind == kernel::CoreClass::function &&
                           (value.op != kernel::Core::rem || dtype_info(value.type).is_float);
  return is_function ? 20 : 1;
}

// Whether lanes along `axis` that do not exist cost an access nothing.
bool has_mask(const KernelState &state, const kernel::Access &access, size_t axis) {
  if (state.features.masks == Features::Masks::registers) return true;
  const kernel::Buffer &buffer = state.kernel.buffers[access.buffer];
  if (!state.features.has_masked(size_of(buffer.type), state.kernel.schedule.lanes())) return false;
  if (buffer.space == kernel::Buffer::Space::row_local) return true;
  const std::optional<Expr> step = access.index[0].coefficient(static_cast<uint32_t>(axis));
  return step && (step->is(1) || step->is(0));
}

// Whether a point of it is a function of f32 above all, which lies in registers as it is, and memory is read and
// written in order. A chain of such a function's operations is so long that few fit into what a processor looks ahead,
// and so it waits; two vectors make two chains, and share constants (GELU: .75 of the time).
bool waits_for_functions(const Stage &stage, size_t axis) {
  constexpr int most_cost = 16;  // others go through f64, in two vectors already
  if (!stage.carriers.types.empty() || stage.sort) return false;
  const auto is_in_order = [&](const kernel::Access &access) {
    const std::optional<Expr> step = access.index[0].coefficient(static_cast<uint32_t>(axis));
    return step && (step->is(1) || step->is(0)) && access.valid < 0;
  };
  bool calls = false;
  for (const kernel::Value &value : stage.body.values) {
    const kernel::CoreInfo &info = kernel::core_info(value.op);
    if (info.kind == kernel::CoreClass::function) {
      if (info.cost > most_cost || info.operands != 1 || value.type != DType::f32) return false;
      calls = true;
    }
    if (value.op == kernel::Core::index || value.op == kernel::Core::search) return false;
    if (value.type != DType::f32 && value.type != DType::boolean) return false;
    if (value.op == kernel::Core::load && !is_in_order(value.access)) return false;
  }
  return calls && std::ranges::all_of(stage.stores, [&](const kernel::Store &store) {
           return !store.combines() && !store.scatters() && is_in_order(store.to);
         });
}

// Stages [begin, end), at one point.
void emit_stages(KernelState &state, size_t begin, size_t all_end, const Point &point) {
  const std::vector<Stage> &stages = state.kernel.stages;
  for (size_t first = begin, end = 0; first < all_end; first = end) {
    end = kernel::end_of_blocks(state.kernel, first);
    const bool blocks = stages[first].in_blocks();
    const auto emit_all = [&](const Point &inside) {
      for (size_t s = first; s < end; ++s) {
        if (stages[s].sort)
          emit_sort(state, stages[s], inside);
        else
          emit_axes(state, stages[s], blocks ? 1 : 0, inside);
      }
    };
    if (!blocks) {
      emit_all(point);
      continue;
    }
    emit_loop(state, stage_range(state, stages[first].axes[0], point), 1, [&](llvm::Value *block) {
      Point inside = point;
      inside.set_axis(state.kernel.parallel.size(), block);
      emit_all(inside);
    });
  }
}

}  // namespace

Point at_lanes(const LanePlan &plan, Point point, llvm::Value *i) {
  point.set_axis(plan.axis, i);
  if (plan.width == 1) return point;
  point.vector_axis = static_cast<int>(plan.axis);
  point.width = plan.width;
  point.alignment = plan.alignment;
  return point;
}

Point at_scalar(const LanePlan &plan, Point point, llvm::Value *i) {
  point.set_axis(plan.axis, i);
  return point;
}

Point at_masked(KernelState &state, const LanePlan &plan, Point point, llvm::Value *i, llvm::Value *end) {
  auto &b = state.b;
  llvm::SmallVector<llvm::Constant *, 16> iota;
  for (unsigned lane = 0; lane < plan.width; ++lane) iota.push_back(b.getInt32(lane));
  llvm::Value *rest = b.CreateNSWSub(end, i);
  point = at_lanes(plan, std::move(point), i);
  if (plan.single) {
    point.whole = b.CreateICmpSGE(rest, b.getInt64(plan.width));
    rest = b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, rest, b.getInt64(plan.width));
  }
  llvm::Value *lanes = splat(state, b.CreateTrunc(rest, b.getInt32Ty()), plan.width);
  point.active = b.CreateICmpULT(llvm::ConstantVector::get(iota), lanes);
  return point;
}

LaneRanges split_range(KernelState &state, const Range &range, unsigned width) {
  auto &b = state.b;
  const int64_t step = width;
  if (range.count) {
    const int64_t whole = *range.count / step * step;
    llvm::Value *middle = b.CreateNSWAdd(range.begin, b.getInt64(static_cast<uint64_t>(whole)));
    return {{range.begin, middle, whole}, {middle, range.end, *range.count - whole}};
  }
  if (!range.has_rest(step)) return {range, {range.end, range.end, 0}};
  llvm::Value *whole = b.CreateAnd(b.CreateNSWSub(range.end, range.begin), b.getInt64(static_cast<uint64_t>(-step)));
  llvm::Value *middle = b.CreateNSWAdd(range.begin, whole);
  return {{range.begin, middle}, {middle, range.end, std::nullopt, std::gcd(step, range.multiple)}};
}

LanePlan make_plan(const KernelState &state, std::span<const Stage> stages, size_t axis, unsigned width,
                   int64_t alignment) {
  LanePlan plan{axis, width, width > 1 && state.kernel.schedule.masked_tail, false, alignment};
  size_t length = 0;
  bool loads = true;
  for (const Stage &stage : stages) {
    for (const kernel::Store &store : stage.stores) plan.masked = plan.masked && has_mask(state, store.to, axis);
    for (const kernel::Value &value : stage.body.values) {
      length += instructions_of(value);
      loads = loads && (!kernel::reads_memory(value.op) || has_mask(state, value.access, axis));
    }
  }
  plan.single = plan.masked && loads && length > 20;
  const auto has_one_value = [](const kernel::Buffer &buffer) {
    return buffer.space != kernel::Buffer::Space::row_local;
  };
  const bool inner = axis >= state.kernel.parallel.size();
  plan.pairs = width > 1 && (inner || std::ranges::all_of(state.kernel.buffers, has_one_value)) &&
               std::ranges::all_of(stages, [&](const Stage &stage) { return waits_for_functions(stage, axis); });
  return plan;
}

void emit_over_lanes(KernelState &state, const LanePlan &plan, Range range, const Point &point,
                     const std::function<void(const Point &)> &body) {
  if (plan.width == 1) {
    emit_loop(state, range, 1, [&](llvm::Value *i) { body(at_scalar(plan, point, i)); });
    return;
  }
  if (const int64_t step = 2 * int64_t{plan.width}; plan.pairs && (!range.has_rest(step) || range.count)) {
    LanePlan both = plan;
    both.width *= 2;
    const auto [pairs, rest] = split_range(state, range, both.width);
    emit_loop(state, pairs, step, [&](llvm::Value *i) { body(at_lanes(both, point, i)); });
    if (!range.has_rest(step)) return;
    range = rest;
  }
  const auto masked = [&](llvm::Value *i) { body(at_masked(state, plan, point, i, range.end)); };
  if (plan.single && range.has_rest(plan.width)) return emit_loop(state, range, plan.width, masked);
  const auto [vectors, rest] = split_range(state, range, plan.width);
  emit_loop(state, vectors, plan.width, [&](llvm::Value *i) { body(at_lanes(plan, point, i)); });
  if (!range.has_rest(plan.width)) return;
  if (plan.masked)
    emit_loop(state, rest, plan.width, masked);
  else
    emit_loop(state, rest, 1, [&](llvm::Value *i) { body(at_scalar(plan, point, i)); });
}

bool is_multiple(const Expr &expr, int64_t divisor) { return mod(expr, Expr(divisor)).is(0); }

int64_t whole_vectors(const Schedule &schedule, const Expr &extent) {
  const int64_t lanes = schedule.lanes();
  return is_multiple(extent, 2 * lanes) ? 2 * lanes : is_multiple(extent, lanes) ? lanes : 1;
}

Range stage_range(KernelState &state, const Axis &axis, const Point &point) {
  if (state.shown && std::ranges::find(state.hidden->axes, &axis) != state.hidden->axes.end()) {
    const int64_t block = kernel::hidden_block(state.kernel);
    return {state.shown->begin, state.shown->end, std::nullopt, is_multiple(axis.extent, block) ? block : 1};
  }
  Range range{state.b.getInt64(0), emit_scalar(state, axis.extent, point)};
  if (axis.extent.is_integer()) range.count = axis.extent.integer();
  range.multiple = whole_vectors(state.kernel.schedule, axis.extent);
  return range;
}

void emit_stages(KernelState &state, const Point &point) { emit_stages(state, 0, state.kernel.stages.size(), point); }

namespace {

// From where the tile's first row sees to where its last one does; between them some rows see less.
void hide_columns(KernelState &state, const Point &point, const Range &rows) {
  auto &b = state.b;
  const int64_t block = kernel::hidden_block(state.kernel);
  const auto integer = [&](int64_t value) { return b.getInt64(static_cast<uint64_t>(value)); };
  llvm::Value *columns = emit_scalar(state, state.hidden->axes[0]->extent, point), *none = integer(0);
  llvm::Value *last_row = b.CreateNSWSub(rows.end, integer(1));
  const auto bound_at = [&](const std::optional<Expr> &bound, llvm::Value *row, llvm::Value *otherwise) {
    if (!bound) return otherwise;
    Point inside = point;
    inside.set_axis(state.kernel.parallel.size() - 1, row);
    return emit_scalar(state, *bound, inside);
  };
  const std::optional<Expr> &from = state.hidden->from, &until = state.hidden->until;
  state.visible = {bound_at(from, last_row, none), bound_at(until, rows.begin, columns)};
  // Whole blocks, and at least one, so that what reads them finds what hidden columns hold.
  llvm::Value *last_block = b.CreateAnd(greater_of(state, b.CreateNSWSub(columns, integer(1)), none), integer(-block));
  llvm::Value *begin = b.CreateAnd(greater_of(state, bound_at(from, rows.begin, none), none), integer(-block));
  begin = less_of(state, begin, last_block);
  llvm::Value *end = b.CreateNSWAdd(bound_at(until, last_row, columns), integer(block - 1));
  end = greater_of(state, b.CreateAnd(end, integer(-block)), b.CreateNSWAdd(begin, integer(block)));
  state.shown = {begin, less_of(state, end, columns)};
}

}  // namespace

// Between contractions each row goes through all stages while it lies in the first cache.
void emit_row_tile(KernelState &state, const Point &point, const Range &rows) {
  const std::vector<Stage> &stages = state.kernel.stages;
  state.first_row = rows.begin;
  if (state.hidden) hide_columns(state, point, rows);
  for (size_t first = 0, end = 0; first < stages.size(); first = end) {
    const Stage &stage = stages[first];
    end = first + 1;
    if (stage.contract) {
      const kernel::ContractionAxes axes = kernel::contraction_axes(state.kernel, stage);
      Point inside = point;
      inside.set_axis(state.kernel.parallel.size(), state.b.getInt64(0));  // its m, of one point
      emit_contraction(state, stage, inside, rows, stage_range(state, stage.axes[axes.n - axes.m - 1], inside));
      continue;
    }
    while (end < stages.size() && !stages[end].contract) ++end;
    emit_loop(state, rows, 1, [&](llvm::Value *row) {
      Point inside = point;
      inside.set_axis(state.kernel.parallel.size() - 1, row);
      emit_stages(state, first, end, inside);
    });
  }
}

}  // namespace kiln::codegen
