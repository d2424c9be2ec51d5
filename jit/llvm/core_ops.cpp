// The core ops that are no leaves, on scalars and vectors. Their meanings are the rows of core_ops.def.
#include <algorithm>

#include "jit/base/kernel_args.h"
#include "jit/llvm/emitter.h"

namespace kiln::codegen {
namespace {

using kernel::Core;

class CoreEmitter {
 public:
  CoreEmitter(KernelState &state, Core op, CoreTypes types, const Values &operands, llvm::Value *active)
      : state_(state), b_(state.b), op_(op), types_(types), active_(active) {
    unsigned width = 1;
    for (llvm::Value *operand : operands)
      if (auto *vector = llvm::dyn_cast<llvm::FixedVectorType>(operand->getType())) width = vector->getNumElements();
    for (llvm::Value *operand : operands) operands_.push_back(splat(state, operand, width));
  }

  // The kernel's verifier has held the types to core_ops.def: an operation of floats has no integers, and so on.
  llvm::Value *emit() {
    const DType type = types_.operand;
    const bool is_float = dtype_info(type).is_float, is_signed = dtype_info(type).is_signed;
    llvm::Value *x = operands_.front(), *y = operands_.back();
    if (op_ == Core::convert) return emit_convert(state_, x, type, types_.result);
    if (op_ == Core::select) return b_.CreateSelect(x, operands_[1], y);
    if (is_small_float(type)) return refuse();
    switch (op_) {
      case Core::add:
        return is_float ? b_.CreateFAdd(x, y) : b_.CreateAdd(x, y);
      case Core::sub:
        return is_float ? b_.CreateFSub(x, y) : b_.CreateSub(x, y);
      case Core::mul:
        return is_float ? b_.CreateFMul(x, y) : b_.CreateMul(x, y);
      case Core::div:
        return is_float ? b_.CreateFDiv(x, y) : divide(is_signed, false);
      case Core::rem:
        return is_float ? function(x, y) : divide(is_signed, true);
      case Core::neg:
        return is_float ? b_.CreateFNeg(x) : b_.CreateNeg(x);
      case Core::abs:
        if (is_float) return b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
        return is_signed ? b_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, x, b_.getFalse()) : x;
      case Core::min:
        return b_.CreateBinaryIntrinsic(is_float    ? llvm::Intrinsic::minimum
                                        : is_signed ? llvm::Intrinsic::smin
                                                    : llvm::Intrinsic::umin,
                                        x, y);
      case Core::max:
        return b_.CreateBinaryIntrinsic(is_float    ? llvm::Intrinsic::maximum
                                        : is_signed ? llvm::Intrinsic::smax
                                                    : llvm::Intrinsic::umax,
                                        x, y);
      case Core::pow:
        return is_float ? function(x, y) : power(is_signed);
      case Core::floor:
      case Core::ceil:
      case Core::trunc:
      case Core::round:
        return is_float ? function(x, y) : x;
      case Core::sqrt:
        return b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x);
      case Core::rsqrt:
      case Core::atan2:
#define CORE_OP(name, operands, group, cost, kind, meaning)
#define CORE_FUNCTION(name, cost, meaning) case Core::name:
#include "jit/kernel/core_ops.def"
#undef CORE_OP
        return function(x, y);
      case Core::eq:
        return is_float ? b_.CreateFCmpOEQ(x, y) : b_.CreateICmpEQ(x, y);
      case Core::ne:
        return is_float ? b_.CreateFCmpUNE(x, y) : b_.CreateICmpNE(x, y);
      case Core::lt:
        if (is_float) return b_.CreateFCmpOLT(x, y);
        return is_signed ? b_.CreateICmpSLT(x, y) : b_.CreateICmpULT(x, y);
      case Core::le:
        if (is_float) return b_.CreateFCmpOLE(x, y);
        return is_signed ? b_.CreateICmpSLE(x, y) : b_.CreateICmpULE(x, y);
      case Core::gt:
        if (is_float) return b_.CreateFCmpOGT(x, y);
        return is_signed ? b_.CreateICmpSGT(x, y) : b_.CreateICmpUGT(x, y);
      case Core::ge:
        if (is_float) return b_.CreateFCmpOGE(x, y);
        return is_signed ? b_.CreateICmpSGE(x, y) : b_.CreateICmpUGE(x, y);
      case Core::bit_and:
      case Core::logical_and:
        return b_.CreateAnd(x, y);
      case Core::bit_or:
      case Core::logical_or:
        return b_.CreateOr(x, y);
      case Core::bit_xor:
        return b_.CreateXor(x, y);
      case Core::bit_not:
      case Core::logical_not:
        return b_.CreateNot(x);
      case Core::shift_left:
        return shift(llvm::Instruction::Shl, constant(x, 0));
      case Core::shift_right:
        return is_signed ? shift(llvm::Instruction::AShr, sign_of(x)) : shift(llvm::Instruction::LShr, constant(x, 0));
      case Core::in_range: {
        llvm::Value *inside = b_.CreateAnd(b_.CreateICmpSGE(x, constant(x, 0)), b_.CreateICmpSLT(x, y));
        emit_error(state_, b_.CreateNot(inside), active_, KILN_ERROR_INDEX_OUT_OF_RANGE);
        return inside;
      }
      case Core::convert:
      case Core::select:
      case Core::constant:
      case Core::load:
      case Core::search:
      case Core::index:
      case Core::carrier:
      case Core::accumulator:
        break;  // above, and by whoever emits a body
    }
    return refuse();
  }

 private:
  llvm::Value *function(llvm::Value *x, llvm::Value *y) {
    MathBuilder math = math_builder(state_);
    return emit_math(math, op_, x, y);
  }

  llvm::Constant *constant(llvm::Value *like, int64_t value) {
    return llvm::ConstantInt::get(like->getType(), static_cast<uint64_t>(value), true);
  }

  // In LLVM a shift by the width or more is no value. Less than 0 is more than the width, taken without a sign.
  llvm::Value *shift(llvm::Instruction::BinaryOps instruction, llvm::Value *beyond) {
    llvm::Value *x = operands_[0], *y = operands_[1];
    llvm::Value *within = b_.CreateICmpULT(y, constant(y, x->getType()->getScalarSizeInBits()));
    llvm::Value *shifted = b_.CreateBinOp(instruction, x, b_.CreateSelect(within, y, constant(y, 0)));
    return b_.CreateSelect(within, shifted, beyond);
  }

  llvm::Value *sign_of(llvm::Value *x) {  // 0 or -1
    return b_.CreateAShr(x, constant(x, x->getType()->getScalarSizeInBits() - 1));
  }

  // The instruction traps on a divisor of 0 and on min / -1: both divide by 1 instead, which is right for the latter.
  llvm::Value *divide(bool is_signed, bool remainder) {
    llvm::Value *x = operands_[0], *y = operands_[1], *zero = constant(y, 0), *one = constant(y, 1);
    llvm::Value *by_zero = b_.CreateICmpEQ(y, zero);
    emit_error(state_, by_zero, active_, KILN_ERROR_DIVISION_BY_ZERO);
    llvm::Value *traps = by_zero;
    if (is_signed) {
      const unsigned bits = x->getType()->getScalarSizeInBits();
      llvm::Value *least = llvm::ConstantInt::get(x->getType(), llvm::APInt::getSignedMinValue(bits));
      llvm::Value *overflow = b_.CreateAnd(b_.CreateICmpEQ(x, least), b_.CreateICmpEQ(y, constant(y, -1)));
      traps = b_.CreateOr(by_zero, overflow);
    }
    llvm::Value *divisor = b_.CreateSelect(traps, one, y);
    llvm::Value *result;
    if (!remainder) {
      result = is_signed ? b_.CreateSDiv(x, divisor) : b_.CreateUDiv(x, divisor);
    } else if (!is_signed) {
      result = b_.CreateURem(x, divisor);
    } else {
      result = b_.CreateSRem(x, divisor);
      llvm::Value *other_sign = b_.CreateICmpSLT(b_.CreateXor(result, divisor), zero);
      llvm::Value *adjust = b_.CreateAnd(b_.CreateICmpNE(result, zero), other_sign);
      result = b_.CreateSelect(adjust, b_.CreateAdd(result, divisor), result);
    }
    return b_.CreateSelect(by_zero, zero, result);
  }

  // One pass a bit of the exponent. A negative one: 1 / x truncated, which is 0 but for x = 1 and x = -1.
  llvm::Value *power(bool is_signed) {
    llvm::Value *x = operands_[0], *y = operands_[1], *zero = constant(x, 0), *one = constant(x, 1);
    const Range bits{b_.getInt64(0), b_.getInt64(x->getType()->getScalarSizeInBits())};
    const Values last = emit_loop(state_, bits, 1, {one, x, y}, [&](llvm::Value *, const Values &v) {
      llvm::Value *odd = b_.CreateICmpNE(b_.CreateAnd(v[2], one), zero);
      return Values{b_.CreateSelect(odd, b_.CreateMul(v[0], v[1]), v[0]), b_.CreateMul(v[1], v[1]),
                    b_.CreateLShr(v[2], one)};
    });
    if (!is_signed) return last[0];
    llvm::Value *odd = b_.CreateICmpNE(b_.CreateAnd(y, one), zero);
    llvm::Value *of_minus_one = b_.CreateSelect(odd, x, one);
    llvm::Value *inverse = b_.CreateSelect(b_.CreateICmpEQ(x, constant(x, -1)), of_minus_one, zero);
    inverse = b_.CreateSelect(b_.CreateICmpEQ(x, one), one, inverse);
    return b_.CreateSelect(b_.CreateICmpSLT(y, zero), inverse, last[0]);
  }

  llvm::Value *refuse() {
    state_.fail(error(Code::unimplemented, "core op ", kernel::core_info(op_).name, " of ", name_of(types_.operand)));
    llvm::Type *type = type_of(state_, types_.result);
    return llvm::PoisonValue::get(operands_[0]->getType()->getWithNewType(type));
  }

  KernelState &state_;
  llvm::IRBuilder<> &b_;
  const Core op_;
  const CoreTypes types_;
  llvm::Value *active_;
  Values operands_;
};

}  // namespace

llvm::Value *emit_core(KernelState &state, kernel::Core op, CoreTypes types, const Values &operands,
                       llvm::Value *active) {
  return CoreEmitter(state, op, types, operands, active).emit();
}

}  // namespace kiln::codegen
