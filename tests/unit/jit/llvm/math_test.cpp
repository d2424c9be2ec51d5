// Measures every function of math.h against the next wider type's libm, at each feature level that this machine has.
#include "jit/llvm/math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/unit/jit/llvm/jit_function.h"

namespace kiln::codegen::test {
namespace {

using kernel::Core;

template <class Float>
struct Function {
  const char *name;
  Core op;
  Float (*reference)(Float x, Float y);  // in the wider type
  bool binary = false;
};

template <class F>
F remainder_of(F x, F y) {
  const F rest = std::fmod(x, y);
  return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

template <class F>
constexpr Function<F> functions[] = {
    {"exp", Core::exp, [](F x, F) { return std::exp(x); }},
    {"log", Core::log, [](F x, F) { return std::log(x); }},
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
void emit_map(llvm::Module &module, const Features &features, Core op, bool is_double, unsigned lanes) {
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
  llvm::Value *y = op == Core::pow || op == Core::rem ? ir.CreateAlignedLoad(value, at(1), llvm::Align(4)) : nullptr;
  ir.CreateAlignedStore(emit_math(b, op, x, y), at(2), llvm::Align(4));
  auto *next = ir.CreateAdd(i, ir.getInt64(lanes));
  i->addIncoming(ir.getInt64(0), entry);
  i->addIncoming(next, ir.GetInsertBlock());
  ir.CreateCondBr(ir.CreateICmpULT(next, function->getArg(3)), loop, end);
  ir.SetInsertPoint(end);
  ir.CreateRetVoid();
}

constexpr double infinity = std::numeric_limits<double>::infinity();

template <class F>
std::vector<F> special_values() {
  using Limits = std::numeric_limits<F>;
  std::vector<F> values{0, Limits::denorm_min(), Limits::min(), Limits::max(), Limits::infinity(), Limits::quiet_NaN()};
  for (double x :
       {0.25, 0.5,   1.0,   1.5,      2.0,     2.5,   3.0,   3.5,    4.0,   0.92,      0.93,      0.94,
        10.0, 100.0, 88.72, 88.73,    87.34,   103.9, 104.1, 709.78, 745.2, 8388607.5, 8388608.0, 4503599627370495.5,
        1e9,  1e15,  1e22,  262143.0, 262145.0})
    values.push_back(static_cast<F>(x));
  for (size_t i = 0, count = values.size(); i < count; i++) {
    values.push_back(std::nextafter(values[i], F(0)));
    values.push_back(std::nextafter(values[i], Limits::infinity()));
  }
  for (size_t i = 0, count = values.size(); i < count; i++) values.push_back(-values[i]);
  return values;
}

// Every stride-th bit pattern, and near multiples of pi/2.
std::vector<float> samples(float) {
  std::vector<float> values = special_values<float>();
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 1009)
    values.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  for (int i = -50000; i < 50000; i++) values.push_back(static_cast<float>(i * 1.5707963267948966));
  for (int i = -100000; i < 100000; i++) values.push_back(static_cast<float>(i) * 1e-4f);
  return values;
}
std::vector<double> samples(double) {
  std::vector<double> values = special_values<double>();
  for (uint64_t i = 0; i < 400000; i++) values.push_back(std::bit_cast<double>(i * 46116860184273u));  // 2^64 / 400000
  for (int i = -50000; i < 50000; i++) values.push_back(i * 1.5707963267948966);
  for (int i = -200000; i < 200000; i++) values.push_back(static_cast<double>(i) * 1e-4);
  return values;
}

// All pairs of special values, then numbers near multiples of others, then each sample with an exponent of moderate or
// of any size.
template <class F>
void pair_up(std::vector<F> &x, std::vector<F> &y) {
  std::vector<F> special = special_values<F>(), bases = x;
  x.clear();
  for (F a : special)
    for (F b : special) x.push_back(a), y.push_back(b);
  for (int multiple = -3000; multiple < 3000; multiple++)
    for (F b : {F(0.1), F(-0.1), F(1.7), F(3e-39), F(-7)})
      for (F near : {F(multiple * b), std::nextafter(F(multiple * b), F(0)), std::nextafter(F(multiple * b), F(1e30))})
        x.push_back(near), y.push_back(b);
  uint64_t state = 1;
  for (F base : bases) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    double unit = static_cast<double>(state >> 11) * 0x1p-53;
    const double range = sizeof(F) == 4 ? 150 : 1075;
    const double scale = std::log2(std::abs(static_cast<double>(base)));
    x.push_back(state >> 63 ? base : std::abs(base));
    y.push_back(static_cast<F>(state >> 61 & 1 ? std::floor((unit - 0.5) * 40)
                                               : (unit - 0.5) * 2 * range / (scale == 0 ? 1 : scale)));
  }
}

// Where both are finite, the distance in units in the last place of the exact result; a mere sign of zero is not free.
template <class F, class Wide>
double error_in_ulp(F got, Wide exact) {
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

template <class F, class Wide>
void measure(std::string_view level, double bound) {
  const Target target = *Target::by_name(level);
  if (!target.runs_on_host()) GTEST_SKIP() << "this machine lacks the feature level";
  const Features features = features_of(target);
  for (const Function<Wide> &function : functions<Wide>) {
    std::vector<F> x = samples(F()), y;
    if (function.binary) pair_up(x, y);
    while (x.size() % 32) x.push_back(1);
    y.resize(x.size(), 1);
    std::vector<Wide> exact(x.size());
    for (size_t i = 0; i < x.size(); i++) exact[i] = function.reference(x[i], y[i]);
    std::vector<F> out(x.size());
    for (unsigned lanes : {1u, static_cast<unsigned>(features.vector_bits / 8 / sizeof(F)), 32u}) {
      JitFunction code(features,
                       [&](llvm::Module &module) { emit_map(module, features, function.op, sizeof(F) == 8, lanes); });
      code.as<void(const F *, const F *, F *, int64_t)>()(x.data(), y.data(), out.data(),
                                                          static_cast<int64_t>(x.size()));
      size_t worst = 0;
      double largest = -1;
      for (size_t i = 0; i < x.size(); i++)
        if (double error = error_in_ulp(out[i], exact[i]); error > largest) largest = error, worst = i;
      printf("%-6s f%zu lanes %2u %7.3f ulp at %a%s\n", function.name, 8 * sizeof(F), lanes, largest,
             static_cast<double>(x[worst]), function.binary ? (" ^ " + std::to_string(y[worst])).c_str() : "");
      EXPECT_LE(largest, bound) << function.name << "(" << x[worst] << ", " << y[worst] << ") = " << out[worst]
                                << ", not " << static_cast<F>(exact[worst]) << " (" << lanes << " lanes)";
    }
  }
}

TEST(Math, F32IsWithinTwoUlpOnPlainX86) { measure<float, double>("x86-64", 2); }
TEST(Math, F32IsWithinTwoUlpOnV3) { measure<float, double>("v3", 2); }
TEST(Math, F32IsWithinTwoUlpOnV4) { measure<float, double>("v4", 2); }
TEST(Math, F64IsWithinFourUlpOnPlainX86) { measure<double, long double>("x86-64", 4); }
TEST(Math, F64IsWithinFourUlpOnV3) { measure<double, long double>("v3", 4); }
TEST(Math, F64IsWithinFourUlpOnV4) { measure<double, long double>("v4", 4); }

}  // namespace
}  // namespace kiln::codegen::test
