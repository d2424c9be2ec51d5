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
  if (!kernel.stages.empty() && kernel.stages.front().contract && s.mr != 0) {
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
