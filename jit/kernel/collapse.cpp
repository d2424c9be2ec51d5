// Fewer and longer axes: two neighbouring axes that every access walks as one become one, so that a dense tensor of any
// rank is one loop. Then the symbols get the names s0, s1, ...
#include <algorithm>
#include <map>
#include <span>

#include "jit/kernel/body.h"
#include "jit/kernel/fuse_steps.h"

namespace kiln::kernel {

void for_each_expr_of_stage(Stage &stage, const std::function<void(Expr &)> &fn) {
  for_each_expr(stage.body, fn);
  if (stage.contract) {
    for_each_expr(stage.contract->a, fn);
    for_each_expr(stage.contract->b, fn);
    fn(stage.contract->packed_offset);
  }
  for (Store &store : stage.stores) fn(store.to.index[0]);
  if (stage.carriers.until) fn(*stage.carriers.until);
  if (!stage.sort) return;
  fn(stage.sort->runs);
  if (stage.sort->wanted) fn(*stage.sort->wanted);
}

namespace {

// Merges axes `outer` and `outer + 1` of `axes` (axis ids begin at `first_id`) in all `stages`; false: not possible,
// for some access does not walk the two as one. `anyhow`: then it has to divide.
bool merge(std::vector<Axis> &axes, uint32_t first_id, size_t outer, std::span<Stage *const> stages,
           bool anyhow = false) {
  const uint32_t a = first_id + static_cast<uint32_t>(outer);
  const Expr inner_extent = axes[outer + 1].extent, extent = axes[outer].extent * inner_extent;
  const Expr merged = Expr::axis(a, extent);
  std::map<uint32_t, Expr> shifted;  // by old id
  shifted[a] = floor_div(merged, inner_extent);
  shifted[a + 1] = mod(merged, inner_extent);
  const auto replace = [&](const Expr &leaf) -> std::optional<Expr> {
    if (leaf.kind() != Expr::Kind::axis || leaf.id() < a) return {};
    if (leaf.id() <= a + 1) return shifted[leaf.id()];
    return Expr::axis(leaf.id() - 1, leaf.extent());
  };
  std::vector<Expr> results;
  bool possible = true;
  for (Stage *stage : stages) {
    for_each_expr_of_stage(*stage, [&](Expr &e) {
      if (!possible || e.is_integer()) {
        results.push_back(e);
        return;
      }
      Expr r = e.substitute(replace);
      possible = anyhow || !r.depends_on_axis(a) || r.coefficient(a).has_value();
      results.push_back(std::move(r));
    });
    if (!possible) return false;
  }
  size_t next = 0;
  for (Stage *stage : stages) {
    for_each_expr_of_stage(*stage, [&](Expr &e) { e = results[next++]; });
  }
  axes[outer].extent = extent;
  axes.erase(axes.begin() + static_cast<ptrdiff_t>(outer) + 1);
  return true;
}

}  // namespace

void collapse_axes(Kernel &kernel) {
  std::vector<Stage *> all;
  for (Stage &stage : kernel.stages) all.push_back(&stage);
  const bool contraction = is_tiled_contraction(kernel);
  // The last two parallel axes of a contraction are m and n, and stay.
  for (size_t keep = contraction ? 2 : 0, i = kernel.parallel.size() - keep; i-- > 1;) {
    merge(kernel.parallel, 0, i - 1, all);
  }
  if (contraction) return;
  for (Stage &stage : kernel.stages) {
    if (stage.contract) continue;  // its last axes are m, n and k
    Stage *one[] = {&stage};
    for (size_t i = stage.axes.size(); i-- > 1;) {
      if (stage.axes[i - 1].role == stage.axes[i].role) {
        merge(stage.axes, static_cast<uint32_t>(kernel.parallel.size()), i - 1, one);
      }
    }
  }
}

void flatten_reduction(Stage &stage, uint32_t rows) {
  Stage *one[] = {&stage};
  for (size_t i = stage.axes.size(); i-- > 1;) {
    if (stage.axes[i - 1].role == Axis::Role::reduce) merge(stage.axes, rows, i - 1, one, true);
  }
}

std::vector<std::string> rename_symbols(Kernel &kernel) {
  std::vector<std::string> names;
  std::map<std::string, std::string> renamed;
  // Axis atoms carry extents with symbols inside; they are rebuilt with the new names.
  std::function<Expr(const Expr &)> rename = [&](const Expr &e) -> Expr {
    if (e.is_integer()) return e;
    return e.substitute([&](const Expr &leaf) -> std::optional<Expr> {
      if (leaf.kind() == Expr::Kind::axis) return Expr::axis(leaf.id(), rename(leaf.extent()));
      if (leaf.kind() != Expr::Kind::symbol) return {};
      auto [at, fresh] = renamed.try_emplace(leaf.symbol_name(), str_cat("s", names.size()));
      if (fresh) names.push_back(leaf.symbol_name());
      return Expr::symbol(at->second);
    });
  };
  for (Axis &axis : kernel.parallel) axis.extent = rename(axis.extent);
  for (Buffer &buffer : kernel.buffers) buffer.size = rename(buffer.size);
  for (Stage &stage : kernel.stages) {
    for (Axis &axis : stage.axes) axis.extent = rename(axis.extent);
    for_each_expr_of_stage(stage, [&](Expr &e) { e = rename(e); });
  }
  for (size_t i = 0; i < names.size(); ++i) kernel.symbols.push_back(str_cat("s", i));
  return names;
}

}  // namespace kiln::kernel
