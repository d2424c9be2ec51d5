#include <set>

#include "jit/kernel/kernel.h"

namespace kiln::kernel {
namespace {

template <class... Parts>
Status broken(const Parts &...parts) {
  return error(Code::corrupt, "kernel: ", parts...);
}

// Checks one body against what is in scope.
struct BodyChecker {
  const Kernel &kernel;
  const std::vector<Axis> &axes;  // in scope, by id
  size_t carriers;                // how many Core::carrier may name (a combine body: twice the types)
  bool accumulator;               // whether Core::accumulator may stand

  Status expr(const Expr &e, size_t values) const {
    if (!e.is_readable()) return broken("an index of ", e.nodes(), " nodes is longer or deeper than what is read back");
    Status status;
    e.substitute([&](const Expr &leaf) -> std::optional<Expr> {
      if (leaf.kind() == Expr::Kind::axis && leaf.id() >= axes.size())
        status = broken("axis i", leaf.id(), " is not in scope");
      if (leaf.kind() == Expr::Kind::value && leaf.id() >= values)
        status = broken("index uses value v", leaf.id(), " before it is made");
      if (leaf.kind() == Expr::Kind::symbol) {
        bool known = false;
        for (const std::string &s : kernel.symbols) known |= s == leaf.symbol_name();
        if (!known) status = broken("unknown symbol ", leaf.symbol_name());
      }
      return {};
    });
    return status;
  }

  Status access(const Access &a, size_t values) const {
    if (a.buffer >= kernel.buffers.size()) return broken("access to buffer ", a.buffer, " of ", kernel.buffers.size());
    if (a.index.size() != 1) return broken("an access has one index in a kernel, not ", a.index.size());
    if (a.valid >= static_cast<int32_t>(values)) return broken("an access is guarded by a later value");
    return expr(a.index[0], values);
  }

  Status body(const Body &b) const {
    for (size_t i = 0; i < b.values.size(); ++i) {
      const Value &v = b.values[i];
      if (static_cast<size_t>(v.op) > static_cast<size_t>(Core::in_range)) return broken("unknown core op");
      if (v.type == DType::none || static_cast<int>(v.type) > dtype_count) return broken("v", i, " has no type");
      for (int a = 0; a < core_info(v.op).operands; ++a) {
        if (v.args[static_cast<size_t>(a)] < 0 || static_cast<size_t>(v.args[static_cast<size_t>(a)]) >= i) {
          return broken(core_info(v.op).name, " v", i, " uses a value that is not before it");
        }
      }
      if (v.op == Core::load) KILN_TRY(access(v.access, i));
      if (v.op == Core::index) KILN_TRY(expr(v.expr, i));
      if (v.op == Core::carrier && v.immediate >= carriers) return broken("carrier ", v.immediate, " of ", carriers);
      if (v.op == Core::accumulator && !accumulator) return broken("accumulator outside an epilogue");
    }
    for (int32_t y : b.yields) {
      if (y < 0 || static_cast<size_t>(y) >= b.values.size()) return broken("yield of v", y, " of ", b.values.size());
    }
    return {};
  }
};

Status verify_stage(const Kernel &kernel, const Stage &stage, size_t number) {
  std::vector<Axis> axes = kernel.parallel;
  axes.insert(axes.end(), stage.axes.begin(), stage.axes.end());
  const size_t n = stage.carriers.types.size();
  const BodyChecker inside{kernel, axes, 0, false}, combine{kernel, axes, 2 * n, false};
  bool reduces = false;
  for (const Axis &axis : stage.axes) {
    if (axis.role == Axis::Role::parallel) return broken("stage ", number, " has a parallel axis");
    if (reduces && axis.role == Axis::Role::loop)
      return broken("stage ", number, ": loop axes come before reduce axes");
    reduces |= axis.role == Axis::Role::reduce;
    KILN_TRY(inside.expr(axis.extent, 0));
  }
  if (stage.contract) {
    if (kernel.stages.size() != 1 || kernel.parallel.size() < 2 || stage.axes.size() != 1 || !reduces || n != 0) {
      return broken("a contraction is a kernel's only stage, over m, n and one k");
    }
    const Schedule &s = kernel.schedule;
    if ((s.mr == 0) != (s.nr == 0) || (s.mr == 0) != (s.kc == 0))
      return broken("a contraction's microkernel needs all of mr, nr and kc, or none");
    if (stage.contract->panel != 0 && stage.contract->panel != s.nr) return broken("packed panels are not nr wide");
    if (stage.contract->a.yields.size() != 1 || stage.contract->b.yields.size() != 1)
      return broken("operands yield one value");
    KILN_TRY(inside.body(stage.contract->a));
    KILN_TRY(inside.body(stage.contract->b));
    KILN_TRY(inside.expr(stage.contract->packed_offset, 0));
    KILN_TRY((BodyChecker{kernel, kernel.parallel, 0, true}.body(stage.body)));
  } else {
    if (reduces != (n != 0)) return broken("stage ", number, ": reduce axes and carriers go together");
    if (n != 0 && (stage.body.yields.size() != n || stage.carriers.identities.size() != n ||
                   stage.carriers.combine.yields.size() != n)) {
      return broken("stage ", number, " has ", n, " carriers, but not as many yields, identities or results");
    }
    KILN_TRY(inside.body(stage.body));
    KILN_TRY(combine.body(stage.carriers.combine));
  }
  for (const Store &store : stage.stores) {
    const size_t values = n != 0 ? n : stage.body.yields.size();
    if (store.value < 0 || static_cast<size_t>(store.value) >= values)
      return broken("store of value ", store.value, " of ", values);
    KILN_TRY(inside.access(store.to, 0));
    if (kernel.buffers[store.to.buffer].space == Buffer::Space::in) return broken("store to an input");
  }
  return {};
}

}  // namespace

Status verify(const Kernel &kernel) {
  if (kernel.buffers.size() > UINT16_MAX) return broken("too many buffers");
  if (kernel.schedule.tiles.size() != kernel.parallel.size()) return broken("tiles and parallel axes differ in number");
  if (kernel.schedule.lanes == 0 || kernel.schedule.lanes > 64) return broken("lanes out of range");
  for (uint32_t tile : kernel.schedule.tiles) {
    if (tile == 0) return broken("a tile is empty");
  }
  bool local = false;
  for (const Buffer &buffer : kernel.buffers) {
    if (buffer.type == DType::none || static_cast<int>(buffer.type) > dtype_count)
      return broken("a buffer has no type");
    if (local && buffer.space != Buffer::Space::row_local) return broken("row_local buffers come last");
    local |= buffer.space == Buffer::Space::row_local;
  }
  if (kernel.stages.empty()) return broken("no stages");
  for (size_t i = 0; i < kernel.stages.size(); ++i) KILN_TRY(verify_stage(kernel, kernel.stages[i], i));
  return {};
}

}  // namespace kiln::kernel
