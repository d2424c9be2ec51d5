// Arithmetic of two operands, broadcast together.
#include <cmath>
#include <concepts>

#include "runtime/ops/elementwise.h"
#include "runtime/ops/formula.h"

namespace kiln::ops {
namespace {

using kernel::Core;

constexpr struct {
  template <std::floating_point T>
  T operator()(ReferenceContext &, T base, T exponent) const {
    return std::pow(base, exponent);
  }
  template <std::integral T>
  T operator()(ReferenceContext &, T base, T exponent) const {
    const T minus_one = static_cast<T>(-1);
    if (exponent < 0)
      return base == 1 ? 1 : base == minus_one ? (exponent % 2 ? minus_one : 1) : 0;  // 1 / x, truncated
    T power = 1;
    for (; exponent; exponent >>= 1, base = mul(base, base))
      if (exponent & 1) power = mul(power, base);
    return power;
  }
} power;
constexpr struct {
  double operator()(ReferenceContext &, double a, double b) const { return a / b; }
  int64_t operator()(ReferenceContext &, int64_t a, int64_t b) const { return b == -1 ? sub<int64_t>(0, a) : a / b; }
  uint64_t operator()(ReferenceContext &, uint64_t a, uint64_t b) const { return a / b; }
} divided;
// The remainder of a truncated division as that of a division rounded down, which has the divisor's sign.
template <class T>
T with_sign(T r, T b) {
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
constexpr struct {
  double operator()(ReferenceContext &, double a, double b) const { return with_sign(std::fmod(a, b), b); }
  int64_t operator()(ReferenceContext &, int64_t a, int64_t b) const { return b == -1 ? 0 : with_sign(a % b, b); }
  uint64_t operator()(ReferenceContext &, uint64_t a, uint64_t b) const { return a % b; }
} remainder_of;
void samples_arithmetic(SampleSink &out) {
  binary_samples(out, -2, 2);
  integer_pairs(out);
  edge_pairs(out);
}
void samples_quotient(SampleSink &out) {
  samples_divide(out);
  edge_pairs(out);
}
void samples_remainder(SampleSink &out) {
  samples_divide(out);
  out.push_back({.name = "signs",
                 .inputs = {f32({4, 1}), f32({2})},
                 .given = {{0, f32_data({4, 1}, {7.5f, -7.5f, 6.f, -6.f})}, {1, f32_data({2}, {3.f, -3.f})}}});
  // Just below multiples, huge quotients, subnormal divisors, and what is not a number.
  constexpr float endless = std::numeric_limits<float>::infinity();
  const std::vector<float> of = {0.09999999f, 0.29999998f, -3e38f, 3e38f, 0.001f, 16777215.f, 1e-45f,
                                 -1e-30f,     endless,     -1.f,   0.f,   -0.f,   1.5f};
  const std::vector<float> by = {0.1f, -0.1f, 1.7f, 1e-45f, -3e-39f, 3e38f, 1.f, endless, -endless, 0.f};
  const auto rows = static_cast<int64_t>(of.size()), columns = static_cast<int64_t>(by.size());
  out.push_back({.name = "far_apart",
                 .inputs = {f32({rows, 1}), f32({columns})},
                 .given = {{0, f32_data({rows, 1}, of)}, {1, f32_data({columns}, by)}},
                 .tolerance = 1e-7});
}
void samples_power(SampleSink &out) {
  binary_samples(out, 0.1, 3);
  edge_pairs(out);
  out.push_back({.name = "negative_base",
                 .inputs = {f32({5}), f32({5})},
                 .given = {{0, f32_data({5}, {-2.f, -2.f, -3.f, -1.5f, -2.f})},
                           {1, f32_data({5}, {2.f, 3.f, -1.f, 0.f, 0.5f})}}});
  out.push_back({.name = "integers", .inputs = {i64({33}), i64({33})}});
  out.push_back({.name = "integers_wrap",
                 .inputs = {i64({4}), i64({4})},
                 .given = {{0, i64_data({4}, {3, -2, -1, 1})}, {1, i64_data({4}, {63, 64, -3, -4})}}});
}

const Op binary_records[] = {
    commuting(binary(
        "add", "a + b; integers wrap.", numeric_types,
        {.lower = lower_as<Core::add>,
         .reference = reference_of_numbers<[](ReferenceContext &, auto a, auto b) { return add(a, b); }, In::own>,
         .gradient = by_rule("a, b"),
         .samples = samples_arithmetic})),
    binary("sub", "a - b; integers wrap.", numeric_types,
           {.lower = lower_as<Core::sub>,
            .reference = reference_of_numbers<[](ReferenceContext &, auto a, auto b) { return sub(a, b); }, In::own>,
            .gradient = by_rule("a, b"),
            .samples = samples_arithmetic}),
    commuting(binary(
        "mul", "a * b; integers wrap.", numeric_types,
        {.lower = lower_as<Core::mul>,
         .reference = reference_of_numbers<[](ReferenceContext &, auto a, auto b) { return mul(a, b); }, In::own>,
         .gradient = by_rule("a, b"),
         .samples = samples_arithmetic})),
    binary("div", "a / b; integers truncate toward zero, and a zero divisor is an error of the call.", numeric_types,
           {.lower = lower_as<Core::div>,
            .reference = reference_of_quotients<divided, In::own>,
            .gradient = by_rule("a, b"),
            .samples = samples_quotient}),
    binary("pow", "a to the power b; integers wrap, and a negative exponent gives 1 / a truncated, 0 for a = 0.",
           numeric_types,
           {.lower = lower_as<Core::pow>,
            .reference = reference_of_numbers<power>,
            .gradient = by_rule("a, b"),
            .samples = samples_power}),
    commuting(binary(
        "maximum", "The larger of a and b; NaN if either is; of zeros, +0.", numeric_types,
        {.lower = lower_as<Core::max>,
         .reference = reference_of_numbers<[](ReferenceContext &, auto a, auto b) { return larger(a, b); }, In::own>,
         .gradient = by_rule("a, b", Ties::even),
         .samples = samples_arithmetic})),
    commuting(binary(
        "minimum", "The smaller of a and b; NaN if either is; of zeros, -0.", numeric_types,
        {.lower = lower_as<Core::min>,
         .reference = reference_of_numbers<[](ReferenceContext &, auto a, auto b) { return smaller(a, b); }, In::own>,
         .gradient = by_rule("a, b", Ties::even),
         .samples = samples_arithmetic})),
    binary("remainder",
           "What a division rounded down leaves, exactly: of b's sign, but 0 of a's; an integer zero divisor is an "
           "error of the call.",
           numeric_types,
           {.lower = lower_as<Core::rem>,
            .reference = reference_of_quotients<remainder_of, In::own>,
            .gradient = by_rule("a, b"),
            .samples = samples_remainder}),
};

}  // namespace

std::span<const Op> binary_ops() { return binary_records; }

}  // namespace kiln::ops
