// To integers of the same type, and what is a number at all.
#include <cmath>

#include "jit/base/small_float.h"
#include "runtime/ops/elementwise.h"
#include "runtime/ops/formula.h"

namespace kiln::ops {
namespace {

using kernel::Core;

Status infer_question(InferContext &c) {
  c.results = {make_type(DType::boolean, c.inputs[0].dims)};
  return {};
}

// An op that asks something of each element.
Op question(std::string_view name, std::string_view doc, OpMeaning meaning) {
  Op op = unary(name, doc, numeric_types, meaning);
  op.infer = infer_question;
  op.gradient = gives_booleans;
  return op;
}

// The element in a type that compares: exact. Integers are looked at as such.
Term comparable(const Term &x) { return is_small_float(x.type()) ? x.as(DType::f32) : x; }
Term answer(LowerContext &c, bool yes) { return {c.body, c.body.constant(DType::boolean, yes)}; }

// The largest number of a dtype; least: its negative, or the least integer.
double largest(DType type) {
  if (is_small_float(type)) {
    const FloatFormat format = small_format(type);
    return decode_float(static_cast<uint16_t>(format.largest()), format);
  }
  return type == DType::f64 ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max();
}

// What stands for positive or negative infinity: an infinite attribute says the largest or the least number.
double stand_in(double asked, DType type) { return std::isinf(asked) ? std::copysign(largest(type), asked) : asked; }

Status infer_nan_to_num(InferContext &c) {
  for (const char *name : {"posinf", "neginf"})
    if (std::isnan(c.attr(name).f64()))
      return c.fail(name, " is NaN, expected a number, or an infinity for the dtype's last");
  return infer_same(c);
}

Status lower_nan_to_num(LowerContext &c) {
  const Term x(c.body, c.load(0)), wide = comparable(x);
  const DType type = x.type();
  c.body.yield(x.is_float() ? select(wide != wide, c.attr("nan").f64(),
                                     select(wide == infinity, stand_in(c.attr("posinf").f64(), type),
                                            select(wide == -infinity, stand_in(c.attr("neginf").f64(), type), x)))
                                  .value()
                            : x.value());
  return {};
}

Status reference_nan_to_num(ReferenceContext &c) {
  const RefTensor &x = *c.inputs[0];
  if (!x.is_float()) return copy_broadcast(c, x);
  const ReadElements<double> in(x);
  return make_each<double>(c, [&](int64_t k) {
    const double value = in[static_cast<size_t>(k)];
    if (std::isnan(value)) return c.attr("nan").f64();
    return std::isinf(value) ? stand_in(c.attr(value > 0 ? "posinf" : "neginf").f64(), x.dtype) : value;
  });
}

void samples_questions(SampleSink &out) {
  unary_samples(out, -3, 3, {0.f, -0.f, INFINITY, -INFINITY, NAN, 1e-40f, 3.4e38f, -3.4e38f});
  out.push_back({.name = "integers", .inputs = {i64({5, 7})}});
}
void samples_nan_to_num(SampleSink &out) {
  samples_questions(out);
  out.push_back({.name = "chosen",
                 .inputs = {f32({5})},
                 .attrs = {{"nan", -1.5}, {"posinf", 8.0}, {"neginf", infinity}},
                 .given = {{0, f32_data({5}, {NAN, INFINITY, -INFINITY, 2.f, -0.f})}}});
}

const Op rounding_records[] = {
    unary("floor", "The largest integer that is not above x.", float_types,
          {.lower = lower_as<Core::floor>,
           .reference = reference_of_floats<[](ReferenceContext &, auto x) { return std::floor(x); }>,
           .gradient = zero_gradient("constant between integers"),
           .samples = samples_rounding}),
    unary("round", "The nearest integer; halves go to the even one.", float_types,
          {.lower = lower_as<Core::round>,
           .reference = reference_of_floats<[](ReferenceContext &, auto x) { return std::nearbyint(x); }>,
           .gradient = zero_gradient("constant between integers"),
           .samples = samples_rounding}),
    unary("ceil", "The smallest integer that is not below x.", float_types,
          {.lower = lower_as<Core::ceil>,
           .reference = reference_of_floats<[](ReferenceContext &, auto x) { return std::ceil(x); }>,
           .gradient = zero_gradient("constant between integers"),
           .samples = samples_rounding}),
    unary("trunc", "x without its fraction: the next integer towards 0.", float_types,
          {.lower = lower_as<Core::trunc>,
           .reference = reference_of_floats<[](ReferenceContext &, auto x) { return std::trunc(x); }>,
           .gradient = zero_gradient("constant between integers"),
           .samples = samples_rounding}),
    question("isnan", "Whether x is NaN; integers never are.",
             {.lower = [](LowerContext &c) -> Status {
                const Term x = comparable({c.body, c.load(0)});
                return c.body.yield((x != x).value()), Status();
              },
              .reference = reference_of_numbers<[](ReferenceContext &, auto x) { return is_nan(x); }>,
              .samples = samples_questions}),
    question("isinf", "Whether x is infinite, of either sign; integers never are.",
             {.lower = [](LowerContext &c) -> Status {
                const Term x = comparable({c.body, c.load(0)});
                return c.body.yield((x.is_float() ? abs(x) == infinity : answer(c, false)).value()), Status();
              },
              .reference = reference_of_numbers<[](ReferenceContext &, auto x) { return std::isinf(double(x)); }>,
              .samples = samples_questions}),
    question("isfinite", "Whether x is neither infinite nor NaN.",
             {.lower = [](LowerContext &c) -> Status {
                const Term x = comparable({c.body, c.load(0)});
                return c.body.yield((x.is_float() ? abs(x) < infinity : answer(c, true)).value()), Status();
              },
              .reference = reference_of_numbers<[](ReferenceContext &, auto x) { return std::isfinite(double(x)); }>,
              .samples = samples_questions}),
    {{.name = "nan_to_num",
      .doc = "x with numbers in place of NaN and infinities.",
      .flags = op_flags::moves,
      .args = {{"x", "any shape", numeric_types}},
      .result_names = {"y"},
      .attrs = {number("nan", "in place of NaN", 0.0),
                number("posinf", "in place of infinity; infinite: the dtype's largest number", infinity),
                number("neginf", "in place of -infinity; infinite: the dtype's least number", -infinity)},
      .infer = infer_nan_to_num},
     {.lower = lower_nan_to_num,
      .reference = reference_nan_to_num,
      .gradient = by_rule("x"),
      .samples = samples_nan_to_num}},
};

}  // namespace

std::span<const Op> rounding_ops() { return rounding_records; }

}  // namespace kiln::ops
