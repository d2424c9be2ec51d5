#include "jit/llvm/products.h"

#include <llvm/IR/IntrinsicsX86.h>

#include <array>

namespace kiln::codegen {

using kernel::Schedule;

Products::Products(KernelState &state, const kernel::Contract &contract, unsigned lanes)
    : state_(state), b_(state.b), contract_(contract), lanes_(lanes), way_(choose()) {}

Products::Way Products::choose() {
  if (state_.kernel.schedule.products != Schedule::Products::dot) return Way::widened;
  const FeatureSet &set = state_.features.set;
  const unsigned bits = lanes_ * 32;
  const bool is_vector = bits >= 128 && bits <= state_.features.vector_bits;
  const bool is_narrow = bits < 512 && set.has(Feature::avx512vl);
  if (contract_.accumulator == DType::f32) {
    if (is_vector && set.has(Feature::bf16) && (bits == 512 || is_narrow)) return Way::pairs_of_bf16;
    state_.fail(error(Code::unimplemented, "dot products of bf16 by ", lanes_, " lanes: the target lacks them"));
    return Way::widened;
  }
  if (!is_vector) return Way::widened;
  if (bits < 512 && set.has(Feature::avx_vnni)) return Way::bytes;
  if (set.has(Feature::vnni) && (bits == 512 || is_narrow)) return Way::bytes;
  return Way::pairs_of_bytes;
}

Values Products::columns(llvm::Value *from) {
  const unsigned group = contract_.group, size = size_of(contract_.b_type());
  llvm::Type *element = memory_type_of(state_, contract_.b_type());
  if (way_ != Way::widened) {
    auto *words = llvm::FixedVectorType::get(b_.getInt32Ty(), lanes_);
    llvm::Value *loaded = b_.CreateAlignedLoad(words, from, llvm::Align(size));
    return way_ == Way::pairs_of_bytes ? even_and_odd(loaded, true) : Values{loaded};
  }
  auto *type = llvm::FixedVectorType::get(element, lanes_ * group);
  llvm::Value *loaded = b_.CreateAlignedLoad(type, from, llvm::Align(size));
  if (group == 1) return {widen(loaded, contract_.b_type())};
  Values each;
  for (unsigned e = 0; e < group; ++e) {
    llvm::SmallVector<int, 16> mask;
    for (unsigned lane = 0; lane < lanes_; ++lane) mask.push_back(static_cast<int>(lane * group + e));
    each.push_back(widen(b_.CreateShuffleVector(loaded, mask), contract_.b_type()));
  }
  return each;
}

Values Products::row(llvm::Value *from) {
  const DType type = contract_.a_type();
  const llvm::Align alignment(size_of(type));
  if (way_ != Way::widened) {
    llvm::Value *word = b_.CreateVectorSplat(lanes_, b_.CreateAlignedLoad(b_.getInt32Ty(), from, alignment));
    return way_ == Way::pairs_of_bytes ? even_and_odd(word, type == DType::i8) : Values{word};
  }
  llvm::Type *element = memory_type_of(state_, type);
  Values each;
  for (unsigned e = 0; e < contract_.group; ++e) {
    llvm::Value *place = e == 0 ? from : b_.CreateConstGEP1_64(element, from, e);
    each.push_back(b_.CreateVectorSplat(lanes_, widen(b_.CreateAlignedLoad(element, place, alignment), type)));
  }
  return each;
}

llvm::Value *Products::widen(llvm::Value *elements, DType from) {
  return emit_convert(state_, elements, from, contract_.accumulator);
}

// Of words of four bytes: bytes 0 and 2, and bytes 1 and 3, as numbers of 16 bits.
Values Products::even_and_odd(llvm::Value *words, bool with_sign) {
  auto *type = llvm::FixedVectorType::get(b_.getInt16Ty(), lanes_ * 2);
  llvm::Value *pairs = b_.CreateBitCast(words, type), *high = b_.CreateShl(pairs, 8);
  if (with_sign) return {b_.CreateAShr(high, 8), b_.CreateAShr(pairs, 8)};
  return {b_.CreateLShr(high, 8), b_.CreateLShr(pairs, 8)};
}

Values Products::by_128() { return {b_.CreateVectorSplat(lanes_, b_.getInt32(0x80808080))}; }

llvm::Value *Products::multiply_add(const Values &row, const Values &columns, llvm::Value *sum) {
  using namespace llvm::Intrinsic;
  switch (way_) {
    case Way::bytes:
      return call({x86_avx512_vpdpbusd_128, x86_avx512_vpdpbusd_256, x86_avx512_vpdpbusd_512},
                  {sum, row[0], columns[0]});
    case Way::pairs_of_bf16: {
      auto *type = llvm::FixedVectorType::get(b_.getBFloatTy(), lanes_ * 2);
      return call({x86_avx512bf16_dpbf16ps_128, x86_avx512bf16_dpbf16ps_256, x86_avx512bf16_dpbf16ps_512},
                  {sum, b_.CreateBitCast(row[0], type), b_.CreateBitCast(columns[0], type)});
    }
    case Way::pairs_of_bytes:
      for (size_t e = 0; e < row.size(); ++e)
        sum = b_.CreateAdd(sum,
                           call({x86_sse2_pmadd_wd, x86_avx2_pmadd_wd, x86_avx512_pmaddw_d_512}, {row[e], columns[e]}));
      return sum;
    case Way::widened:
      for (size_t e = 0; e < row.size(); ++e) sum = emit_multiply_add(state_, row[e], columns[e], sum);
      return sum;
  }
  return sum;
}

// The intrinsic for vectors of 128, 256 or 512 bits.
llvm::Value *Products::call(std::array<llvm::Intrinsic::ID, 3> by_width, llvm::ArrayRef<llvm::Value *> operands) {
  return b_.CreateIntrinsic(by_width[lanes_ == 16 ? 2 : lanes_ == 8 ? 1 : 0], {}, operands);
}

}  // namespace kiln::codegen
