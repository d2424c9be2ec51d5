// Floats as integers that count steps of a scale.
#include "runtime/ops/formula.h"
#include "runtime/ops/quantization.h"

namespace kiln::ops {
namespace {

using kernel::Core;

struct Range {
  double low, high;
};

// The float at `at`, which is operand 0's, in steps of its scale: whole, and in the range. NaN stays NaN.
Term steps_of(LowerContext &c, const std::vector<Expr> &at, const Range &range) {
  const DType wide = c.inputs[0].dtype == DType::f64 ? DType::f64 : DType::f32;
  const Term x = Term(c.body, c.load(0, at)).as(wide), scale(c.body, load_scale(c, 1, at, wide));
  Term steps = (x / scale).op(Core::round);
  if (c.inputs.size() == 3) steps = steps + Term(c.body, load_scale(c, 2, at, wide));
  return min(max(steps, range.low), range.high);
}

// The same for reference kernels, of element k: the quotient is rounded to what it is computed in.
class RefSteps {
 public:
  RefSteps(const ReferenceContext &c, const Range &range)
      : c_(c), range_(range), x_(*c.inputs[0]), scales_(*c.inputs[1]), zeros_(*c.inputs.back()) {}
  struct Steps {
    double number, zero, scale;
  };
  Steps at(int64_t k) const {
    const RefTensor &x = *c_.inputs[0];
    const size_t at = scale_of(c_, x.shape, k);
    const bool wide = x.dtype == DType::f64, moved = c_.inputs.size() == 3;
    const auto rounded = [&](double exact) { return wide ? exact : static_cast<double>(static_cast<float>(exact)); };
    const double scale = rounded(scales_[at]), zero = moved ? static_cast<double>(zeros_[at]) : 0;
    double number = std::nearbyint(rounded(x_[static_cast<size_t>(k)] / scale));
    if (moved) number += zero;  // 0 would take the sign of -0 off
    return {smaller(larger(number, range_.low), range_.high), zero, scale};
  }

 private:
  const ReferenceContext &c_;
  Range range_;
  ReadElements<double> x_, scales_;
  ReadElements<int64_t> zeros_;
};

Range range_of_type(const AttrMap &attrs) {
  const DType dtype = attrs.find("dtype")->second.dtype();
  if (attrs.find("bits")->second.i64() == 8)
    return {static_cast<double>(least_of(dtype)), static_cast<double>(largest_of(dtype))};
  return attrs.find("signed")->second.boolean() ? Range{-8, 7} : Range{0, 15};
}

Status infer_quantize(InferContext &c) {
  const TensorType &x = c.inputs[0];
  const int64_t bits = c.attr("bits").i64();
  const DType dtype = c.attr("dtype").dtype();
  if (bits != 4 && bits != 8) return c.fail("bits is ", bits, ", expected 4 or 8");
  KILN_TRY(require_dtype(c, dtype, stored_types));
  Shape shape = x.dims;
  if (bits == 4) {
    if (dtype != DType::u8)
      return c.fail("dtype is ", name_of(dtype), ", expected u8, which holds two numbers of 4 bits");
    if (x.rank() == 0) return c.fail("x is ", x.text(), ", expected at least 1 dim");
    if (mod(shape.back(), 2).is(1)) return c.fail("x is ", x.text(), ", expected an even last dim");
    KILN_TRY(c.require_equal(mod(shape.back(), 2), 0, str_cat("x dim ", x.rank() - 1, " modulo 2 and 0")));
    shape.back() = floor_div(shape.back(), 2);
  }
  KILN_TRY(check_scaling(c, x.dims, "x"));
  c.results = {make_type(dtype, std::move(shape))};
  return {};
}

Status lower_quantize(LowerContext &c) {
  const Range range = range_of_type(c.attrs);
  std::vector<Expr> at = c.axes();
  if (c.attr("bits").i64() == 8) {
    c.body.yield(steps_of(c, at, range).as(c.result.dtype).value());
    return {};
  }
  const Expr byte = at.back();
  const auto number = [&](int64_t second) {
    at.back() = byte * 2 + second;
    return steps_of(c, at, range).as(DType::i8).as(DType::u8);
  };
  const Term first = number(0), second = number(1);
  c.body.yield(first.op(Core::bit_and, first.literal(15))
                   .op(Core::bit_or, second.op(Core::shift_left, second.literal(4)))
                   .value());
  return {};
}

Status reference_quantize(ReferenceContext &c) {
  const RefSteps steps(c, range_of_type(c.attrs));
  const bool packed = c.attr("bits").i64() == 4;
  const auto number = [&](int64_t k) {
    const double count = steps.at(k).number;
    return std::isnan(count) ? 0 : static_cast<int64_t>(count);
  };
  const auto byte = [&](int64_t k) {
    return packed ? (number(2 * k) & 15) | (number(2 * k + 1) & 15) << 4 : number(k);
  };
  return make_each<int64_t>(c, byte, 8);
}

constexpr int64_t most_steps = 1 << 23;  // f32 holds these, with any zero point

Status infer_fake_quantize(InferContext &c) {
  const int64_t low = c.attr("quant_min").i64(), high = c.attr("quant_max").i64();
  if (low < -most_steps || low > high || high > most_steps)
    return c.fail("quant_min is ", low, ", quant_max is ", high, ", expected ", -most_steps,
                  " <= quant_min <= quant_max <= ", most_steps);
  KILN_TRY(check_scaling(c, c.inputs[0].dims, "x"));
  return infer_same(c);
}

Range range_of_attrs(const AttrMap &attrs) {
  return {static_cast<double>(attrs.find("quant_min")->second.i64()),
          static_cast<double>(attrs.find("quant_max")->second.i64())};
}

Status lower_fake_quantize(LowerContext &c) {
  const std::vector<Expr> at = c.axes();
  Term steps = steps_of(c, at, range_of_attrs(c.attrs));
  if (c.inputs.size() == 3) steps = steps - Term(c.body, load_scale(c, 2, at, steps.type()));
  c.body.yield((steps * Term(c.body, load_scale(c, 1, at, steps.type()))).as(c.result.dtype).value());
  return {};
}

Status reference_fake_quantize(ReferenceContext &c) {
  const RefSteps steps(c, range_of_attrs(c.attrs));
  const auto value = [&](int64_t k) {
    const RefSteps::Steps at = steps.at(k);
    return (at.number - at.zero) * at.scale;
  };
  return make_each<double>(c, value, 8);
}

// Of both: `zeros` none for none.
void scaled_sample(SampleSink &out, const char *name, Shape x, std::vector<int64_t> scales, AttrMap attrs, DType zeros,
                   std::map<std::string, int64_t> sizes = {}, Shape scale_dims = {}) {
  const auto count = static_cast<size_t>(count_of(scales));
  std::vector<float> steps(count);
  for (size_t k = 0; k < count; ++k) steps[k] = 0.125f * static_cast<float>(1 + k * 5 % 7) / 4;
  if (scale_dims.empty()) scale_dims.assign(scales.begin(), scales.end());
  Sample made{.name = name,
              .inputs = {f32(std::move(x)), f32(scale_dims)},
              .attrs = std::move(attrs),
              .sizes = std::move(sizes),
              .low = -16,
              .high = 16,
              .int_low = zeros == DType::u8 ? 0 : -100,
              .int_high = 100};
  made.given = {{1, f32_data(std::move(scales), steps)}};
  if (zeros != DType::none) made.inputs.push_back(make_type(zeros, std::move(scale_dims)));
  out.push_back(std::move(made));
}
AttrMap along(AttrMap attrs, int64_t axis, int64_t group = 0) {
  attrs["axis"] = axis;
  attrs["group"] = group;
  return attrs;
}
// What is not finite, halves, and what is beyond the range.
void sample_of_edges(SampleSink &out, AttrMap attrs) {
  scaled_sample(out, "edges", {12}, {}, std::move(attrs), DType::i8);
  out.back().given = {
      {0, f32_data({12}, {NAN, INFINITY, -INFINITY, 0.f, -0.f, 0.25f, 0.75f, -0.25f, -0.75f, 1e30f, -1e30f, 63.75f})},
      {1, f32_data({}, {0.5f})},
      {2, tensor_of<int8_t>(DType::i8, {}, {3})}};
}

void samples_quantize(SampleSink &out) {
  const Dim n = sym("n"), k = sym("k");
  const AttrMap bytes = {{"dtype", DType::u8}}, nibbles = {{"dtype", DType::u8}, {"bits", 4}};
  AttrMap unsigned_nibbles = nibbles;
  unsigned_nibbles["signed"] = false;
  scaled_sample(out, "one_scale", {17, 5}, {}, {}, DType::none);
  scaled_sample(out, "one_scale_and_zero", {33}, {}, bytes, DType::u8);
  scaled_sample(out, "scalar", {}, {}, {}, DType::i8);
  scaled_sample(out, "rows", {5, 17}, {5}, {}, DType::i8);
  scaled_sample(out, "columns", {5, 17}, {17}, along(bytes, -1), DType::u8);
  scaled_sample(out, "groups", {3, 24, 2}, {3, 3, 2}, along({}, 1, 8), DType::none);
  scaled_sample(out, "nibbles", {5, 18}, {5}, nibbles, DType::none);
  scaled_sample(out, "nibbles_in_groups", {5, 24}, {5, 3}, along(unsigned_nibbles, 1, 8), DType::u8);
  scaled_sample(out, "empty", {0, 3}, {3}, along({}, 1), DType::none);
  scaled_sample(out, "symbolic", {n, k}, {3}, {}, DType::i8, {{"n", 3}, {"k", 7}}, {n});
  scaled_sample(out, "symbolic_nibbles", {n, 2 * k}, {1, 2}, along(nibbles, 1, 4), DType::none, {{"n", 1}, {"k", 4}},
                {n, floor_div(2 * k, 4)});
  sample_of_edges(out, {});
}

void samples_fake_quantize(SampleSink &out) {
  const Dim n = sym("n"), k = sym("k");
  const AttrMap few = {{"quant_min", 0}, {"quant_max", 15}};
  scaled_sample(out, "one_scale", {17, 5}, {}, {}, DType::none);
  scaled_sample(out, "scalar", {}, {}, few, DType::u8);
  scaled_sample(out, "rows", {5, 17}, {5}, {}, DType::i8);
  scaled_sample(out, "columns", {5, 17}, {17}, along(few, -1), DType::none);
  scaled_sample(out, "groups", {3, 24, 2}, {3, 3, 2}, along(few, 1, 8), DType::u8);
  scaled_sample(out, "one_number", {9}, {1}, along({{"quant_min", 3}, {"quant_max", 3}}, 0, 9), DType::none);
  scaled_sample(out, "empty", {0, 3}, {3}, along({}, 1), DType::none);
  scaled_sample(out, "symbolic", {n, k}, {3}, {}, DType::i8, {{"n", 3}, {"k", 7}}, {n});
  sample_of_edges(out, {});
}

// ---- records

constexpr std::string_view scales_of_x =
    "above 0, [dim axis of x]; with groups x's shape, but dim axis is how many groups there are; []: all share it";

const Op quantizing_records[] = {
    {{.name = "quantize",
      .doc = "round(x / scales) + zeros, clamped to what numbers of 8 or 4 bits hold: what dequantize, with the same "
             "attributes, gives back. Halves are rounded to even, NaN is 0. Computed in f32, of f64 in f64; PyTorch "
             "multiplies by 1 / scale, which is rounded once more.",
      .args = {{"x", "any shape", float_types},
               {"scales", scales_of_x, float_types, Arity::one, /*same_dtype=*/false},
               zeros_arg()},
      .result_names = {"y"},
      .attrs = {{.name = "dtype",
                 .doc = "i8 or u8; of 4 bits u8, which is [..., K / 2]: two numbers a byte, the lower bits first",
                 .kind = AttrKind::dtype,
                 .fallback = DType::i8},
                {.name = "bits", .doc = "of a number: 8 or 4", .kind = AttrKind::i64, .fallback = 8},
                flag("signed", "numbers of 4 bits are two's complement, -8 to 7, not 0 to 15; of 8 bits dtype tells",
                     true),
                axis_attr("of x: along which scales differ"),
                group_attr()},
      .infer = infer_quantize},
     {.lower = lower_quantize,
      .reference = reference_quantize,
      .gradient = gives_integers,
      .samples = samples_quantize}},

    {{.name = "fake_quantize",
      .doc =
          "x as quantize and dequantize leave it: (clamp(round(x / scales) + zeros, quant_min, quant_max) - zeros) * "
          "scales. Halves are rounded to even, NaN stays. Computed in f32, of f64 in f64; PyTorch multiplies by "
          "1 / scale, which is rounded once more.",
      .args = {{"x", "any shape", float_types},
               {"scales", scales_of_x, float_types, Arity::one, /*same_dtype=*/false},
               zeros_arg()},
      .result_names = {"y"},
      .attrs = {{.name = "quant_min", .doc = "the least number", .kind = AttrKind::i64, .fallback = -128},
                {.name = "quant_max", .doc = "the largest", .kind = AttrKind::i64, .fallback = 127},
                axis_attr("of x: along which scales differ"),
                group_attr()},
      .infer = infer_fake_quantize},
     {.lower = lower_fake_quantize,
      .reference = reference_fake_quantize,
      .gradient = by_rule("x"),
      .samples = samples_fake_quantize}},
};

}  // namespace

std::span<const Op> quantizing_ops() { return quantizing_records; }

}  // namespace kiln::ops
