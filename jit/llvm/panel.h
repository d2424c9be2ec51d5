// Packing of contraction operands.
#pragma once
#include "jit/llvm/emitter.h"

namespace kiln::codegen {

// One operand of a contraction: `body` over axis `axis` (m or n) and k, packed in panels of `rows` indices of that
// axis.
struct PanelSource {
  const kernel::Body &body;
  size_t axis;
  DType type;  // of the body's yield
  unsigned rows;
};

// Writes the panel that begins at `along.begin`: target[(k - k.begin) * rows + (i - along.begin)]. Indices from
// along.end on are not evaluated; what stands for them in the panel is not defined.
void emit_panel(KernelState &state, const PanelSource &source, const Point &point, const Range &along, const Range &k,
                llvm::Value *target);

}  // namespace kiln::codegen
