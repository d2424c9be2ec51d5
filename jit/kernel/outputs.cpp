// Outputs that have another tensor's elements in its order, under other dims: heads put together, say. Where a kernel
// of its own would copy them, the kernel that makes the other tensor writes the output instead.
#include <algorithm>

#include "jit/kernel/fuse_steps.h"

namespace kiln::kernel {
namespace {

bool is_dense(const Tensor &tensor) { return tensor.strides == row_major_strides(tensor.dims); }

// The operand that the item copies, element for element of memory.
std::optional<uint32_t> copied_by(const Item &item, const std::vector<Tensor> &tensors) {
  const Compute &c = item.compute;
  if (!item.is_map() || item.results.size() != 1 || c.body.values.size() != 1) return {};
  const Value &load = c.body.values[0];
  if (load.op != Core::load || load.access.valid >= 0) return {};
  const Tensor &to = tensors[item.results[0]], &from = tensors[item.operands[load.access.buffer]];
  if (!is_dense(to) || !is_dense(from) || product_of(to.dims) != product_of(from.dims)) return {};
  Expr read = 0, written = 0;
  for (size_t d = 0; d < from.dims.size(); ++d) read += load.access.index[d] * from.strides[d];
  for (const uint32_t d : item.domain) written += Expr::axis(d, to.dims[d]) * to.strides[d];
  return read == written ? std::optional(item.operands[load.access.buffer]) : std::nullopt;
}

}  // namespace

std::vector<uint32_t> write_outputs(std::vector<Group> &groups, const std::vector<Item> &items,
                                    const std::vector<Tensor> &tensors, const std::vector<uint32_t> &group_of) {
  std::vector<uint32_t> written(tensors.size());
  for (uint32_t t = 0; t < written.size(); ++t) written[t] = t;
  std::vector<bool> is_read(tensors.size());  // a kernel may read both by now, and needs them apart
  for (const Item &item : items)
    for (uint32_t operand : item.operands) is_read[operand] = true;
  const auto made_by = [&](uint32_t tensor) -> const Item & {
    const Group &group = groups[group_of[tensor]];
    return items[*std::ranges::find_if(group.items, [&](uint32_t i) {
      return std::ranges::find(items[i].results, tensor) != items[i].results.end();
    })];
  };
  for (Group &group : groups) {
    if (group.items.size() != 1) continue;
    const Item &copy = items[group.items.front()];
    const std::optional<uint32_t> from = copied_by(copy, tensors);
    if (!from || !tensors[copy.results[0]].is_output || is_read[copy.results[0]] || tensors[*from].is_output ||
        group_of[*from] == UINT32_MAX || written[*from] != *from)
      continue;
    if (const Item &maker = made_by(*from); maker.compute.scatter || maker.prepared != copy.prepared) continue;
    written[*from] = copy.results[0];
    group.items.clear();
  }
  return written;
}

}  // namespace kiln::kernel
