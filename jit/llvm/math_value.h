// Inside math*.cpp only: values under construction with operators, so that an algorithm reads as its formula.
#pragma once
#include <llvm/IR/Intrinsics.h>

#include <limits>
#include <span>

#include "jit/llvm/math.h"

namespace kiln::codegen::math {

// An LLVM value, float, integer or i1, scalar or vector. Literals take the type of the other operand.
class Num {
 public:
  Num(MathBuilder &builder, llvm::Value *value) : builder_(&builder), value_(value) {}
  llvm::Value *value() const { return value_; }
  MathBuilder &builder() const { return *builder_; }
  llvm::IRBuilder<> &ir() const { return builder_->ir; }
  llvm::Type *type() const { return value_->getType(); }
  bool is_float() const { return type()->isFPOrFPVectorTy(); }
  bool is_double() const { return type()->getScalarType()->isDoubleTy(); }
  Num with(llvm::Value *value) const { return {*builder_, value}; }
  Num literal(double number) const {
    return with(is_float() ? llvm::ConstantFP::get(type(), number)
                           : llvm::ConstantInt::get(type(), static_cast<uint64_t>(static_cast<int64_t>(number)), true));
  }
  // This type with another element, lane for lane.
  llvm::Type *type_of(llvm::Type *element) const { return type()->getWithNewType(element); }

 private:
  MathBuilder *builder_;
  llvm::Value *value_;
};

// What a formula mixes with a Num: another Num, or a number.
struct Operand {
  Operand(const Num &value) : num(&value) {}
  Operand(double value) : literal(value) {}
  Num as(const Num &like) const { return num ? *num : like.literal(literal); }
  const Num *num = nullptr;
  double literal = 0;
};

#define KILN_ARITHMETIC(symbol, float_op, integer_op)                                                      \
  inline Num operator symbol(const Num &a, const Operand &b) {                                             \
    llvm::Value *right = b.as(a).value();                                                                  \
    return a.with(a.is_float() ? a.ir().float_op(a.value(), right) : a.ir().integer_op(a.value(), right)); \
  }                                                                                                        \
  inline Num operator symbol(double a, const Num &b) { return b.literal(a) symbol b; }
KILN_ARITHMETIC(+, CreateFAdd, CreateAdd)
KILN_ARITHMETIC(-, CreateFSub, CreateSub)
KILN_ARITHMETIC(*, CreateFMul, CreateMul)
#undef KILN_ARITHMETIC
inline Num operator/(const Num &a, const Operand &b) { return a.with(a.ir().CreateFDiv(a.value(), b.as(a).value())); }
inline Num operator/(double a, const Num &b) { return b.literal(a) / b; }
inline Num operator<<(const Num &a, int bits) {
  return a.with(a.ir().CreateShl(a.value(), static_cast<uint64_t>(bits)));
}
inline Num operator>>(const Num &a, int bits) {
  return a.with(a.ir().CreateAShr(a.value(), static_cast<uint64_t>(bits)));
}
inline Num operator&(const Num &a, const Num &b) { return a.with(a.ir().CreateAnd(a.value(), b.value())); }
inline Num operator|(const Num &a, const Num &b) { return a.with(a.ir().CreateOr(a.value(), b.value())); }
inline Num operator^(const Num &a, const Num &b) { return a.with(a.ir().CreateXor(a.value(), b.value())); }
// Comparisons of floats: false where either is NaN, but != then is true.
inline Num operator<(const Num &a, const Operand &b) {
  return a.with(a.ir().CreateFCmpOLT(a.value(), b.as(a).value()));
}
inline Num operator>(const Num &a, const Operand &b) {
  return a.with(a.ir().CreateFCmpOGT(a.value(), b.as(a).value()));
}
inline Num operator>=(const Num &a, const Operand &b) {
  return a.with(a.ir().CreateFCmpOGE(a.value(), b.as(a).value()));
}
inline Num operator==(const Num &a, const Operand &b) {
  return a.with(a.ir().CreateFCmpOEQ(a.value(), b.as(a).value()));
}
inline Num operator!=(const Num &a, const Operand &b) {
  return a.with(a.ir().CreateFCmpUNE(a.value(), b.as(a).value()));
}

inline Num select(const Num &condition, const Num &a, const Operand &b) {
  return a.with(a.ir().CreateSelect(condition.value(), a.value(), b.as(a).value()));
}
inline Num select(const Num &condition, double a, const Num &b) { return select(condition, b.literal(a), b); }
inline Num unary(llvm::Intrinsic::ID intrinsic, const Num &a) {
  return a.with(a.ir().CreateUnaryIntrinsic(intrinsic, a.value()));
}
inline Num abs(const Num &a) { return unary(llvm::Intrinsic::fabs, a); }
inline Num sqrt(const Num &a) { return unary(llvm::Intrinsic::sqrt, a); }
inline Num copysign(const Num &magnitude, const Num &sign) {
  return sign.with(sign.ir().CreateBinaryIntrinsic(llvm::Intrinsic::copysign, magnitude.value(), sign.value()));
}
// NaN stays NaN in these two (and they are one instruction on x86).
inline Num at_most(const Num &a, double limit) { return select(a > limit, limit, a); }
inline Num at_least(const Num &a, double limit) { return select(a < limit, limit, a); }
inline Num multiply_add(const Num &a, const Operand &b, const Operand &c) {
  return a.with(emit_multiply_add(a.builder(), a.value(), b.as(a).value(), c.as(a).value()));
}
// coefficients[0] + coefficients[1] x + ..., by Horner's rule.
inline Num polynomial(const Num &x, std::span<const double> coefficients) {
  Num sum = x.literal(coefficients.back());
  for (size_t i = coefficients.size() - 1; i-- > 0;) sum = multiply_add(sum, x, coefficients[i]);
  return sum;
}

inline Num narrowed(const Num &x) { return x.with(x.ir().CreateFPTrunc(x.value(), x.type_of(x.ir().getFloatTy()))); }
inline Num widened(const Num &x) { return x.with(x.ir().CreateFPExt(x.value(), x.type_of(x.ir().getDoubleTy()))); }
// What a function of f64 makes of f64 or f32; it is told whether f32's precision is enough.
inline Num in_f64(const Num &x, Num (*function)(const Num &x, bool single)) {
  return x.is_double() ? function(x, false) : narrowed(function(widened(x), true));
}

// Whether any lane of an i1 is set, as one i1.
llvm::Value *any(const Num &condition);

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

// IEEE binary32 and binary64.
struct Format {
  int bits, mantissa_bits, exponent_bias;
  double smallest_normal;
  double magic;  // 1.5 * 2^mantissa_bits: x + magic is x rounded to an integer, which its lowest bits then are
};
inline constexpr Format binary32{32, 23, 127, 0x1p-126, 0x1.8p23};
inline constexpr Format binary64{64, 52, 1023, 0x1p-1022, 0x1.8p52};
inline const Format &format_of(const Num &x) { return x.is_double() ? binary64 : binary32; }

inline Num bits_of(const Num &x) {
  llvm::Type *integer = x.type_of(x.ir().getIntNTy(static_cast<unsigned>(format_of(x).bits)));
  return x.with(x.ir().CreateBitCast(x.value(), integer));
}
inline Num float_of(const Num &bits, const Num &like) {
  return like.with(like.ir().CreateBitCast(bits.value(), like.type()));
}
// An integer held in a float as x + magic, as an integer.
inline Num integer_of(const Num &plus_magic) {
  return bits_of(plus_magic) - bits_of(plus_magic.literal(format_of(plus_magic).magic));
}
// 2^n for an integer n in the range of normal exponents.
inline Num power_of_two(const Num &n, const Num &like) {
  const Format &format = format_of(like);
  return float_of((n + format.exponent_bias) << format.mantissa_bits, like);
}

// An unevaluated sum of two numbers, after Dekker, "A floating-point technique for extending the available precision".
struct Double2 {
  Num high, low;
};
// For |a| >= |b|, or a = 0.
inline Double2 quick_sum(const Num &a, const Num &b) {
  Num sum = a + b;
  return {sum, b - (sum - a)};
}

// The same for any two: Knuth, "The Art of Computer Programming", volume 2.
inline Double2 two_sum(const Num &a, const Num &b) {
  Num sum = a + b, of_b = sum - a;
  return {sum, (a - (sum - of_b)) + (b - of_b)};
}

inline Double2 select(const Num &condition, const Double2 &a, const Double2 &b) {
  return {select(condition, a.high, b.high), select(condition, a.low, b.low)};
}

// math.cpp
Double2 two_product(const Num &a, const Num &b);
Double2 quotient(const Double2 &a, const Double2 &b);  // not beyond 2^900, nor of infinities
Num rsqrt(const Num &x);
Num floor(const Num &x);
Num round_even(const Num &x);
// math_exp.cpp
Num exp_minus_one(const Num &r);                     // for |r| <= ln 2 / 2
Num times_power_of_two(const Num &x, const Num &n);  // n an integer; the result may be subnormal, 0 or infinite
Num exp(const Num &x);
Num exp2(const Num &x);
Num expm1(const Num &x);
Num expm1_over(const Num &x,
               int bits);  // 2^-bits (exp(x) - 1), which overflows later; the last bits of a subnormal x go
Num tanh(const Num &x);
Num erf(const Num &x);
Num erf_near_zero(const Num &x);                              // for |x| < 0.93
Num exp_of_sum(const Double2 &exponent, const Num &divisor);  // exp(high + low) / divisor
// math_log.cpp
// x = 2^exponent (1 + fraction) with 1 + fraction in [sqrt(1/2), sqrt(2)), for positive finite x.
struct Split {
  Num exponent, fraction;
};
Split split(const Num &x);
// Puts in what a logarithm is for arguments that are not positive and finite.
Num with_special_cases(const Num &x, const Num &logarithm);
Num log(const Num &x);
// log(high + low) + powers log(2) for a low of less than the last place of the other.
Num log_of_sum(const Double2 &sum, const Num &powers);
Num log1p(const Num &x);
Num log2(const Num &x);
Num log10(const Num &x);
// math_pow.cpp
Num pow(const Num &x, const Num &y);
// math_remainder.cpp
Num remainder(const Num &x, const Num &y);
// math_trig.cpp
Num sin(const Num &x);
Num cos(const Num &x);
Num tan(const Num &x);
// sin(r + rest) and cos(r + rest) for |r| <= pi/4: each is a large term and a small one, so that little but the last
// rounding counts. Of r alone the small terms are 0; with the coefficients of f64 or f32.
struct SineCosine {
  Double2 sine, cosine;
};
SineCosine sine_and_cosine(const Num &r, const Num &rest);
SineCosine sine_and_cosine(const Num &r, bool wide);
// math_erf.cpp
Num erfc(const Num &x);
Num erfinv(const Num &x);
// math_gamma.cpp
Num lgamma(const Num &x);
Num digamma(const Num &x);
// math_arc.cpp
Num atan(const Num &x);
Num atan2(const Num &y, const Num &x);
Num asin(const Num &x);
Num acos(const Num &x);
// math_hyperbolic.cpp
Num sinh(const Num &x);
Num cosh(const Num &x);
Num asinh(const Num &x);
Num acosh(const Num &x);
Num atanh(const Num &x);

}  // namespace kiln::codegen::math
