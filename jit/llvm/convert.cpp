// Core::convert. Small floats go through f32 by integer sequences, but for f16 where F16C does it: LLVM would call a
// library on levels without.
// Each conversion rounds once: what f32 does not hold is rounded to odd on its way, whose last bit says that more
// followed.
#include "jit/base/small_float.h"
#include "jit/llvm/emitter.h"

namespace kiln::codegen {
namespace {

bool is_float(DType type) { return dtype_info(type).is_float; }
bool is_signed(DType type) { return dtype_info(type).is_signed; }

// Integer arithmetic on the bits of floats, of a scalar or a vector.
class Bits {
 public:
  Bits(KernelState &state, llvm::Value *like)
      : b_(state.b),
        i32_(like->getType()->getWithNewType(b_.getInt32Ty())),
        f32_(like->getType()->getWithNewType(b_.getFloatTy())) {}

  llvm::Value *from_bf16(llvm::Value *x) { return as_float(b_.CreateShl(b_.CreateZExt(x, i32_), 16)); }

  llvm::Value *to_bf16(llvm::Value *x) {
    llvm::Value *bits = as_bits(x), *high = b_.CreateLShr(bits, 16);
    llvm::Value *bias = b_.CreateAdd(b_.CreateAnd(high, integer(1)), integer(0x7fff));  // halves to even
    llvm::Value *rounded = b_.CreateLShr(b_.CreateAdd(bits, bias), 16);
    llvm::Value *nan = b_.CreateOr(high, integer(0x40));
    return b_.CreateSelect(b_.CreateFCmpUNO(x, x), nan, rounded);
  }

  // Of a format whose denormals are normal numbers of f32.
  llvm::Value *from_small(llvm::Value *x, const FloatFormat &format) {
    const auto [bias, shift, top] = Layout(format);
    llvm::Value *wide = b_.CreateZExt(x, i32_), *size = b_.CreateAnd(wide, integer(format.sign() - 1));
    llvm::Value *shifted = b_.CreateShl(size, shift);
    llvm::Value *normal = b_.CreateAdd(shifted, integer((127 - bias) << 23));
    llvm::Value *denormal =
        b_.CreateFSub(as_float(b_.CreateAdd(normal, integer(1u << 23))), as_float(integer((128 - bias) << 23)));
    llvm::Value *is_denormal = b_.CreateICmpULT(size, integer(1u << format.mantissa_bits));
    llvm::Value *bits = b_.CreateSelect(is_denormal, as_bits(denormal), normal);
    if (format.is_finite) {
      bits = b_.CreateSelect(b_.CreateICmpEQ(size, integer(format.nan())), integer(0x7fc00000), bits);
    } else {
      llvm::Value *special = b_.CreateAdd(normal, integer((255 - (top + 127 - bias)) << 23));  // infinity and NaN
      bits = b_.CreateSelect(b_.CreateICmpUGE(size, integer(format.infinity())), special, bits);
    }
    return as_float(b_.CreateOr(bits, b_.CreateShl(b_.CreateAnd(wide, integer(format.sign())), sign_shift(format))));
  }

  llvm::Value *to_small(llvm::Value *x, const FloatFormat &format) {
    const auto [bias, shift, top] = Layout(format);
    llvm::Value *bits = as_bits(x), *sign = b_.CreateAnd(bits, integer(0x80000000u)), *size = b_.CreateXor(bits, sign);
    llvm::Value *magic = integer((151 - bias - static_cast<uint32_t>(format.mantissa_bits)) << 23);
    // Its last place is the smallest denormal's: the addition rounds.
    llvm::Value *denormal = b_.CreateSub(as_bits(b_.CreateFAdd(as_float(size), as_float(magic))), magic);
    llvm::Value *odd = b_.CreateAnd(b_.CreateLShr(size, shift), integer(1));  // halves to even
    llvm::Value *biased = b_.CreateAdd(size, integer(((bias - 127) << 23) + (1u << (shift - 1)) - 1));
    llvm::Value *normal = b_.CreateLShr(b_.CreateAdd(biased, odd), shift);
    llvm::Value *is_denormal = b_.CreateICmpULT(size, integer((128 - bias) << 23));
    llvm::Value *result = b_.CreateSelect(is_denormal, denormal, normal);
    result = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, result, integer(format.converted_overflow()));
    result = b_.CreateSelect(b_.CreateICmpUGT(size, integer(255u << 23)), integer(format.nan()), result);
    return b_.CreateOr(result, b_.CreateLShr(sign, sign_shift(format)));
  }

  // A double as f32, rounded to odd: rounding that again, to two bits fewer at least, is rounding once (S. Boldo and G.
  // Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
  llvm::Value *to_odd(llvm::Value *x) {
    llvm::Value *rounded = b_.CreateFPTrunc(x, f32_), *back = b_.CreateFPExt(rounded, x->getType());
    const auto absolute = [&](llvm::Value *v) { return b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, v); };
    llvm::Value *away = b_.CreateZExt(b_.CreateFCmpOGT(absolute(back), absolute(x)), i32_);
    llvm::Value *inexact = b_.CreateZExt(b_.CreateFCmpONE(back, x), i32_);
    return as_float(b_.CreateOr(b_.CreateSub(as_bits(rounded), away), inexact));
  }

 private:
  struct Layout {
    uint32_t bias, shift, top;
    explicit Layout(const FloatFormat &format)
        : bias(static_cast<uint32_t>(format.bias())),
          shift(23 - static_cast<uint32_t>(format.mantissa_bits)),
          top((1u << format.exponent_bits) - 1) {}
  };
  static uint64_t sign_shift(const FloatFormat &format) {
    return 31 - static_cast<uint64_t>(format.exponent_bits + format.mantissa_bits);
  }
  llvm::Value *integer(uint32_t value) { return llvm::ConstantInt::get(i32_, value); }
  llvm::Value *as_float(llvm::Value *bits) { return b_.CreateBitCast(bits, f32_); }
  llvm::Value *as_bits(llvm::Value *x) { return b_.CreateBitCast(x, i32_); }

  llvm::IRBuilder<> &b_;
  llvm::Type *i32_, *f32_;
};

bool has_instruction(const KernelState &state, DType small) {
  return small == DType::f16 && state.features.set.has(Feature::f16c);
}

// A 64-bit integer as a double that rounds to a small float as it does: bits that a double may lose are gathered in
// one that no small float has.
llvm::Value *gathered(KernelState &state, llvm::Value *x, bool with_sign) {
  auto &b = state.b;
  const auto integer = [&](uint64_t value) { return llvm::ConstantInt::get(x->getType(), value); };
  llvm::Value *size = with_sign ? b.CreateXor(x, b.CreateAShr(x, 63)) : x;
  llvm::Value *low = b.CreateAnd(x, integer(0x7ff)), *high = b.CreateXor(x, low);
  llvm::Value *sticky = b.CreateSelect(b.CreateICmpNE(low, integer(0)), integer(0x800), integer(0));
  llvm::Value *is_large = b.CreateICmpUGE(size, integer(uint64_t{1} << 53));
  return b.CreateSelect(is_large, b.CreateOr(high, sticky), x);
}

llvm::Value *to_small(KernelState &state, llvm::Value *x, DType from, DType to) {
  if (!is_float(from) && size_of(from) == 8) x = gathered(state, x, is_signed(from));
  if (size_of(from) >= 4 && from != DType::f32) {
    x = emit_convert(state, x, from, DType::f64);
    x = Bits(state, x).to_odd(x);
  } else {
    x = emit_convert(state, x, from, DType::f32);
  }
  if (has_instruction(state, to)) {
    llvm::Value *half = state.b.CreateFPTrunc(x, x->getType()->getWithNewType(state.b.getHalfTy()));
    return state.b.CreateBitCast(half, x->getType()->getWithNewType(type_of(state, to)));
  }
  Bits bits(state, x);
  x = to == DType::bf16 ? bits.to_bf16(x) : bits.to_small(x, small_format(to));
  return state.b.CreateTrunc(x, x->getType()->getWithNewType(type_of(state, to)));
}

}  // namespace

llvm::Value *emit_convert(KernelState &state, llvm::Value *x, DType from, DType to) {
  auto &b = state.b;
  if (from == to) return x;
  if (has_instruction(state, from)) {
    llvm::Value *half = b.CreateBitCast(x, x->getType()->getWithNewType(b.getHalfTy()));
    return emit_convert(state, b.CreateFPExt(half, x->getType()->getWithNewType(b.getFloatTy())), DType::f32, to);
  }
  if (is_small_float(from)) {
    Bits bits(state, x);
    x = from == DType::bf16 ? bits.from_bf16(x) : bits.from_small(x, small_format(from));
    return emit_convert(state, x, DType::f32, to);
  }
  if (is_small_float(to)) return to_small(state, x, from, to);
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
