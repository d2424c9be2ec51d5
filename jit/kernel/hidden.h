// Columns of a kernel in tiles of rows that nobody need go to: those that a causal mask hides, say. Found in the kernel
// itself, so that a kernel says nothing that could be wrong.
#pragma once
#include <optional>
#include <vector>

#include "jit/kernel/kernel.h"

namespace kiln::kernel {

struct HiddenColumns {
  Expr until;                    // over the parallel axes: from this column on; it does not fall along the last one
  const Value *shows = nullptr;  // of the first contraction's epilogue: what is true before it, and false from there on
  std::vector<const Axis *> axes;  // along which stages need not go further, but to the end of a block (hidden_block)
};
// Results are then the same bits, with one exception, which an emitter has to see to: a contraction along such an axis
// sums up products with 0 there, which are NaN where a factor is not finite, and may have a sign.
std::optional<HiddenColumns> hidden_columns(const Kernel &kernel);
// Sums that end at a multiple of it, or at the end of the columns, have each point in the partial result that is its
// own.
int64_t hidden_block(const Kernel &kernel);

}  // namespace kiln::kernel
