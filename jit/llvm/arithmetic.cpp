// Types, constants, and errors raised by lanes.
#include <bit>

#include "jit/base/small_float.h"
#include "jit/llvm/emitter.h"

namespace kiln::codegen {

llvm::Type *type_of(KernelState &state, DType type) {
  auto &b = state.b;
  switch (type) {
    case DType::f64:
      return b.getDoubleTy();
    case DType::f32:
      return b.getFloatTy();
    case DType::f16:
    case DType::bf16:
    case DType::i16:
    case DType::u16:
      return b.getInt16Ty();
    case DType::i64:
    case DType::u64:
      return b.getInt64Ty();
    case DType::i32:
    case DType::u32:
      return b.getInt32Ty();
    case DType::i8:
    case DType::u8:
    case DType::f8_e4m3fn:
    case DType::f8_e5m2:
      return b.getInt8Ty();
    case DType::boolean:
      return b.getInt1Ty();
    case DType::none:
    case DType::token:
      break;
  }
  state.fail(error(Code::internal, "a value has no type"));
  return b.getInt64Ty();
}

llvm::Type *memory_type_of(KernelState &state, DType type) {
  return type == DType::boolean ? state.b.getInt8Ty() : type_of(state, type);
}

llvm::Constant *constant_of(KernelState &state, DType type, uint64_t immediate) {
  llvm::Type *in_registers = type_of(state, type);
  if (in_registers->isFloatingPointTy()) return llvm::ConstantFP::get(in_registers, std::bit_cast<double>(immediate));
  if (dtype_info(type).is_float) immediate = encode_float(std::bit_cast<double>(immediate), small_format(type));
  return llvm::ConstantInt::get(in_registers, immediate);
}

llvm::Value *splat(KernelState &state, llvm::Value *value, unsigned width) {
  if (width == 1 || value->getType()->isVectorTy()) return value;
  return state.b.CreateVectorSplat(width, value);
}

llvm::Value *emit_floor(KernelState &state, llvm::Value *x) {
  MathBuilder math = math_builder(state);
  return emit_math(math, kernel::Core::floor, x);
}

llvm::Value *emit_multiply_add(KernelState &state, llvm::Value *a, llvm::Value *b, llvm::Value *c) {
  if (!c->getType()->isFPOrFPVectorTy()) return state.b.CreateAdd(state.b.CreateMul(a, b), c);
  MathBuilder math = math_builder(state);
  return emit_multiply_add(math, a, b, c);
}

void emit_error(KernelState &state, llvm::Value *bad, llvm::Value *active, uint32_t bit) {
  auto &b = state.b;
  if (bad->getType()->isVectorTy()) bad = b.CreateOrReduce(active ? b.CreateAnd(bad, active) : bad);
  if (auto *constant = llvm::dyn_cast<llvm::ConstantInt>(bad); constant && constant->isZero()) return;
  emit_if(state, bad, [&] {
    b.CreateAtomicRMW(llvm::AtomicRMWInst::Or, state.error_word, b.getInt32(bit), llvm::Align(4),
                      llvm::AtomicOrdering::Monotonic);
  });
}

}  // namespace kiln::codegen
