#include "jit/kernel/kernel.h"

#include <array>

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

}  // namespace

bool separates(const Expr &index, std::vector<uint32_t> axes) {
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
      if (!floor_div(inner, *stride).is(0)) continue;
      rest = inner;
      axes.erase(axes.begin() + static_cast<ptrdiff_t>(i));
      found = true;
    }
    if (!found) return false;
  }
  return true;
}

bool is_tiled_contraction(const Kernel &kernel) {
  return kernel.stages.size() == 1 && kernel.stages[0].contract && kernel.stages[0].axes.size() == 1;
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
  const int64_t lanes = s.vector == Schedule::Vector::parallel ? s.lanes : 1;
  for (const Buffer &buffer : kernel.buffers) {
    if (buffer.space != Buffer::Space::row_local) continue;
    layout.row_local.push_back(area(buffer.size * (lanes * size_of(buffer.type))));
  }
  if (is_tiled_contraction(kernel) && s.mr != 0) {
    const Contract &c = *kernel.stages.front().contract;
    const int64_t element = size_of(c.accumulator);
    auto up = [](int64_t v, int64_t to) { return (v + to - 1) / to * to; };
    const int64_t mc = up(s.tiles[s.tiles.size() - 2], s.mr), nc = up(s.tiles.back(), s.nr);
    layout.a_panel = area(mc * s.kc * element);
    if (c.panel == 0) layout.b_panel = area(int64_t{s.kc} * s.nr * element);
    layout.c_tile = area(mc * nc * element);
  }
  return layout;
}

}  // namespace kiln::kernel
