// Which kernels are transposes.
#include <algorithm>

#include "jit/kernel/body.h"

namespace kiln::kernel {
namespace {

constexpr size_t most_values = 8;  // of a body, which a block has as often as a vector has lanes

bool has_step(const Expr &index, uint32_t axis, int64_t step) {
  const std::optional<Expr> found = index.coefficient(axis);
  return found && found->is(step);
}

bool is_crossed(const Value &value, uint32_t last) {
  if (value.op != Core::load || value.access.valid >= 0 || value.access.index[0].depends_on_value()) return false;
  const Expr &index = value.access.index[0];
  const std::optional<Expr> step = index.coefficient(last);
  return size_of(value.type) == 4 && step && !step->is(0) && !step->is(1) && has_step(index, last - 1, 1);
}

}  // namespace

std::vector<size_t> crossed_loads(const Kernel &kernel) {
  const Schedule &s = kernel.schedule;
  if (s.vector != Schedule::Vector::parallel || s.lanes() < 4 || kernel.parallel.size() < 2) return {};
  if (kernel.stages.size() != 1 || kernel.buffers.empty() || kernel.buffers.back().space == Buffer::Space::row_local)
    return {};
  const Stage &stage = kernel.stages[0];
  if (!stage.axes.empty() || stage.contract || stage.sort || !stage.carriers.types.empty() ||
      stage.body.values.size() > most_values)
    return {};
  const auto last = static_cast<uint32_t>(kernel.parallel.size()) - 1;
  const auto is_long = [&](const Axis &axis) {
    return !axis.extent.is_integer() || axis.extent.integer() >= s.lanes();
  };
  if (!is_long(kernel.parallel[last]) || !is_long(kernel.parallel[last - 1])) return {};
  const auto is_plain = [&](const Store &store) {
    return !store.combines() && !store.scatters() && store.to.valid < 0 && has_step(store.to.index[0], last, 1);
  };
  if (!std::ranges::all_of(stage.stores, is_plain)) return {};
  std::vector<size_t> crossed;
  for (size_t v = 0; v < stage.body.values.size(); ++v)
    if (is_crossed(stage.body.values[v], last)) crossed.push_back(v);
  return crossed;
}

}  // namespace kiln::kernel
