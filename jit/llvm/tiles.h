// Contractions in tile registers (AMX): of 16 rows by 64 bytes.
#pragma once
#include "jit/llvm/emitter.h"

namespace kiln::codegen {

// Around all products of a task: the registers are set up, and given back. Fails where the target has none.
void emit_tiles_begin(KernelState &state);
void emit_tiles_end(KernelState &state);

struct TileBlock {
  llvm::Value *rows, *columns, *sums;  // panels, and the first sum
  int64_t sums_stride;                 // from row to row of sums, in elements
  bool from_zero;                      // else the products are added to what `sums` hold
};
// Of mr rows by nr columns; a step of `depth` takes 64 bytes of each row.
void emit_tile_products(KernelState &state, const kernel::Contract &contract, const TileBlock &block,
                        const Range &depth);

}  // namespace kiln::codegen
