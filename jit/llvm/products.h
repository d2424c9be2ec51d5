// How a microkernel multiplies what panels hold: the ways of kernel::Schedule::Products but for tiles.
#pragma once
#include "jit/llvm/emitter.h"

namespace kiln::codegen {

// Factors of one group of k, as multiply_add takes them.
class Products {
 public:
  // `lanes` sums at a time. Fails where the target lacks the instruction that the schedule asks for.
  Products(KernelState &state, const kernel::Contract &contract, unsigned lanes);

  Values columns(llvm::Value *from);  // of `lanes` columns, from a panel of b
  Values row(llvm::Value *from);      // of a row, for all lanes, from a panel of a
  llvm::Value *multiply_add(const Values &row, const Values &columns, llvm::Value *sum);

  // Whether panels of a hold what is greater by 128 than i8. What its products with b are greater by is
  // multiply_add(by_128(), columns).
  bool above_by_128() const { return way_ == Way::bytes && contract_.a_type() == DType::i8; }
  Values by_128();

 private:
  enum class Way : uint8_t {
    widened,         // element by element, as the accumulator's type
    bytes,           // VPDPBUSD: four of u8 by i8, without saturation
    pairs_of_bytes,  // PMADDWD: bytes as 16-bit numbers, two at a time; no such sum leaves 32 bits
    pairs_of_bf16,   // VDPBF16PS
  };
  Way choose();
  llvm::Value *widen(llvm::Value *elements, DType from);
  Values even_and_odd(llvm::Value *words, bool with_sign);
  llvm::Value *call(std::array<llvm::Intrinsic::ID, 3> by_width, llvm::ArrayRef<llvm::Value *> operands);

  KernelState &state_;
  llvm::IRBuilder<> &b_;
  const kernel::Contract &contract_;
  const unsigned lanes_;
  const Way way_;
};

}  // namespace kiln::codegen
