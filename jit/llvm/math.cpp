#include "jit/llvm/math.h"

#include "jit/llvm/math_value.h"

namespace kiln::codegen {
namespace math {

// x + 2^mantissa_bits has no room for a fraction, so the addition rounds to even; |x| above that is an integer already.
Num round_even(const Num &x) {
  if (x.builder().rounding) return unary(llvm::Intrinsic::roundeven, x);
  const double limit = x.is_double() ? 0x1p52 : 0x1p23;
  Num rounded = copysign((abs(x) + limit) - limit, x);
  return select(abs(x) < limit, rounded, x);
}

Num floor(const Num &x) {
  if (x.builder().rounding) return unary(llvm::Intrinsic::floor, x);
  Num rounded = round_even(x);
  return select(rounded > x, rounded - 1, rounded);
}

Num ceil(const Num &x) {
  if (x.builder().rounding) return unary(llvm::Intrinsic::ceil, x);
  Num rounded = round_even(x);
  return select(rounded < x, copysign(rounded + 1, x), rounded);  // above -1 to -0
}

Num trunc(const Num &x) {
  if (x.builder().rounding) return unary(llvm::Intrinsic::trunc, x);
  return copysign(floor(abs(x)), x);
}

Double2 two_product(const Num &a, const Num &b) {
  Num product = a * b;
  if (a.builder().fma) return {product, multiply_add(a, b, 0.0 - product)};
  auto halves = [](const Num &x) {  // Veltkamp's splitting: half of the bits each
    Num big = x * (x.is_double() ? 0x1p27 + 1 : 0x1p12 + 1);
    Num high = big - (big - x);
    return Double2{high, x - high};
  };
  Double2 x = halves(a), y = halves(b);
  return {product, x.low * y.low - (((product - x.high * y.high) - x.low * y.high) - x.high * y.low)};
}

Double2 quotient(const Double2 &a, const Double2 &b) {
  Double2 above = quick_sum(a.high, a.low), below = quick_sum(b.high, b.low);
  Num high = above.high / below.high;
  Double2 back = two_product(high, below.high);
  Num left = ((above.high - back.high) - back.low) + (above.low - high * below.low);
  return {high, left / below.high};
}

// The root halves the quotient's error, which division would leave whole: at most 1 ulp together, for 1.5. Of f32 the
// argument is scaled, so that the quotient is a normal number.
Num rsqrt(const Num &x) {
  if (x.is_double()) return 1.0 / sqrt(x);
  Num small = abs(x) < 1.0;
  Num quotient = 1.0 / (x * select(small, 0x1p26, x.literal(0x1p-26)));
  Num root = sqrt(quotient) * select(small, 0x1p13, x.literal(0x1p-13));
  Num with_signs = select(x == 0.0, quotient, root);  // an infinity's
  return select(x < 0.0, not_a_number, with_signs);   // of -infinity, too
}

llvm::Value *any(const Num &condition) {
  auto *vector = llvm::dyn_cast<llvm::FixedVectorType>(condition.type());
  if (!vector) return condition.value();
  llvm::IRBuilder<> &ir = condition.ir();
  llvm::Value *mask = ir.CreateBitCast(condition.value(), ir.getIntNTy(vector->getNumElements()));
  return ir.CreateICmpNE(mask, llvm::ConstantInt::get(mask->getType(), 0));
}

}  // namespace math

llvm::Value *emit_multiply_add(MathBuilder &b, llvm::Value *a, llvm::Value *x, llvm::Value *c) {
  if (b.fma) return b.ir.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, x, c});
  return b.ir.CreateFAdd(b.ir.CreateFMul(a, x), c);
}

llvm::Value *emit_math(MathBuilder &b, kernel::Core op, llvm::Value *x_value, llvm::Value *y) {
  using kernel::Core;
  math::Num x(b, x_value);
  switch (op) {
#define CORE_OP(name, operands, group, cost, kind, meaning)
#define CORE_FUNCTION(name, cost, meaning) \
  case Core::name:                         \
    return math::name(x).value();
#include "jit/kernel/core_ops.def"
#undef CORE_OP
    case Core::atan2:
      return math::atan2(x, {b, y}).value();
    case Core::pow:
      return math::pow(x, {b, y}).value();
    case Core::rem:
      return math::remainder(x, {b, y}).value();
    case Core::rsqrt:
      return math::rsqrt(x).value();
    case Core::floor:
      return math::floor(x).value();
    case Core::ceil:
      return math::ceil(x).value();
    case Core::trunc:
      return math::trunc(x).value();
    case Core::round:
      return math::round_even(x).value();
    case Core::constant:
    case Core::load:
    case Core::index:
    case Core::search:
    case Core::carrier:
    case Core::accumulator:
    case Core::convert:
    case Core::add:
    case Core::sub:
    case Core::mul:
    case Core::div:
    case Core::neg:
    case Core::abs:
    case Core::min:
    case Core::max:
    case Core::sqrt:
    case Core::bit_and:
    case Core::bit_or:
    case Core::bit_xor:
    case Core::bit_not:
    case Core::shift_left:
    case Core::shift_right:
    case Core::eq:
    case Core::ne:
    case Core::lt:
    case Core::le:
    case Core::gt:
    case Core::ge:
    case Core::logical_and:
    case Core::logical_or:
    case Core::logical_not:
    case Core::select:
    case Core::in_range:
      break;
  }
  assert(false && "not a math operation");
  return x_value;
}

}  // namespace kiln::codegen
