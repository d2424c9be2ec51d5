// Accesses of vectors under a mask, and to scattered addresses: the forms of the table in features.h, in pieces that
// fit registers.
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>

#include "jit/llvm/emitter.h"

namespace kiln::codegen {
namespace {

// A vector access, cut into pieces of at most a register.
class MaskedAccess {
 public:
  MaskedAccess(KernelState &state, llvm::Type *type, llvm::Value *pointer, llvm::Value *mask)
      : state_(state),
        b_(state.b),
        type_(llvm::cast<llvm::FixedVectorType>(type)),
        pointer_(pointer),
        mask_(mask),
        element_bytes_(type->getScalarSizeInBits() / 8),
        piece_(std::min(type_->getNumElements(), state.features.vector_bits / 8 / element_bytes_)) {}

  llvm::Value *load(llvm::Value *otherwise) {
    return in_pieces([&](unsigned first) { return load_piece(first, part(otherwise, first)); });
  }
  void store(llvm::Value *elements) {
    for (unsigned first = 0; first < type_->getNumElements(); first += piece_)
      store_piece(first, part(elements, first));
  }
  llvm::Value *gather(llvm::Value *otherwise) {
    return in_pieces([&](unsigned first) {
      return b_.CreateMaskedGather(piece_type(), part(pointer_, first), alignment(), part(mask_, first),
                                   part(otherwise, first));
    });
  }
  void scatter(llvm::Value *elements) {
    for (unsigned first = 0; first < type_->getNumElements(); first += piece_)
      b_.CreateMaskedScatter(part(elements, first), part(pointer_, first), alignment(), part(mask_, first));
  }

 private:
  llvm::Align alignment() const { return llvm::Align(element_bytes_); }
  llvm::FixedVectorType *piece_type() const { return llvm::FixedVectorType::get(type_->getElementType(), piece_); }
  llvm::Value *address(unsigned first) {
    return first == 0 ? pointer_ : b_.CreateConstGEP1_64(type_->getElementType(), pointer_, first);
  }

  llvm::Value *part(llvm::Value *vector, unsigned first) {
    if (piece_ == type_->getNumElements()) return vector;
    return b_.CreateShuffleVector(vector, lanes(first, piece_));
  }
  template <class Piece>
  llvm::Value *in_pieces(const Piece &piece) {
    llvm::Value *all = piece(0);
    for (unsigned count = piece_; count < type_->getNumElements(); count += piece_)
      all = joined(all, count, piece(count));
    return all;
  }
  // A shuffle takes two vectors of one type, so the piece becomes as long as what is there.
  llvm::Value *joined(llvm::Value *all, unsigned count, llvm::Value *piece) {
    if (count > piece_) {
      llvm::SmallVector<int, 32> longer = lanes(0, piece_);
      longer.resize(count, llvm::PoisonMaskElem);
      piece = b_.CreateShuffleVector(piece, longer);
    }
    return b_.CreateShuffleVector(all, piece, lanes(0, count + piece_));
  }
  static llvm::SmallVector<int, 32> lanes(unsigned first, unsigned count) {
    llvm::SmallVector<int, 32> numbers;
    for (unsigned lane = first; lane < first + count; ++lane) numbers.push_back(static_cast<int>(lane));
    return numbers;
  }

  llvm::Value *load_piece(unsigned first, llvm::Value *otherwise) {
    llvm::Value *mask = part(mask_, first), *pointer = address(first);
    if (is_known(mask, true)) return b_.CreateAlignedLoad(piece_type(), pointer, alignment());
    if (state_.features.masks != Features::Masks::vectors)
      return b_.CreateMaskedLoad(piece_type(), pointer, alignment(), mask, otherwise);
    llvm::Value *loaded =
        b_.CreateIntrinsic(choose(llvm::Intrinsic::x86_avx_maskload_ps, llvm::Intrinsic::x86_avx_maskload_ps_256,
                                  llvm::Intrinsic::x86_avx_maskload_pd, llvm::Intrinsic::x86_avx_maskload_pd_256),
                           {}, {pointer, sign_bits(first)});
    loaded = b_.CreateBitCast(loaded, piece_type());
    const auto *constant = llvm::dyn_cast<llvm::Constant>(otherwise);  // false lanes are 0
    if (constant && constant->isNullValue()) return loaded;
    llvm::Value *signs = sign_bits(first);
    return b_.CreateSelect(b_.CreateICmpSLT(signs, llvm::Constant::getNullValue(signs->getType())), loaded, otherwise);
  }

  void store_piece(unsigned first, llvm::Value *elements) {
    llvm::Value *mask = part(mask_, first), *pointer = address(first);
    if (is_known(mask, false)) return;
    if (is_known(mask, true)) {
      b_.CreateAlignedStore(elements, pointer, alignment());
    } else if (state_.features.masks != Features::Masks::vectors) {
      b_.CreateMaskedStore(elements, pointer, alignment(), mask);
    } else {
      auto *floats = llvm::FixedVectorType::get(element_bytes_ == 4 ? b_.getFloatTy() : b_.getDoubleTy(), piece_);
      b_.CreateIntrinsic(choose(llvm::Intrinsic::x86_avx_maskstore_ps, llvm::Intrinsic::x86_avx_maskstore_ps_256,
                                llvm::Intrinsic::x86_avx_maskstore_pd, llvm::Intrinsic::x86_avx_maskstore_pd_256),
                         {}, {pointer, sign_bits(first), b_.CreateBitCast(elements, floats)});
    }
  }

  static bool is_known(const llvm::Value *mask, bool value) {
    const auto *constant = llvm::dyn_cast<llvm::Constant>(mask);
    return constant && (value ? constant->isAllOnesValue() : constant->isNullValue());
  }
  // By the size of elements and of the vector.
  llvm::Intrinsic::ID choose(llvm::Intrinsic::ID ps, llvm::Intrinsic::ID ps_256, llvm::Intrinsic::ID pd,
                             llvm::Intrinsic::ID pd_256) const {
    const bool whole_register = piece_ * element_bytes_ == 32;
    return element_bytes_ == 4 ? whole_register ? ps_256 : ps : whole_register ? pd_256 : pd;
  }
  llvm::Value *sign_bits(unsigned first) {
    if (!wide_) wide_ = widened(mask_, 8);
    return part(wide_, first);
  }
  // Lanes as wide as the elements, all ones or 0, from where the mask begins: LLVM keeps a vector of i1 that no
  // comparison beside it made in 16 bits a lane, and packs what it meets.
  llvm::Value *widened(llvm::Value *mask, int depth) {
    llvm::Type *lane = b_.getIntNTy(8 * element_bytes_);
    auto *logic = llvm::dyn_cast<llvm::BinaryOperator>(mask);
    if (logic && depth > 0)
      return b_.CreateBinOp(logic->getOpcode(), widened(logic->getOperand(0), depth - 1),
                            widened(logic->getOperand(1), depth - 1));
    if (llvm::Value *uniform = llvm::getSplatValue(mask))
      return b_.CreateVectorSplat(type_->getNumElements(), b_.CreateSExt(uniform, lane));
    auto *shuffle = llvm::dyn_cast<llvm::ShuffleVectorInst>(mask);
    if (shuffle && depth > 0 && llvm::isa<llvm::PoisonValue>(shuffle->getOperand(1)))
      return b_.CreateShuffleVector(widened(shuffle->getOperand(0), depth - 1), shuffle->getShuffleMask());
    return b_.CreateSExt(mask, mask->getType()->getWithNewType(lane));
  }

  KernelState &state_;
  llvm::IRBuilder<> &b_;
  llvm::FixedVectorType *type_;
  llvm::Value *pointer_, *mask_;
  llvm::Value *wide_ = nullptr;  // sign_bits, of all lanes
  const unsigned element_bytes_, piece_;
};

}  // namespace

llvm::Value *emit_masked_load(KernelState &state, llvm::Type *type, llvm::Value *pointer, llvm::Value *mask,
                              llvm::Value *otherwise) {
  return MaskedAccess(state, type, pointer, mask).load(otherwise);
}
void emit_masked_store(KernelState &state, llvm::Value *elements, llvm::Value *pointer, llvm::Value *mask) {
  MaskedAccess(state, elements->getType(), pointer, mask).store(elements);
}
llvm::Value *emit_gather(KernelState &state, llvm::Type *type, llvm::Value *pointers, llvm::Value *mask,
                         llvm::Value *otherwise) {
  return MaskedAccess(state, type, pointers, mask).gather(otherwise);
}
void emit_scatter(KernelState &state, llvm::Value *elements, llvm::Value *pointers, llvm::Value *mask) {
  MaskedAccess(state, elements->getType(), pointers, mask).scatter(elements);
}

}  // namespace kiln::codegen
