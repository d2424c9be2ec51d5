// The functions of jit/llvm/math.h as functions of this process, and what their results are held against: for unit
// tests and for the program that measures them.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>

#include "jit/base/special_functions.h"
#include "jit/llvm/math.h"
#include "tests/unit/jit/llvm/jit_function.h"

namespace kiln::codegen::test {

using kernel::Core;

inline constexpr double infinity = std::numeric_limits<double>::infinity();

template <class Float>
struct Function {
  const char *name;
  Core op;
  Float (*reference)(Float x, Float y);  // in the wider type
  bool binary = false;
  double bound = 0;  // in ulp, where it is not that of all others
  // Errors count in ulp of it at least: around roots. In f32 that is 1; what f64 adds up may be larger.
  Float (*scale)(Float x) = nullptr;
};

template <class F>
F remainder_of(F x, F y) {
  const F rest = std::fmod(x, y);
  return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

// Of a reflection: f64 adds `mirrored` up, and f32 is computed in f64.
template <class F>
F scale_of(F x, F mirrored) {
  return x < 0 && !std::is_same_v<F, double> ? std::max(F(1), mirrored) : F(1);
}

template <class F>
inline constexpr Function<F> functions[] = {
    {"exp", Core::exp, [](F x, F) { return std::exp(x); }},
    {"log", Core::log, [](F x, F) { return std::log(x); }},
    {"exp2", Core::exp2, [](F x, F) { return std::exp2(x); }},
    {"expm1", Core::expm1, [](F x, F) { return std::expm1(x); }},
    {"log1p", Core::log1p, [](F x, F) { return std::log1p(x); }},
    {"log2", Core::log2, [](F x, F) { return std::log2(x); }},
    {"log10", Core::log10, [](F x, F) { return std::log10(x); }},
    {"tan", Core::tan, [](F x, F) { return std::tan(x); }},
    {"asin", Core::asin, [](F x, F) { return std::asin(x); }},
    {"acos", Core::acos, [](F x, F) { return std::acos(x); }},
    {"atan", Core::atan, [](F x, F) { return std::atan(x); }},
    {"sinh", Core::sinh, [](F x, F) { return std::sinh(x); }},
    {"cosh", Core::cosh, [](F x, F) { return std::cosh(x); }},
    {"asinh", Core::asinh, [](F x, F) { return std::asinh(x); }},
    {"acosh", Core::acosh, [](F x, F) { return std::acosh(x); }},
    {"atanh", Core::atanh, [](F x, F) { return std::atanh(x); }},
    {"erfc", Core::erfc, [](F x, F) { return std::erfc(x); }},
    {"erfinv", Core::erfinv, [](F x, F) { return inverse_erf(x); }, false, 4},
    {"lgamma", Core::lgamma, [](F x, F) { return log_of_gamma(x); }, false, 4,
     [](F x) { return scale_of(x, log_of_gamma(-x)); }},
    {"digamma", Core::digamma, [](F x, F) { return kiln::digamma(x); }, false, 4,
     [](F x) { return scale_of(x, std::log(-x)); }},
    {"atan2", Core::atan2, [](F y, F x) { return std::atan2(y, x); }, true},
    {"tanh", Core::tanh, [](F x, F) { return std::tanh(x); }},
    {"erf", Core::erf, [](F x, F) { return std::erf(x); }},
    {"sin", Core::sin, [](F x, F) { return std::sin(x); }},
    {"cos", Core::cos, [](F x, F) { return std::cos(x); }},
    {"rsqrt", Core::rsqrt, [](F x, F) { return 1 / std::sqrt(x); }},
    {"floor", Core::floor, [](F x, F) { return std::floor(x); }},
    {"ceil", Core::ceil, [](F x, F) { return std::ceil(x); }},
    {"trunc", Core::trunc, [](F x, F) { return std::trunc(x); }},
    {"round", Core::round, [](F x, F) { return std::nearbyint(x); }},
    {"pow", Core::pow, [](F x, F y) { return std::pow(x, y); }, true},
    {"rem", Core::rem, remainder_of<F>, true},
};

// void f(const F *x, const F *y, F *out, int64_t count): count is a multiple of lanes.
inline void emit_map(llvm::Module &module, const Features &features, Core op, bool is_double, unsigned lanes) {
  llvm::LLVMContext &context = module.getContext();
  llvm::IRBuilder<> ir(context);
  llvm::Type *pointer = ir.getPtrTy(), *i64 = ir.getInt64Ty();
  auto *type = llvm::FunctionType::get(ir.getVoidTy(), {pointer, pointer, pointer, i64}, false);
  auto *function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, "f", module);
  llvm::Type *scalar = is_double ? ir.getDoubleTy() : ir.getFloatTy();
  llvm::Type *value = lanes == 1 ? scalar : llvm::FixedVectorType::get(scalar, lanes);
  auto *entry = llvm::BasicBlock::Create(context, "", function);
  auto *loop = llvm::BasicBlock::Create(context, "", function);
  auto *end = llvm::BasicBlock::Create(context, "", function);
  ir.SetInsertPoint(entry);
  ir.CreateBr(loop);
  ir.SetInsertPoint(loop);
  auto *i = ir.CreatePHI(i64, 2);
  auto at = [&](unsigned argument) { return ir.CreateGEP(scalar, function->getArg(argument), i); };
  MathBuilder b{ir, features.fma, features.rounding};
  llvm::Value *x = ir.CreateAlignedLoad(value, at(0), llvm::Align(4));
  llvm::Value *y = kernel::core_info(op).operands == 2 ? ir.CreateAlignedLoad(value, at(1), llvm::Align(4)) : nullptr;
  ir.CreateAlignedStore(emit_math(b, op, x, y), at(2), llvm::Align(4));
  auto *next = ir.CreateAdd(i, ir.getInt64(lanes));
  i->addIncoming(ir.getInt64(0), entry);
  i->addIncoming(next, ir.GetInsertBlock());
  ir.CreateCondBr(ir.CreateICmpULT(next, function->getArg(3)), loop, end);
  ir.SetInsertPoint(end);
  ir.CreateRetVoid();
}

// Where both are finite, the distance in units in the last place of the exact result, or of a larger `scale`; a mere
// sign of zero is not free.
template <class F, class Wide>
double error_in_ulp(F got, Wide exact, Wide scale = 0) {
  if (std::abs(exact) < scale && std::isfinite(got))
    return static_cast<double>(std::abs(got - exact) /
                               std::ldexp(Wide(1), std::ilogb(scale) - std::numeric_limits<F>::digits + 1));
  const F rounded = static_cast<F>(exact);
  if (std::isnan(rounded)) return std::isnan(got) ? 0 : infinity;
  if (rounded == got)
    return std::signbit(rounded) == std::signbit(got)
               ? static_cast<double>(std::isinf(got) || got == 0 ? 0 : 1) *
                     static_cast<double>(
                         std::abs(static_cast<Wide>(got) - exact) /
                         std::ldexp(Wide(1), std::max(std::ilogb(exact), std::numeric_limits<F>::min_exponent - 1) -
                                                 std::numeric_limits<F>::digits + 1))
               : infinity;
  if (std::isnan(got)) return infinity;
  using Limits = std::numeric_limits<F>;
  const int exponent = std::max(exact == 0 ? Limits::min_exponent - 1 : std::ilogb(exact), Limits::min_exponent - 1);
  const Wide limit = std::ldexp(Wide(1), Limits::max_exponent);
  const Wide value = std::isinf(got) ? std::copysign(limit, static_cast<Wide>(got)) : static_cast<Wide>(got);
  const Wide wanted = std::clamp(exact, -limit, limit);
  return static_cast<double>(std::abs(value - wanted) /
                             std::ldexp(Wide(1), std::min(exponent, Limits::max_exponent - 1) - Limits::digits + 1));
}

}  // namespace kiln::codegen::test
