#include <algorithm>
#include <bit>

#include "jit/kernel/verify_body.h"

namespace kiln::kernel {
namespace {

// More than any schedule chooses, and little enough that an emitter's code and a task's scratch stay small.
constexpr uint32_t max_vector_bytes = 256, max_tile = 1 << 24, max_mr = 64, max_nr = 256, max_kc = 1 << 16,
                   max_rows = 1 << 12;

// An extent or a size: what is known before a kernel runs.
Status verify_size(const Kernel &kernel, const Expr &size, std::string_view what, size_t number) {
  Status status = verify_expr({kernel, {}}, size);
  if (status.ok() && size.upper_bound().value_or(0) < 0) status = broken("it is below 0: ", size.text());
  return status.ok() ? Status()
                     : broken(what, " ", number, ": ", status.message().substr(std::string_view("kernel: ").size()));
}

class StageVerifier {
 public:
  StageVerifier(const Kernel &kernel, const Stage &stage, size_t number)
      : kernel_(kernel), stage_(stage), number_(number), axes_(kernel.parallel) {
    axes_.insert(axes_.end(), stage.axes.begin(), stage.axes.end());
    for (size_t id = kernel.parallel.size(); id < axes_.size(); ++id)
      if (axes_[id].role == Axis::Role::reduce) reduced_.push_back(static_cast<uint32_t>(id));
  }

  Status run() const {
    KILN_TRY(axes());
    KILN_TRY(stage_.sort ? sort() : stage_.contract ? contraction() : loops());
    return stores();
  }

 private:
  Status axes() const {
    bool reduces = false;
    for (size_t i = 0; i < stage_.axes.size(); ++i) {
      const Axis &axis = stage_.axes[i];
      if (axis.role == Axis::Role::parallel || axis.role > Axis::Role::block)
        return broken("stage ", number_, ": an axis is neither loop, reduce, scan nor block");
      if (axis.role == Axis::Role::block && i > 0) return broken("stage ", number_, ": a block axis comes first");
      if (axis.role == Axis::Role::scan && (i + 1 != stage_.axes.size() || reduces))
        return broken("stage ", number_, ": a scan axis comes last, behind loop axes");
      if (reduces && axis.role == Axis::Role::loop)
        return broken("stage ", number_, ": loop axes come before reduce axes");
      reduces |= axis.role == Axis::Role::reduce;
      KILN_TRY(verify_size(kernel_, axis.extent, "extent of axis", kernel_.parallel.size() + i));
    }
    return {};
  }

  // A map, a reduction or a scan.
  Status loops() const {
    const Carriers &c = stage_.carriers;
    const size_t n = c.types.size();
    if ((reduced_.empty() && !stage_.scans()) != (n == 0))
      return broken("stage ", number_, ": reduce or scan axes and carriers go together");
    KILN_TRY(verify_body({kernel_, axes_}, {}, stage_.body));
    if ((c.exclusive || c.reverse) && !stage_.scans())
      return broken("stage ", number_, " is exclusive or reverse, and no scan");
    if (n == 0) {
      if (!c.identities.empty() || !c.combine.values.empty() || !c.combine.yields.empty())
        return broken("stage ", number_, " combines without carriers");
      return {};
    }
    const size_t yielded = stage_.body.yields.size();
    if ((stage_.scans() ? yielded < n : yielded != n) || c.identities.size() != n || c.combine.yields.size() != n)
      return broken("stage ", number_, " has ", n, " carriers, but not as many yields, identities or results");
    if (!std::ranges::all_of(c.types, is_type)) return broken("stage ", number_, " has a carrier without a type");
    std::vector<DType> both = c.types;  // the left side's, then the right side's
    both.insert(both.end(), c.types.begin(), c.types.end());
    KILN_TRY(verify_body({kernel_, {}}, {.carriers = both, .memory = false}, c.combine));
    if ((c.until || c.in_pairs) && (stage_.scans() || reduced_.size() != 1))
      return broken("stage ", number_, " is a part of a reduction, or of such parts, over other than one axis");
    if (c.until) KILN_TRY(verify_expr({kernel_, axes_, reduced_}, *c.until));
    for (size_t i = 0; i < n; ++i) {
      KILN_TRY(yields(stage_.body, i, c.types[i], "body"));
      KILN_TRY(yields(c.combine, i, c.types[i], "combine body"));
    }
    return {};
  }

  Status sort() const {
    const Sort &s = *stage_.sort;
    const bool alone = !stage_.contract && stage_.carriers.types.empty() && stage_.carriers.identities.empty() &&
                       stage_.carriers.combine.values.empty() && stage_.carriers.combine.yields.empty() &&
                       !stage_.carriers.exclusive && !stage_.carriers.reverse && stage_.body.values.empty() &&
                       stage_.body.yields.empty() && stage_.stores.empty();
    if (!alone || stage_.axes.size() != 1u + stage_.in_blocks() || !stage_.scans() || s.columns.empty())
      return broken("stage ", number_, ": a sort is columns and one scan axis, nothing else");
    const Expr &extent = stage_.axes.back().extent;
    std::vector<uint16_t> used;
    for (const Sort::Column &column : s.columns) {
      for (uint16_t number : {column.buffer, column.spare}) {
        if (number >= kernel_.buffers.size() || kernel_.buffers[number].space != Buffer::Space::row_local)
          return broken("stage ", number_, " sorts buffer ", number, ", which is not row_local");
        if (std::ranges::find(used, number) != used.end())
          return broken("stage ", number_, " sorts by buffer ", number, " twice");
        if (kernel_.buffers[number].size != extent)
          return broken("stage ", number_, " sorts ", extent.text(), " elements of buffer ", number, ", which has ",
                        kernel_.buffers[number].size.text());
        used.push_back(number);
      }
      const DType type = kernel_.buffers[column.buffer].type, spare = kernel_.buffers[column.spare].type;
      if (type != spare) return broken("stage ", number_, ": a spare of ", name_of(spare), " for ", name_of(type));
    }
    KILN_TRY(verify_size(kernel_, s.runs, "runs of stage", number_));
    if (s.runs.lower_bound().value_or(0) < 1)
      return broken("stage ", number_, ": runs of ", s.runs.text(), " elements, expected at least 1");
    if (!s.wanted) return {};
    if (!s.runs.is(1)) return broken("stage ", number_, " sorts runs, and wants some elements alone");
    return verify_size(kernel_, *s.wanted, "number wanted of stage", number_);
  }

  Status contraction() const {
    const Contract &c = *stage_.contract;
    const bool tiled = is_tiled_contraction(kernel_);
    const size_t outer = tiled ? kernel_.parallel.size() : stage_.axes.size() - 1 - stage_.in_blocks();
    if (reduced_.size() != 1 || stage_.axes.back().role != Axis::Role::reduce || outer < 2 ||
        !stage_.carriers.types.empty())
      return broken(
          "a contraction is over m, n and one k: as the only stage, with the last parallel axes; else with "
          "loop axes");
    if (c.a.yields.size() != 1 || c.b.yields.size() != 1) return broken("operands yield one value");
    if (!is_type(c.accumulator)) return broken("stage ", number_, ": the accumulator has no type");
    const auto n = static_cast<uint32_t>(axes_.size()) - 2, m = n - 1;
    std::vector<uint32_t> rows = {m};
    if (is_in_row_tiles(kernel_)) {
      if (stage_.axes.size() != 3 || !stage_.axes[0].extent.is(1))
        return broken("stage ", number_, ": in tiles of rows a contraction has one m, n and k");
      rows.push_back(static_cast<uint32_t>(kernel_.parallel.size()) - 1);
      if (std::ranges::any_of(c.b.values, [&](const Value &v) { return reads_row_local(v); }))
        return broken("stage ", number_, ": operand b reads a row_local buffer, and belongs to all rows of a tile");
    }
    KILN_TRY(verify_body({kernel_, axes_, {&n, 1}}, {}, c.a));
    KILN_TRY(verify_body({kernel_, axes_, rows}, {}, c.b));
    KILN_TRY(yields(c.a, 0, c.accumulator, "operand a"));
    KILN_TRY(yields(c.b, 0, c.accumulator, "operand b"));
    KILN_TRY(verify_body({kernel_, axes_, reduced_}, {.accumulator = c.accumulator}, stage_.body));
    const bool plain = c.a_factor == DType::none && c.b_factor == DType::none && c.group == 1;
    if (!tiled)
      return plain && c.panel == 0 && c.packed_buffer == 0 && c.packed_offset.is(0)
                 ? Status()
                 : broken("stage ", number_, ": only a kernel's one contraction has panels");
    for (const Buffer &buffer : kernel_.buffers)
      if (buffer.space == Buffer::Space::row_local) return broken("a contraction has no row_local buffers");
    if (kernel_.schedule.mr == 0 && !plain) return broken("types and groups are of panels, which a microkernel has");
    KILN_TRY(factors());
    KILN_TRY(products());
    return panels(m, n);
  }

  bool reads_row_local(const Value &v) const {
    return reads_memory(v.op) && v.access.buffer < kernel_.buffers.size() &&
           kernel_.buffers[v.access.buffer].space == Buffer::Space::row_local;
  }

  // What the conversion takes that `body` ends in; the yield where panels hold that.
  static const Value *factor_of(const Body &body, DType factor) {
    const Value &yield = body.values[static_cast<size_t>(body.yields[0])];
    if (factor == DType::none) return &yield;
    if (yield.op != Core::convert) return nullptr;
    const Value &value = body.values[static_cast<size_t>(yield.args[0])];
    return value.type == factor && factor != DType::boolean ? &value : nullptr;
  }

  Status factors() const {
    const Contract &c = *stage_.contract;
    if (c.group != 1 && c.group != 2 && c.group != 4)
      return broken("panels in groups of ", c.group, ", expected 1, 2 or 4");
    if (!factor_of(c.a, c.a_factor)) return broken("operand a ends in no conversion from what its panels hold");
    if (!factor_of(c.b, c.b_factor)) return broken("operand b ends in no conversion from what its panels hold");
    const int64_t step = k_step(c, kernel_.schedule);
    if (kernel_.schedule.kc % step != 0)
      return broken("a block of ", kernel_.schedule.kc, " k is not in steps of ", step);
    return {};
  }

  Status products() const {
    const Contract &c = *stage_.contract;
    const Schedule &s = kernel_.schedule;
    if (s.products == Schedule::Products::widened) return {};
    const bool bytes = (c.a_type() == DType::i8 || c.a_type() == DType::u8) && c.b_type() == DType::i8 &&
                       c.accumulator == DType::i32 && c.group == 4;
    const bool halves =
        c.a_type() == DType::bf16 && c.b_type() == DType::bf16 && c.accumulator == DType::f32 && c.group == 2;
    if (!bytes && !halves)
      return broken("no dot products of ", name_of(c.a_type()), " by ", name_of(c.b_type()), " in ",
                    name_of(c.accumulator), " in groups of ", c.group);
    if (s.products == Schedule::Products::tiles && ((s.mr != 16 && s.mr != 32) || (s.nr != 16 && s.nr != 32)))
      return broken("a microkernel of tiles is ", s.mr, "x", s.nr, ", expected 16 or 32 rows and columns");
    return {};
  }

  Status panels(uint32_t m, uint32_t n) const {
    const Contract &c = *stage_.contract;
    const Schedule &s = kernel_.schedule;
    if (c.panel == 0) return {};
    if (c.panel != s.nr) return broken("packed panels are not nr wide");
    if (s.tiles.back() % s.nr != 0) return broken("a tile ends inside a packed panel");
    const uint32_t hidden[] = {m, n};
    KILN_TRY(verify_expr({kernel_, kernel_.parallel, hidden}, c.packed_offset));
    const Value &read = *factor_of(c.b, c.b_factor);
    const auto axis = [&](uint32_t id) { return axes_[id].extent.is(1) ? Expr(0) : Expr::axis(id, axes_[id].extent); };
    const Expr width = static_cast<int64_t>(c.panel), k = axis(n + 1), group = static_cast<int64_t>(c.group),
               step = k_step(c, s), groups = ceil_div(axes_[n + 1].extent, step) * (k_step(c, s) / c.group);
    const Expr place = c.packed_offset + (floor_div(axis(n), width) * groups + floor_div(k, group)) * width * group +
                       mod(axis(n), width) * group + mod(k, group);
    if (read.op != Core::load || read.access.valid >= 0 || read.access.buffer != c.packed_buffer ||
        read.access.index[0] != place)
      return broken("operand b does not read the packed panels: expected b", c.packed_buffer, "[", place.text(), "]");
    return {};
  }

  Status yields(const Body &body, size_t number, DType type, std::string_view what) const {
    const DType actual = body.values[static_cast<size_t>(body.yields[number])].type;
    if (actual == type) return {};
    return broken("stage ", number_, ": yield ", number, " of the ", what, " is ", name_of(actual), ", expected ",
                  name_of(type));
  }

  // What stores may name: values of the results' types.
  std::vector<Value> results() const {
    std::vector<Value> results;
    const auto add = [&](DType type) {
      results.push_back(
          {.op = Core::constant, .type = type, .args = {-1, -1, -1}, .immediate = 0, .access = {}, .expr = {}});
    };
    for (DType type : stage_.carriers.types) add(type);
    for (size_t i = results.size(); i < stage_.body.yields.size(); ++i)
      add(stage_.body.values[static_cast<size_t>(stage_.body.yields[i])].type);
    return results;
  }

  // Once a point of the loop axes, and of a scan's: what is reduced is gone.
  Status stores() const {
    const std::vector<Value> values = results();
    for (const Store &store : stage_.stores) {
      if (store.value < 0 || static_cast<size_t>(store.value) >= values.size())
        return broken("store of value ", store.value, " of ", values.size());
      if (store.to.fill != 0) return broken("a store has no fill");
      KILN_TRY(verify_access({kernel_, axes_, reduced_}, store.to, values));
      const Buffer &buffer = kernel_.buffers[store.to.buffer];
      if (buffer.space == Buffer::Space::in) return broken("store to an input");
      const DType type = values[static_cast<size_t>(store.value)].type;
      if (type != buffer.type)
        return broken("store of ", name_of(type), " to buffer ", store.to.buffer, " of ", name_of(buffer.type));
      KILN_TRY(combination(store, type));
    }
    return {};
  }

  Status combination(const Store &store, DType type) const {
    if (store.mode > Store::Mode::bit_or) return broken("a store combines in no known way");
    const bool bits = store.mode == Store::Mode::bit_and || store.mode == Store::Mode::bit_or;
    const bool fits = bits ? !dtype_info(type).is_float : type != DType::boolean && !is_small_float(type);
    if (store.combines() && !fits)
      return broken("a store combines ", name_of(type), " by ", core_info(core_of(store.mode, type)).name);
    if (keeps_tasks_apart(kernel_, stage_, store)) return {};
    return broken("tasks may meet in b", store.to.buffer, "[", store.to.index[0].text(),
                  "]: it combines or scatters, and needs a stride for each parallel axis, or one task");
  }

  const Kernel &kernel_;
  const Stage &stage_;
  const size_t number_;
  std::vector<Axis> axes_;  // in scope, by id
  std::vector<uint32_t> reduced_;
};

Status verify_schedule(const Kernel &kernel) {
  const Schedule &s = kernel.schedule;
  if (s.vector != Schedule::Vector::inner && s.vector != Schedule::Vector::parallel)
    return broken("vectors run along no known axis");
  if (s.tiles.size() != kernel.parallel.size()) return broken("tiles and parallel axes differ in number");
  if (s.vector_bytes < 4 || s.vector_bytes > max_vector_bytes || !std::has_single_bit(s.vector_bytes))
    return broken("vectors of ", s.vector_bytes, " bytes, expected a power of two from 4 to ", max_vector_bytes);
  for (uint32_t tile : s.tiles)
    if (tile == 0 || tile > max_tile) return broken("a tile of ", tile, ", expected 1 to ", max_tile);
  if (s.products > Schedule::Products::tiles) return broken("products are made in no known way");
  if (s.mr == 0 && s.products != Schedule::Products::widened) return broken("dot products are a microkernel's");
  if ((s.mr == 0) != (s.nr == 0) || (s.mr == 0) != (s.kc == 0))
    return broken("a contraction's microkernel needs all of mr, nr and kc, or none");
  if (s.mr > max_mr || s.nr > max_nr || s.kc > max_kc)
    return broken("a microkernel of mr ", s.mr, ", nr ", s.nr, ", kc ", s.kc, ", expected at most ", max_mr, ", ",
                  max_nr, ", ", max_kc);
  return {};
}

// Each row of a tile has its row_local buffers, and goes through them by itself.
Status verify_row_tiles(const Kernel &kernel) {
  const Schedule &s = kernel.schedule;
  if (!is_in_row_tiles(kernel)) return {};
  if (kernel.parallel.empty() || s.vector != Schedule::Vector::inner || s.vector_m ||
      s.products != Schedule::Products::widened)
    return broken("tiles of rows lie along a parallel axis, lanes along inner ones, and products are widened");
  if (int64_t{s.tiles.back()} > max_rows)
    return broken("a tile of ", s.tiles.back(), " rows, expected 1 to ", max_rows);
  for (size_t i = 0; i + 1 < s.tiles.size(); ++i)
    if (s.tiles[i] != 1) return broken("a tile of rows has one point of axis ", i, ", not ", s.tiles[i]);
  for (size_t i = 0; i < kernel.stages.size(); ++i)
    if (kernel.stages[i].sort || kernel.stages[i].in_blocks())
      return broken("stage ", i, ": no sorts and no blocks in tiles of rows");
  return {};
}

Status verify_buffers(const Kernel &kernel) {
  if (kernel.buffers.size() > UINT16_MAX) return broken("too many buffers");
  auto last = Buffer::Space::in;
  for (size_t i = 0; i < kernel.buffers.size(); ++i) {
    const Buffer &buffer = kernel.buffers[i];
    if (!is_type(buffer.type)) return broken("buffer ", i, " has no type");
    if (buffer.space > Buffer::Space::row_local) return broken("buffer ", i, " is in no known space");
    if (last == Buffer::Space::row_local && buffer.space != last) return broken("row_local buffers come last");
    last = buffer.space;
    KILN_TRY(verify_size(kernel, buffer.size, "size of buffer", i));
  }
  return {};
}

}  // namespace

Status verify(const Kernel &kernel) {
  for (size_t i = 0; i < kernel.symbols.size(); ++i)
    if (kernel.symbols[i] != str_cat("s", i))
      return broken("symbol ", i, " is '", kernel.symbols[i], "', expected 's", i, "'");
  KILN_TRY(verify_buffers(kernel));
  for (size_t i = 0; i < kernel.parallel.size(); ++i) {
    if (kernel.parallel[i].role != Axis::Role::parallel) return broken("axis ", i, " is not parallel");
    KILN_TRY(verify_size(kernel, kernel.parallel[i].extent, "extent of axis", i));
  }
  KILN_TRY(verify_schedule(kernel));
  if (kernel.stages.empty()) return broken("no stages");
  for (size_t i = 0; i < kernel.stages.size(); ++i) KILN_TRY(StageVerifier(kernel, kernel.stages[i], i).run());
  KILN_TRY(verify_row_tiles(kernel));
  for (size_t i = 1; i < kernel.stages.size(); ++i) {
    const Stage &before = kernel.stages[i - 1], &after = kernel.stages[i];
    if (before.in_blocks() && after.in_blocks() && before.axes[0].extent != after.axes[0].extent)
      return broken("stages ", i - 1, " and ", i, " run together, in ", before.axes[0].extent.text(), " and ",
                    after.axes[0].extent.text(), " blocks");
  }
  return {};
}

}  // namespace kiln::kernel
