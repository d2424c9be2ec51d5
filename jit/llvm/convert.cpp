// Core::convert. f16 and bf16 go through f32 by integer sequences: LLVM would call a library on levels without F16C.
#include "jit/llvm/emitter.h"

namespace kiln::codegen {
namespace {

bool is_half(DType type) { return type == DType::f16 || type == DType::bf16; }
bool is_float(DType type) { return dtype_info(type).is_float; }
bool is_signed(DType type) { return type != DType::u8 && type != DType::boolean; }

// Integer arithmetic on the bits of floats, of a scalar or a vector.
class Bits {
 public:
  Bits(KernelState &state, llvm::Value *like)
      : b_(state.b),
        i16_(like->getType()->getWithNewType(b_.getInt16Ty())),
        i32_(like->getType()->getWithNewType(b_.getInt32Ty())),
        f32_(like->getType()->getWithNewType(b_.getFloatTy())) {}

  llvm::Value *from_bf16(llvm::Value *x) { return as_float(b_.CreateShl(b_.CreateZExt(x, i32_), 16)); }

  llvm::Value *to_bf16(llvm::Value *x) {
    llvm::Value *bits = b_.CreateBitCast(x, i32_), *high = b_.CreateLShr(bits, 16);
    llvm::Value *bias = b_.CreateAdd(b_.CreateAnd(high, integer(1)), integer(0x7fff));  // halves to even
    llvm::Value *rounded = b_.CreateLShr(b_.CreateAdd(bits, bias), 16);
    llvm::Value *nan = b_.CreateOr(high, integer(0x40));
    return b_.CreateTrunc(b_.CreateSelect(b_.CreateFCmpUNO(x, x), nan, rounded), i16_);
  }

  llvm::Value *from_f16(llvm::Value *x) {
    llvm::Value *wide = b_.CreateZExt(x, i32_);
    llvm::Value *shifted = b_.CreateShl(b_.CreateAnd(wide, integer(0x7fff)), 13);
    llvm::Value *exponent = b_.CreateAnd(shifted, integer(0x7c00u << 13));
    llvm::Value *normal = b_.CreateAdd(shifted, integer((127u - 15) << 23));
    llvm::Value *special = b_.CreateAdd(normal, integer((128u - 16) << 23));  // infinity and NaN
    llvm::Value *denormal =
        b_.CreateFSub(as_float(b_.CreateAdd(normal, integer(1u << 23))), as_float(integer(113u << 23)));
    llvm::Value *bits = b_.CreateSelect(b_.CreateICmpEQ(exponent, integer(0x7c00u << 13)), special, normal);
    bits = b_.CreateSelect(b_.CreateICmpEQ(exponent, integer(0)), b_.CreateBitCast(denormal, i32_), bits);
    return as_float(b_.CreateOr(bits, b_.CreateShl(b_.CreateAnd(wide, integer(0x8000)), 16)));
  }

  llvm::Value *to_f16(llvm::Value *x) {
    llvm::Value *bits = b_.CreateBitCast(x, i32_), *sign = b_.CreateAnd(bits, integer(0x80000000u));
    llvm::Value *size = b_.CreateXor(bits, sign);
    const uint32_t infinity = 255u << 23, too_large = (127u + 16) << 23, smallest_normal = 113u << 23;
    llvm::Value *special = b_.CreateSelect(b_.CreateICmpUGT(size, integer(infinity)), integer(0x7e00), integer(0x7c00));
    llvm::Value *magic = integer(((127u - 15) + (23 - 10) + 1) << 23);  // its addition rounds denormals
    llvm::Value *denormal = b_.CreateSub(b_.CreateBitCast(b_.CreateFAdd(as_float(size), as_float(magic)), i32_), magic);
    llvm::Value *odd = b_.CreateAnd(b_.CreateLShr(size, 13), integer(1));  // halves to even
    llvm::Value *biased = b_.CreateAdd(size, integer(((15u - 127) << 23) + 0xfff));
    llvm::Value *normal = b_.CreateLShr(b_.CreateAdd(biased, odd), 13);
    llvm::Value *result = b_.CreateSelect(b_.CreateICmpULT(size, integer(smallest_normal)), denormal, normal);
    result = b_.CreateSelect(b_.CreateICmpUGE(size, integer(too_large)), special, result);
    return b_.CreateTrunc(b_.CreateOr(result, b_.CreateLShr(sign, 16)), i16_);
  }

 private:
  llvm::Value *integer(uint32_t value) { return llvm::ConstantInt::get(i32_, value); }
  llvm::Value *as_float(llvm::Value *bits) { return b_.CreateBitCast(bits, f32_); }

  llvm::IRBuilder<> &b_;
  llvm::Type *i16_, *i32_, *f32_;
};

}  // namespace

llvm::Value *emit_convert(KernelState &state, llvm::Value *x, DType from, DType to) {
  auto &b = state.b;
  if (from == to) return x;
  if (is_half(from)) {
    Bits bits(state, x);
    return emit_convert(state, from == DType::f16 ? bits.from_f16(x) : bits.from_bf16(x), DType::f32, to);
  }
  if (is_half(to)) {
    x = emit_convert(state, x, from, DType::f32);
    Bits bits(state, x);
    return to == DType::f16 ? bits.to_f16(x) : bits.to_bf16(x);
  }
  llvm::Type *type = x->getType()->getWithNewType(type_of(state, to));
  llvm::Value *zero = llvm::Constant::getNullValue(x->getType());
  if (to == DType::boolean) return is_float(from) ? b.CreateFCmpUNE(x, zero) : b.CreateICmpNE(x, zero);
  if (is_float(from) && is_float(to)) return b.CreateFPCast(x, type);
  if (is_float(from)) {
    const auto saturating = is_signed(to) ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
    return b.CreateIntrinsic(saturating, {type, x->getType()}, {x});
  }
  if (is_float(to)) return is_signed(from) ? b.CreateSIToFP(x, type) : b.CreateUIToFP(x, type);
  return b.CreateIntCast(x, type, is_signed(from));
}

}  // namespace kiln::codegen
