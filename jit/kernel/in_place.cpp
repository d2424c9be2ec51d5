// Which results may take the memory of what they are made of.
#include <algorithm>

#include "jit/kernel/kernel.h"

namespace kiln::kernel {
namespace {

struct WritingStore {
  size_t stage;
  const Store *store;
};

// The one store to a buffer, if it is a plain one of a map or an epilogue, at an element of its own for each point.
std::optional<WritingStore> only_writer(const Kernel &kernel, uint16_t buffer) {
  std::optional<WritingStore> found;
  for (size_t s = 0; s < kernel.stages.size(); ++s) {
    for (const Store &store : kernel.stages[s].stores) {
      if (store.to.buffer != buffer) continue;
      if (found || store.combines() || store.scatters() || store.to.valid >= 0) return {};
      found = WritingStore{s, &store};
    }
  }
  if (!found) return {};
  const Stage &stage = kernel.stages[found->stage];
  if (!stage.carriers.types.empty() || stage.sort) return {};
  std::vector<uint32_t> axes;
  const auto add = [&](const Axis &axis, size_t id) {
    if (axis.role != Axis::Role::reduce && !axis.extent.is(1)) axes.push_back(static_cast<uint32_t>(id));
  };
  for (size_t i = 0; i < kernel.parallel.size(); ++i) add(kernel.parallel[i], i);
  for (size_t i = 0; i < stage.axes.size(); ++i) add(stage.axes[i], kernel.parallel.size() + i);
  return separates(found->store->to.index[0], axes) ? found : std::nullopt;
}

// Whether a point reads of `buffer` the very elements that its own store writes, and none once that has run.
bool reads_in_step(const Kernel &kernel, uint16_t buffer, const WritingStore &writer) {
  const Expr &index = writer.store->to.index[0];
  const auto in_step = [&](const Body &body, bool before) {
    return std::ranges::all_of(body.values, [&](const Value &v) {
      if (!reads_memory(v.op) || v.access.buffer != buffer) return true;
      return before && v.op == Core::load && v.access.index[0] == index;
    });
  };
  for (size_t s = 0; s < kernel.stages.size(); ++s) {
    const Stage &stage = kernel.stages[s];
    if (!in_step(stage.body, s <= writer.stage)) return false;
    if (!stage.contract) continue;
    if (stage.contract->panel != 0 && stage.contract->packed_buffer == buffer) return false;
    // Operands of a sum are read for other points, too.
    if (!in_step(stage.contract->a, false) || !in_step(stage.contract->b, false)) return false;
  }
  return true;
}

}  // namespace

std::vector<InPlace> in_place(const Kernel &kernel) {
  std::vector<InPlace> pairs;
  // Blocks run a stage again after the stages behind it.
  if (std::ranges::any_of(kernel.stages, &Stage::in_blocks)) return pairs;
  for (uint16_t written = 0; written < kernel.buffers.size(); ++written) {
    const Buffer &to = kernel.buffers[written];
    if (to.space != Buffer::Space::out) continue;
    const std::optional<WritingStore> writer = only_writer(kernel, written);
    if (!writer) continue;
    for (uint16_t read = 0; read < kernel.buffers.size(); ++read) {
      const Buffer &from = kernel.buffers[read];
      if (from.space != Buffer::Space::in || size_of(from.type) != size_of(to.type) || from.size != to.size) continue;
      if (reads_in_step(kernel, read, *writer)) pairs.push_back({read, written});
    }
  }
  return pairs;
}

}  // namespace kiln::kernel
