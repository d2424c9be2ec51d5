// Functions of two and three operands beyond arithmetic: quotients that are rounded, signs, what lies between.
#include <cmath>

#include "runtime/ops/composer.h"
#include "runtime/ops/elementwise.h"
#include "runtime/ops/formula.h"

namespace kiln::ops {
namespace {

using kernel::Core;

// What a truncated division leaves: of a's sign, exactly.
Term rest(const Term &a, const Term &b) {
  if (!a.is_float()) return a - a / b * b;
  return with_sign_of(abs(a).op(Core::rem, abs(b)), a);
}

// Whether a truncated division was rounded up: the quotient is negative and something is left.
Term is_rounded_up(const Term &left, const Term &b) {
  return (left != 0) & (left < 0).op(Core::select, !(b < 0), b < 0);
}

Status lower_floor_divide(LowerContext &c) {
  return lower_by<[](LowerContext &, const Term &a, const Term &b) {
    const Term left = rest(a, b);
    if (!a.is_float()) return a / b - is_rounded_up(left, b).as(a.type());
    // A multiple of b over b is an integer, but for what rounding adds.
    const Term truncated = ((a - left) / b).op(Core::round), quotient = a / b;
    const Term whole = truncated - is_rounded_up(left, b).as(a.type());
    return select(b == 0, quotient, with_sign_of(abs(whole), quotient));  // of 0, too
  }>(c);
}

constexpr auto rest_of = [](ReferenceContext &, auto a, auto b) {
  if constexpr (std::is_floating_point_v<decltype(a)>)
    return std::fmod(a, b);
  else
    return b == static_cast<decltype(b)>(-1) && std::is_signed_v<decltype(b)> ? 0 : a % b;
};

constexpr auto floor_of_quotient = [](ReferenceContext &, auto a, auto b) {
  using T = decltype(a);
  if constexpr (std::is_floating_point_v<T>) {
    if (b == 0) return a / b;
    const T left = std::fmod(a, b);
    return std::copysign(std::round((a - left) / b) - (left != 0 && (left < 0) != (b < 0) ? 1 : 0), a / b);
  } else {
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return sub<T>(0, a);
    return static_cast<T>(a / b - (a % b != 0 && (a % b < 0) != (b < 0) ? 1 : 0));
  }
};

// sqrt(a^2 + b^2) without overflow inside: of f32 in f64, which holds all squares; of f64 in units of the larger.
Status lower_hypot(LowerContext &c) {
  return lower_by<[](LowerContext &, const Term &a, const Term &b) {
    const Term is_infinite = (abs(a) == infinity) | (abs(b) == infinity);
    if (a.type() == DType::f32) {
      const Term x = a.as(DType::f64), y = b.as(DType::f64);
      return select(is_infinite, infinity, sqrt(x * x + y * y).as(DType::f32));
    }
    const Term large = max(abs(a), abs(b)), small = min(abs(a), abs(b)), ratio = small / large;
    return select(is_infinite, infinity, select(large == 0, 0, large * sqrt(ratio * ratio + 1)));
  }>(c);
}

Status infer_clamp(InferContext &c) {
  const bool is_float = dtype_info(c.inputs[0].dtype).is_float;
  for (const char *name : {"min", "max"}) {
    const double bound = c.attr(name).f64();
    if (std::isnan(bound) || (!is_float && std::trunc(bound) != bound))
      return c.fail(name, " is ", bound, ", expected ", is_float ? "a number" : "an integer or an infinity",
                    " for dtype ", name_of(c.inputs[0].dtype));
  }
  return infer_same(c);
}

Status reference_clamp(ReferenceContext &c) {
  const RefTensor &x = *c.inputs[0];
  return dispatch(x, [&](auto zero) {
    using T = decltype(zero);
    const auto bound = [&](const char *name) {
      const double number = c.attr(name).f64();
      return std::is_integral_v<T> ? static_cast<T>(to_integer(number, x.dtype)) : static_cast<T>(number);
    };
    const T low = bound("min"), high = bound("max");
    const ReadElements<T> in(x);
    return make_each<T>(c, [&](int64_t k) { return smaller(larger(in[static_cast<size_t>(k)], low), high); });
  });
}

// From the nearer end, so that both ends are exact.
Status decompose_lerp(DecomposeContext &c) {
  Composer g(c);
  const ValueId a = c.node.inputs[0], b = c.node.inputs[1], weight = c.node.inputs[2];
  const ValueId range = g("sub", {b, a}), rest = g("sub", {g.number(weight, 1), weight});
  const ValueId from_a = g("add", {a, g("mul", {weight, range})}), from_b = g("sub", {b, g("mul", {range, rest})});
  return g.give({g("where", {g("lt", {g("abs", {weight}), g.number(weight, 0.5)}), from_a, from_b})});
}

void samples_quotients(SampleSink &out) {
  samples_divide(out);
  out.push_back({.name = "signs",
                 .inputs = {f32({6, 1}), f32({4})},
                 .given = {{0, f32_data({6, 1}, {7.5f, -7.5f, 6.f, -6.f, 0.3f, -1e-30f})},
                           {1, f32_data({4}, {3.f, -3.f, 0.1f, 1.f})}}});
  edge_pairs(out);
}
void samples_pairs(SampleSink &out) {
  binary_samples(out, -3, 3);
  edge_pairs(out);
}
void samples_hypot(SampleSink &out) {
  samples_pairs(out);
  out.push_back({.name = "large_and_small",
                 .inputs = {f32({5}), f32({5})},
                 .given = {{0, f32_data({5}, {3e38f, 1e-40f, 3e30f, -3e-30f, 1e-45f})},
                           {1, f32_data({5}, {-1e38f, 1e-41f, 4e30f, 4e-30f, 0.f})}}});
}
void samples_xlogy(SampleSink &out) {
  binary_samples(out, 0.1, 9);
  edge_pairs(out);
}
void samples_clamp(SampleSink &out) {
  const Dim n = sym("n");
  const AttrMap bounds = {{"min", -0.5}, {"max", 1.25}}, whole = {{"min", -2.0}, {"max", 3.0}};
  out.push_back({.name = "vector", .inputs = {f32({257})}, .attrs = bounds});
  out.push_back({.name = "one_sided", .inputs = {f32({7, 33})}, .attrs = {{"min", 0.1}}});
  out.push_back({.name = "crossed", .inputs = {f32({17})}, .attrs = {{"min", 1.0}, {"max", -1.0}}});
  out.push_back({.name = "edges",
                 .inputs = {f32({6})},
                 .attrs = bounds,
                 .given = {{0, f32_data({6}, {NAN, INFINITY, -INFINITY, 0.f, -0.f, 1.25f})}}});
  out.push_back({.name = "symbolic", .inputs = {f32({n, 3})}, .attrs = bounds, .sizes = {{"n", 5}}});
  out.push_back({.name = "scalar", .inputs = {f32({})}, .attrs = bounds});
  out.push_back({.name = "empty", .inputs = {f32({0, 3})}, .attrs = bounds});
  for (const DType type : {DType::i64, DType::i32, DType::i16, DType::i8})
    out.push_back({.name = str_cat(name_of(type)), .inputs = {make_type(type, {33})}, .attrs = whole});
  for (const DType type : {DType::u64, DType::u32, DType::u16, DType::u8})
    out.push_back({.name = str_cat(name_of(type)),
                   .inputs = {make_type(type, {33})},
                   .attrs = whole,
                   .int_low = 0,
                   .int_high = 9});
  out.push_back(
      {.name = "unbounded_integers", .inputs = {i64({3})}, .given = {{0, i64_data({3}, {i64_min, 0, i64_max})}}});
}
void samples_lerp(SampleSink &out) {
  const Dim n = sym("n");
  out.push_back({.name = "vectors", .inputs = {f32({257}), f32({257}), f32({257})}});
  out.push_back({.name = "one_weight", .inputs = {f32({5, 17}), f32({5, 17}), f32({})}, .low = 0, .high = 1});
  out.push_back({.name = "broadcast", .inputs = {f32({9, 1}), f32({33}), f32({9, 33})}, .low = 0, .high = 1});
  out.push_back({.name = "symbolic", .inputs = {f32({n, 3}), f32({3}), f32({n, 1})}, .sizes = {{"n", 5}}});
  out.push_back({.name = "empty", .inputs = {f32({0}), f32({0}), f32({1})}});
  out.push_back({.name = "edges",
                 .inputs = {f32({5}), f32({5}), f32({5})},
                 .given = {{0, f32_data({5}, {1.f, 1.f, INFINITY, NAN, 2.f})},
                           {1, f32_data({5}, {3.f, 3.f, 1.f, 1.f, INFINITY})},
                           {2, f32_data({5}, {0.f, 1.f, 0.25f, 0.5f, 0.25f})}}});
}

const Op blending_records[] = {
    binary("fmod",
           "What a division rounded towards 0 leaves, exactly: of a's sign; an integer zero divisor is an error of the "
           "call.",
           numeric_types,
           {.lower = lower_by<[](LowerContext &, const Term &a, const Term &b) { return rest(a, b); }>,
            .reference = reference_of_quotients<rest_of>,
            .gradient = by_rule("a, b"),
            .samples = samples_quotients}),
    binary("floor_divide",
           "a / b rounded down, exactly as far as the dtype holds it; an integer zero divisor is an error of the call.",
           numeric_types,
           {.lower = lower_floor_divide,
            .reference = reference_of_quotients<floor_of_quotient>,
            .gradient = zero_gradient("constant between integer quotients"),
            .samples = samples_quotients}),
    binary("copysign", "|a| with b's sign, which -0 has; a NaN counts as positive.", float_types,
           {.lower = lower_by<[](LowerContext &, const Term &a, const Term &b) { return with_sign_of(a, b); }>,
            .reference = reference_of_floats<[](ReferenceContext &, auto a, auto b) {
              return std::isnan(double(b)) ? std::abs(double(a)) : std::copysign(double(a), double(b));
            }>,
            .gradient = by_rule("a"),
            .samples = samples_pairs}),
    binary("hypot", "sqrt(a^2 + b^2), which does not overflow inside; infinite where a or b is, even beside NaN.",
           float_types,
           {.lower = lower_hypot,
            .reference = reference_of_floats<[](ReferenceContext &, auto a, auto b) { return std::hypot(a, b); }>,
            .gradient = by_rule("a, b"),
            .samples = samples_hypot}),
    binary("xlogy", "a * log(b), and 0 where a is 0 unless b is NaN.", float_types,
           {.lower = lower_by<[](LowerContext &, const Term &a, const Term &b) {
              return select((a == 0) & (b == b), 0, a * log(b));
            }>,
            .reference = reference_of_floats<[](ReferenceContext &, auto a, auto b) {
              return a == 0 && !is_nan(b) ? a - a : a * std::log(b);
            }>,
            .gradient = by_rule("a, b"),
            .samples = samples_xlogy}),
    {{.name = "clamp",
      .doc = "min(max(x, min), max): max where the bounds are crossed; NaN stays NaN.",
      .args = {{"x", "any shape", numeric_types}},
      .result_names = {"y"},
      .attrs = {number("min", "the least; of integers an integer, rounded to 53 bits", -infinity),
                number("max", "the largest; of integers an integer, rounded to 53 bits", infinity)},
      .infer = infer_clamp},
     {.lower = lower_by<[](LowerContext &c, const Term &x) {
        return min(max(x, c.attr("min").f64()), c.attr("max").f64());
      }>,
      .reference = reference_clamp,
      .gradient = by_rule("x"),
      .samples = samples_clamp}},
    {{.name = "lerp",
      .doc = "a + weight * (b - a), from the nearer end.",
      .args = {{"a", "any shape", float_types},
               {"b", "broadcasts with a", float_types},
               {"weight", "broadcasts with both: 0 is a, 1 is b", float_types}},
      .result_names = {"y"},
      .infer = infer_broadcast},
     {.decompose = decompose_lerp,
      .reference = reference_of_floats<[](ReferenceContext &, auto a, auto b, auto weight) {
        return std::abs(double(weight)) < 0.5 ? a + weight * (b - a) : b - (b - a) * (1 - weight);
      }>,
      .gradient = through_decomposition(),
      .samples = samples_lerp}},
};

}  // namespace

std::span<const Op> blending_ops() { return blending_records; }

}  // namespace kiln::ops
