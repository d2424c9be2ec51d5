// Eight registers: up to four hold sums, two rows of a, two columns of b. The instructions name them by number.
#include "jit/llvm/tiles.h"

#include <llvm/IR/IntrinsicsX86.h>

#include <array>

namespace kiln::codegen {
namespace {

constexpr int64_t tile_rows = 16, row_bytes = 64, sum_bytes = 4, tile_bytes = tile_rows * row_bytes;
constexpr uint8_t first_of_a = 4, first_of_b = 6, registers = 8;

// Palette 1: the bytes of a row, for each register, from byte 16 on; its rows from byte 48 on.
std::array<uint8_t, 64> configuration() {
  std::array<uint8_t, 64> bytes{1};
  for (size_t tile = 0; tile < registers; ++tile) {
    bytes[16 + 2 * tile] = row_bytes;
    bytes[48 + tile] = tile_rows;
  }
  return bytes;
}

class TileEmitter {
 public:
  TileEmitter(KernelState &state, const kernel::Contract &contract, const TileBlock &block)
      : b_(state.b),
        contract_(contract),
        block_(block),
        row_tiles_(state.kernel.schedule.mr / tile_rows),
        column_tiles_(state.kernel.schedule.nr / tile_rows),
        panel_stride_(state.kernel.schedule.nr * sum_bytes) {}

  void emit(KernelState &state, const Range &depth) {
    each_sum([&](uint8_t tile, llvm::Value *place) {
      if (block_.from_zero)
        b_.CreateIntrinsic(llvm::Intrinsic::x86_tilezero, {}, {b_.getInt8(tile)});
      else
        move(llvm::Intrinsic::x86_tileloadd64, tile, place, block_.sums_stride * sum_bytes);
    });
    emit_loop(state, depth, 1, [&](llvm::Value *step) {
      for (int64_t r = 0; r < row_tiles_; ++r) {
        move(llvm::Intrinsic::x86_tileloadd64, static_cast<uint8_t>(first_of_a + r),
             at(block_.rows, step, row_tiles_ * tile_bytes, r * tile_bytes), row_bytes);
      }
      for (int64_t c = 0; c < column_tiles_; ++c) {
        move(llvm::Intrinsic::x86_tileloadd64, static_cast<uint8_t>(first_of_b + c),
             at(block_.columns, step, panel_stride_ * tile_rows, c * row_bytes), panel_stride_);
      }
      each_sum([&](uint8_t tile, llvm::Value *) { multiply_add(tile); });
    });
    each_sum([&](uint8_t tile, llvm::Value *place) {
      move(llvm::Intrinsic::x86_tilestored64, tile, place, block_.sums_stride * sum_bytes);
    });
  }

 private:
  template <class Fn>
  void each_sum(Fn fn) {
    for (int64_t tile = 0; tile < row_tiles_ * column_tiles_; ++tile) {
      const int64_t offset = tile / column_tiles_ * tile_rows * block_.sums_stride + tile % column_tiles_ * tile_rows;
      fn(static_cast<uint8_t>(tile),
         b_.CreateConstGEP1_64(b_.getInt32Ty(), block_.sums, static_cast<uint64_t>(offset)));
    }
  }

  llvm::Value *at(llvm::Value *panel, llvm::Value *step, int64_t step_bytes, int64_t offset) {
    llvm::Value *bytes = b_.CreateNSWMul(step, b_.getInt64(static_cast<uint64_t>(step_bytes)));
    llvm::Value *line = b_.CreateGEP(b_.getInt8Ty(), panel, bytes);
    return b_.CreateConstGEP1_64(b_.getInt8Ty(), line, static_cast<uint64_t>(offset));
  }

  void move(llvm::Intrinsic::ID id, uint8_t tile, llvm::Value *place, int64_t stride) {
    b_.CreateIntrinsic(id, {}, {b_.getInt8(tile), place, b_.getInt64(static_cast<uint64_t>(stride))});
  }

  void multiply_add(uint8_t tile) {
    const auto id = contract_.accumulator == DType::f32 ? llvm::Intrinsic::x86_tdpbf16ps
                    : contract_.a_type() == DType::u8   ? llvm::Intrinsic::x86_tdpbusd
                                                        : llvm::Intrinsic::x86_tdpbssd;
    const auto number = [&](int64_t n) { return b_.getInt8(static_cast<uint8_t>(n)); };
    b_.CreateIntrinsic(
        id, {}, {number(tile), number(first_of_a + tile / column_tiles_), number(first_of_b + tile % column_tiles_)});
  }

  llvm::IRBuilder<> &b_;
  const kernel::Contract &contract_;
  const TileBlock &block_;
  const int64_t row_tiles_, column_tiles_;
  const int64_t panel_stride_;  // bytes of one group of k in a panel of b
};

}  // namespace

void emit_tiles_begin(KernelState &state) {
  auto &b = state.b;
  const bool is_float = state.kernel.stages.front().contract->accumulator == DType::f32;
  if (!state.features.set.has(is_float ? Feature::amx_bf16 : Feature::amx_int8))
    return state.fail(
        error(Code::unimplemented, "products in tiles: the target lacks ", is_float ? "amx_bf16" : "amx_int8"));
  llvm::Constant *bytes = llvm::ConstantDataArray::get(b.getContext(), llvm::ArrayRef<uint8_t>(configuration()));
  llvm::IRBuilder<> entry(&state.function->getEntryBlock(), state.function->getEntryBlock().begin());
  llvm::AllocaInst *place = entry.CreateAlloca(bytes->getType());
  place->setAlignment(llvm::Align(64));
  b.CreateAlignedStore(bytes, place, llvm::Align(64));
  b.CreateIntrinsic(llvm::Intrinsic::x86_ldtilecfg, {}, {place});
}

void emit_tiles_end(KernelState &state) { state.b.CreateIntrinsic(llvm::Intrinsic::x86_tilerelease, {}, {}); }

void emit_tile_products(KernelState &state, const kernel::Contract &contract, const TileBlock &block,
                        const Range &depth) {
  TileEmitter(state, contract, block).emit(state, depth);
}

}  // namespace kiln::codegen
