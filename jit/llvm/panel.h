// Packing of contraction operands.
#pragma once
#include "jit/llvm/emitter.h"

namespace kiln::codegen {

// One operand of a contraction: `body` over axis `axis` (m or n) and k, packed in panels of `rows` indices of that
// axis.
struct PanelSource {
  const kernel::Body &body;
  size_t axis, k_axis;
  DType type;  // of the body's yield
  unsigned rows;
  unsigned group = 1;         // elements of so many consecutive k stand together: a power of two
  unsigned step = 1;          // a multiple of `group`: k ends at one, with zeros
  bool above_by_128 = false;  // bytes are stored as what is greater by 128, without a sign
};

// Whether memory runs along `axis` where the body reads it.
bool walks(const kernel::Body &body, size_t axis);

// Writes the panel that begins at `along.begin`: with k and i counted from k.begin and along.begin, element (k, i) is
// target[(k / group * rows + i) * group + k % group]. Indices from along.end on are not evaluated; what stands for them
// in the panel is not defined.
void emit_panel(KernelState &state, const PanelSource &source, const Point &point, const Range &along, const Range &k,
                llvm::Value *target);

}  // namespace kiln::codegen
