// Numbers in fewer bits: integers that count steps of a scale.
#include "runtime/ops/quantization.h"

namespace kiln::ops {
namespace {

// Holds operand `input`, the scales or the zero points, to what the shape of the floats, `name`, and the attributes
// demand.
Status check_scales(InferContext &c, size_t input, const Shape &shape, size_t axis, std::string_view name) {
  const TensorType &type = c.inputs[input];
  const int64_t group = c.attr("group").i64();
  Shape dims = group ? shape : Shape{shape[axis]};
  if (group) dims[axis] = floor_div(shape[axis], group);
  if (type.rank() != dims.size())
    return c.fail(c.arg_name(input), " is ", type.text(), ", expected ", make_type(type.dtype, dims).text());
  for (size_t d = 0; d < dims.size(); ++d) {
    const bool groups = group && d == axis;
    KILN_TRY(c.require_equal(type.dims[d], dims[d],
                             str_cat(c.arg_name(input), " dim ", d, " and ", groups ? "the groups of " : "", name,
                                     " dim ", group ? d : axis)));
  }
  return {};
}

}  // namespace

Status check_scaling(InferContext &c, const Shape &shape, std::string_view name) {
  const int64_t group = c.attr("group").i64();
  const int64_t given = c.attr("axis").i64();
  const bool for_all = c.inputs[1].rank() == 0 && group == 0;
  if (for_all && shape.empty() && given == 0) return c.inputs.size() == 3 ? require_rank(c, 2, 0) : Status();
  KILN_ASSIGN(const int64_t axis, c.axis(given, shape.size(), "axis"));
  if (for_all) return c.inputs.size() == 3 ? require_rank(c, 2, 0) : Status();
  const auto d = static_cast<size_t>(axis);
  if (group < 0) return c.fail("group is ", group, ", expected at least 0");
  if (group && shape[d].is_integer() && shape[d].integer() % group)
    return c.fail(name, " dim ", d, " is ", shape[d].text(), ", expected a multiple of group, ", group);
  if (group) KILN_TRY(c.require_equal(mod(shape[d], group), 0, str_cat(name, " dim ", d, " modulo group and 0")));
  for (size_t input = 1; input < c.inputs.size(); ++input) KILN_TRY(check_scales(c, input, shape, d, name));
  return {};
}

int load_scale(LowerContext &c, size_t input, std::vector<Expr> at, DType as) {
  const int64_t group = c.attr("group").i64();
  if (c.inputs[input].rank() == 0) {
    at.clear();
  } else {
    const size_t axis = normal_axis(c.attr("axis").i64(), at.size());
    at[axis] = group ? floor_div(at[axis], group) : at[axis];
    if (!group) at = {at[axis]};
  }
  return c.body.convert(c.load(input, std::move(at)), as);
}

size_t scale_of(const ReferenceContext &c, std::span<const int64_t> shape, int64_t k) {
  if (c.inputs[1]->shape.empty()) return 0;
  const auto axis = normal_axis(c.attr("axis").i64(), shape.size());
  const int64_t group = c.attr("group").i64(), inner = count_of(shape.subspan(axis + 1));
  const int64_t step = k / inner % shape[axis], outer = k / inner / shape[axis];
  return static_cast<size_t>(group ? (outer * (shape[axis] / group) + step / group) * inner + k % inner : step);
}

namespace {

using kernel::Core;

constexpr DTypes scale_types = dtypes(DType::f32, DType::f16, DType::bf16);

// The shape of the result: a byte of two numbers counts twice in the last dim.
Shape unpacked(const TensorType &weight, int64_t bits) {
  Shape shape = weight.dims;
  if (bits == 4) shape.back() = shape.back() * 2;
  return shape;
}

// ---- dequantize

Status infer_dequantize(InferContext &c) {
  const TensorType &weight = c.inputs[0];
  const int64_t bits = c.attr("bits").i64();
  if (bits != 4 && bits != 8) return c.fail("bits is ", bits, ", expected 4 or 8");
  if (bits == 4 && weight.dtype != DType::u8)
    return c.fail("weight is ", name_of(weight.dtype), ", expected u8, which holds two numbers of 4 bits");
  if (weight.rank() == 0 && (bits == 4 || c.inputs[1].rank() != 0))
    return c.fail("weight is ", weight.text(), ", expected at least 1 dim");
  KILN_TRY(require_dtype(c, c.attr("dtype").dtype(), scale_types));
  Shape shape = unpacked(weight, bits);
  KILN_TRY(check_scaling(c, shape, "y"));
  c.results = {make_type(c.attr("dtype").dtype(), std::move(shape))};
  return {};
}

// The stored number at the result's axes, in f32.
int load_quantized(LowerContext &c) {
  std::vector<Expr> at = c.axes();
  if (c.attr("bits").i64() == 8) return c.body.convert(c.load(0, std::move(at)), DType::f32);
  const Expr last = at.back();
  at.back() = floor_div(last, 2);
  const int byte = c.load(0, std::move(at));
  const int shift = c.body.convert(c.body.index(mod(last, 2) * 4), DType::u8);
  const int number =
      c.body.op(Core::bit_and, c.body.op(Core::shift_right, byte, shift), c.body.constant(DType::u8, 15));
  if (!c.attr("signed").boolean()) return c.body.convert(number, DType::f32);
  // Two's complement: -8 .. -1 are 8 .. 15, and (number ^ 8) - 8 is the way back.
  const int moved = c.body.op(Core::bit_xor, number, c.body.constant(DType::u8, 8));
  return c.body.op(Core::sub, c.body.convert(moved, DType::f32), c.body.constant(DType::f32, 8));
}

Status lower_dequantize(LowerContext &c) {
  const std::vector<Expr> at = c.axes();
  int value = load_quantized(c);
  if (c.inputs.size() == 3) value = c.body.op(Core::sub, value, load_scale(c, 2, at, DType::f32));
  value = c.body.op(Core::mul, value, load_scale(c, 1, at, DType::f32));
  c.body.yield(c.body.convert(value, c.result.dtype));
  return {};
}

Status reference_dequantize(ReferenceContext &c) {
  const RefTensor &y = c.results[0];
  const bool packed = c.attr("bits").i64() == 4, is_signed = c.attr("signed").boolean();
  const ReadElements<int64_t> weight(*c.inputs[0]), zeros(*c.inputs.back());
  const ReadElements<double> scales(*c.inputs[1]);
  const auto value = [&](int64_t k) {
    int64_t number = weight[static_cast<size_t>(packed ? k / 2 : k)];
    if (packed) {
      number = k % 2 ? number / 16 : number % 16;
      if (is_signed && number >= 8) number -= 16;
    }
    const size_t scale = scale_of(c, y.shape, k);
    const int64_t zero = c.inputs.size() == 3 ? zeros[scale] : 0;
    return static_cast<float>(static_cast<double>(number - zero) * scales[scale]);
  };
  return make_each<double>(c, value, 4);
}

void samples_dequantize(SampleSink &out) {
  const Dim n = sym("n"), k = sym("k");
  auto sample = [&](const char *name, DType weight, Shape shape, Shape scales, AttrMap attrs, DType zeros = DType::none,
                    std::map<std::string, int64_t> sizes = {}) {
    const bool is_signed = weight == DType::i8;
    out.push_back({.name = name,
                   .inputs = {make_type(weight, std::move(shape)), f32(scales)},
                   .attrs = std::move(attrs),
                   .sizes = std::move(sizes),
                   .int_low = is_signed ? -128 : 0,
                   .int_high = is_signed ? 128 : 256});
    if (zeros != DType::none) out.back().inputs.push_back(make_type(zeros, std::move(scales)));
  };
  const AttrMap nibbles = {{"bits", 4}}, unsigned_nibbles = {{"bits", 4}, {"signed", false}};
  auto with = [](AttrMap attrs, int64_t axis, int64_t group) {
    attrs["axis"] = axis;
    attrs["group"] = group;
    return attrs;
  };
  sample("channels", DType::i8, {17, 33}, {17}, {});
  sample("last_axis", DType::i8, {17, 33}, {33}, {{"axis", -1}});
  sample("zeros", DType::u8, {17, 33}, {17}, {}, DType::u8);
  sample("zeros_of_another_sign", DType::i8, {9, 5}, {9}, {}, DType::i8);
  sample("filters", DType::i8, {5, 3, 3, 3}, {5}, {}, DType::i8);
  sample("groups", DType::i8, {7, 96}, {7, 3}, with({}, 1, 32), DType::i8);
  sample("groups_of_the_first_axis", DType::u8, {12, 5}, {3, 5}, with({}, 0, 4), DType::u8);
  sample("vector", DType::i8, {65}, {65}, {});
  sample("nibbles", DType::u8, {9, 17}, {9}, nibbles);
  sample("nibbles_without_sign", DType::u8, {9, 17}, {9}, unsigned_nibbles, DType::u8);
  sample("nibbles_of_the_last_axis", DType::u8, {9, 17}, {34}, with(nibbles, 1, 0));
  sample("nibbles_in_groups", DType::u8, {7, 48}, {7, 3}, with(nibbles, 1, 32), DType::i8);
  sample("nibbles_in_odd_groups", DType::u8, {4, 15}, {4, 10}, with(unsigned_nibbles, 1, 3), DType::u8);
  sample("nibbles_in_one_group", DType::u8, {5, 8}, {5, 1}, with(nibbles, -1, 16));
  sample("one_scale", DType::u8, {3, 5, 7}, {}, {}, DType::u8);
  sample("nibbles_of_one_scale", DType::u8, {3, 5}, {}, nibbles);
  sample("scalar", DType::i8, {}, {}, {});
  sample("no_rows", DType::i8, {0, 8}, {0}, {});
  sample("no_columns", DType::u8, {3, 0}, {3}, nibbles);
  sample("symbolic", DType::u8, {n, k}, {n}, nibbles, DType::u8, {{"n", 5}, {"k", 3}});
  sample("symbolic_groups", DType::i8, {n, k}, {n, floor_div(k, 8)}, with({}, 1, 8), DType::none,
         {{"n", 1}, {"k", 24}});
  sample("symbolic_ones", DType::i8, {n, k}, {n}, {}, DType::i8, {{"n", 1}, {"k", 1}});
  sample("of_a_type", DType::i8, {2, 3}, {2}, {{"dtype", DType::f32}});
  sample("infinite_scale", DType::i8, {2, 2}, {2}, {});
  out.back().given = {{0, tensor_of<int8_t>(DType::i8, {2, 2}, {0, 127, -128, 1})},
                      {1, f32_data({2}, {INFINITY, 1e38f})}};
}

// ---- records

const Op quantization_records[] = {
    {{.name = "dequantize",
      .doc = "(weight - zeros) * scales: weights of 8 or 4 bits as floats. Computed in f32 and rounded once; what "
             "multiplies by it (matmul, linear, convolutions) or looks rows up (embedding) unpacks it where it "
             "reads, so that the floats need no memory.",
      .args = {{"weight", "any shape; of 4 bits [..., K / 2], two numbers a byte, the lower bits first", stored_types},
               {"scales",
                "[dim axis of y]; with groups y's shape, but dim axis is how many groups there are; []: all share it",
                scale_types, Arity::one, /*same_dtype=*/false},
               zeros_arg()},
      .result_names = {"y"},
      .attrs = {{.name = "bits", .doc = "of a number: 8 or 4", .kind = AttrKind::i64, .fallback = 8},
                flag("signed",
                     "numbers of 4 bits are two's complement, -8 to 7, not 0 to 15; of 8 bits weight's type tells",
                     true),
                axis_attr("of y: along which scales differ"),
                group_attr(),
                {.name = "dtype", .doc = "of y: f32, f16 or bf16", .kind = AttrKind::dtype, .fallback = DType::f32}},
      .infer = infer_dequantize},
     {.lower = lower_dequantize,
      .reference = reference_dequantize,
      .gradient = by_rule("scales"),
      .samples = samples_dequantize}},
};

}  // namespace

std::span<const Op> quantization_ops() { return quantization_records; }

}  // namespace kiln::ops
