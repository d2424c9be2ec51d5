// Columns of a kernel in tiles of rows that nobody need go to: those that a causal mask or a window hides, say. Found
// in the kernel itself, so that a kernel says nothing that could be wrong.
#pragma once
#include <optional>
#include <vector>

#include "jit/kernel/kernel.h"

namespace kiln::kernel {

struct HiddenColumns {
  // Over the parallel axes: the first column of those that a row sees, and the first one behind them. Neither falls
  // along the last axis. Nothing: 0, and all.
  std::optional<Expr> from, until;
  std::vector<const Value *> shows;  // of the first contraction's epilogue: comparisons, true from `from` to `until`
  std::vector<const Axis *> axes;    // along which stages need not go beyond, but to the ends of a block (hidden_block)
};
// Results are then the same bits, with one exception, which an emitter has to see to: a contraction along such an axis
// sums up products with 0 there, which are NaN where a factor is not finite, and may have a sign.
std::optional<HiddenColumns> hidden_columns(const Kernel &kernel);
// Sums that begin and end at multiples of it, or end with the columns, have each point in the partial result that is
// its own.
int64_t hidden_block(const Kernel &kernel);

}  // namespace kiln::kernel
