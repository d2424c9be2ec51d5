#include <algorithm>
#include <bit>

#include "jit/kernel/verify_body.h"

namespace kiln::kernel {
namespace {

// More than any schedule chooses, and little enough that an emitter's code and a task's scratch stay small.
constexpr uint32_t max_lanes = 64, max_tile = 1 << 24, max_mr = 64, max_nr = 256, max_kc = 1 << 16;

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
    KILN_TRY(stage_.contract ? contraction() : loops());
    for (const Store &store : stage_.stores) KILN_TRY(stores(store));
    return {};
  }

 private:
  Status axes() const {
    bool reduces = false;
    for (size_t i = 0; i < stage_.axes.size(); ++i) {
      const Axis &axis = stage_.axes[i];
      if (axis.role != Axis::Role::loop && axis.role != Axis::Role::reduce)
        return broken("stage ", number_, ": an axis is neither loop nor reduce");
      if (reduces && axis.role == Axis::Role::loop)
        return broken("stage ", number_, ": loop axes come before reduce axes");
      reduces |= axis.role == Axis::Role::reduce;
      KILN_TRY(verify_size(kernel_, axis.extent, "extent of axis", kernel_.parallel.size() + i));
    }
    return {};
  }

  // A map or a reduction.
  Status loops() const {
    const Carriers &c = stage_.carriers;
    const size_t n = c.types.size();
    if (reduced_.empty() != (n == 0)) return broken("stage ", number_, ": reduce axes and carriers go together");
    KILN_TRY(verify_body({kernel_, axes_}, {}, stage_.body));
    if (n == 0) {
      if (!c.identities.empty() || !c.combine.values.empty() || !c.combine.yields.empty())
        return broken("stage ", number_, " combines without carriers");
      return {};
    }
    if (stage_.body.yields.size() != n || c.identities.size() != n || c.combine.yields.size() != n)
      return broken("stage ", number_, " has ", n, " carriers, but not as many yields, identities or results");
    if (!std::ranges::all_of(c.types, is_type)) return broken("stage ", number_, " has a carrier without a type");
    std::vector<DType> both = c.types;  // the left side's, then the right side's
    both.insert(both.end(), c.types.begin(), c.types.end());
    KILN_TRY(verify_body({kernel_, {}}, {.carriers = both, .memory = false}, c.combine));
    for (size_t i = 0; i < n; ++i) {
      KILN_TRY(yields(stage_.body, i, c.types[i], "body"));
      KILN_TRY(yields(c.combine, i, c.types[i], "combine body"));
    }
    return {};
  }

  Status contraction() const {
    const Contract &c = *stage_.contract;
    if (kernel_.stages.size() != 1 || kernel_.parallel.size() < 2 || stage_.axes.size() != 1 || reduced_.empty() ||
        !stage_.carriers.types.empty())
      return broken("a contraction is a kernel's only stage, over m, n and one k");
    if (c.a.yields.size() != 1 || c.b.yields.size() != 1) return broken("operands yield one value");
    if (!is_type(c.accumulator)) return broken("stage ", number_, ": the accumulator has no type");
    const auto n = static_cast<uint32_t>(kernel_.parallel.size()) - 1, m = n - 1;
    KILN_TRY(verify_body({kernel_, axes_, {&n, 1}}, {}, c.a));
    KILN_TRY(verify_body({kernel_, axes_, {&m, 1}}, {}, c.b));
    KILN_TRY(yields(c.a, 0, c.accumulator, "operand a"));
    KILN_TRY(yields(c.b, 0, c.accumulator, "operand b"));
    KILN_TRY(verify_body({kernel_, kernel_.parallel}, {.accumulator = c.accumulator}, stage_.body));
    for (const Buffer &buffer : kernel_.buffers)
      if (buffer.space == Buffer::Space::row_local) return broken("a contraction has no row_local buffers");
    return panels(m, n);
  }

  Status panels(uint32_t m, uint32_t n) const {
    const Contract &c = *stage_.contract;
    const Schedule &s = kernel_.schedule;
    if (c.panel == 0) return {};
    if (c.panel != s.nr) return broken("packed panels are not nr wide");
    if (s.tiles.back() % s.nr != 0) return broken("a tile ends inside a packed panel");
    const uint32_t hidden[] = {m, n};
    KILN_TRY(verify_expr({kernel_, kernel_.parallel, hidden}, c.packed_offset));
    const Value &read = c.b.values[static_cast<size_t>(c.b.yields[0])];
    const auto axis = [&](uint32_t id) { return axes_[id].extent.is(1) ? Expr(0) : Expr::axis(id, axes_[id].extent); };
    const Expr width = static_cast<int64_t>(c.panel), k = axis(n + 1);
    const Expr place =
        c.packed_offset + (floor_div(axis(n), width) * axes_[n + 1].extent + k) * width + mod(axis(n), width);
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

  // Once a point of the loop axes: what is reduced is gone.
  Status stores(const Store &store) const {
    const bool carried = !stage_.carriers.types.empty();
    const size_t values = carried ? stage_.carriers.types.size() : stage_.body.yields.size();
    if (store.value < 0 || static_cast<size_t>(store.value) >= values)
      return broken("store of value ", store.value, " of ", values);
    if (store.to.valid != -1 || store.to.fill != 0) return broken("a store has no guard");
    KILN_TRY(verify_access({kernel_, axes_, reduced_}, store.to, {}));
    const Buffer &buffer = kernel_.buffers[store.to.buffer];
    if (buffer.space == Buffer::Space::in) return broken("store to an input");
    const auto value = static_cast<size_t>(store.value);
    const DType type = carried ? stage_.carriers.types[value]
                               : stage_.body.values[static_cast<size_t>(stage_.body.yields[value])].type;
    if (type != buffer.type)
      return broken("store of ", name_of(type), " to buffer ", store.to.buffer, " of ", name_of(buffer.type));
    return {};
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
  if (s.lanes > max_lanes || !std::has_single_bit(s.lanes))
    return broken(s.lanes, " lanes, expected a power of two up to ", max_lanes);
  for (uint32_t tile : s.tiles)
    if (tile == 0 || tile > max_tile) return broken("a tile of ", tile, ", expected 1 to ", max_tile);
  if ((s.mr == 0) != (s.nr == 0) || (s.mr == 0) != (s.kc == 0))
    return broken("a contraction's microkernel needs all of mr, nr and kc, or none");
  if (s.mr > max_mr || s.nr > max_nr || s.kc > max_kc)
    return broken("a microkernel of mr ", s.mr, ", nr ", s.nr, ", kc ", s.kc, ", expected at most ", max_mr, ", ",
                  max_nr, ", ", max_kc);
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
  return {};
}

}  // namespace kiln::kernel
