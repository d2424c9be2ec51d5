// Which scatters need not copy what they begin as: where that is a tensor in memory, its memory may become the result's
// (runtime/plan), and a kernel touches what it writes alone. And which have no rows.
#include <map>

#include "jit/kernel/body.h"
#include "jit/kernel/fuse_steps.h"

namespace kiln::kernel {

std::optional<uint32_t> begins_as(const Item &item) {
  const Body &begin = item.compute.scatter->begin;
  const Value &value = begin.values[static_cast<size_t>(begin.yields[0])];
  // A view of other dims may have been folded into it.
  if (value.op != Core::load || value.access.index.size() != item.compute.dims.size() ||
      !reads_in_step(value.access, item.domain, domain_axes(item), item.domain.size()))
    return {};
  return item.operands[value.access.buffer];
}

void find_bases(std::vector<Item> &items, const std::vector<Tensor> &tensors, const std::vector<uint32_t> &group_of,
                const std::vector<bool> &needed) {
  for (Item &item : items) {
    // What is prepared once may be copied.
    if (!item.compute.scatter || item.prepared || !needed[item.results[0]]) continue;
    const std::optional<uint32_t> base = begins_as(item);
    if (!base || group_of[*base] == group_of[item.results[0]]) continue;
    const Tensor &from = tensors[*base], &to = tensors[item.results[0]];
    if (from.dtype != to.dtype || from.dims != to.dims || from.strides != to.strides) continue;
    item.base = base;
    item.compute.scatter->begin = {};
    drop_unused_operands(item);
  }
}

void drop_rows(Item &scatter) {
  Compute &c = scatter.compute;
  std::map<uint32_t, Expr> moved;
  for (const uint32_t d : scatter.domain) {
    if (!c.keeps(d)) continue;
    moved[d] = Expr::axis(static_cast<uint32_t>(c.dims.size() + c.reduce.size()), c.dims[d]);
    c.reduce.push_back(c.dims[d]);
  }
  const auto move = [&](Expr &e) {
    e = e.substitute([&](const Expr &leaf) -> std::optional<Expr> {
      if (leaf.kind() != Expr::Kind::axis || !moved.contains(leaf.id())) return {};
      return moved.at(leaf.id());
    });
  };
  for_each_expr(c.body, move);
  for (Expr &e : c.scatter->index) move(e);
}

}  // namespace kiln::kernel
