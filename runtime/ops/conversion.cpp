// From one element type to another.
#include <cmath>

#include "jit/base/small_float.h"
#include "runtime/ops/family.h"

namespace kiln::ops {
namespace {

using kernel::Core;

Status infer_convert(InferContext &c) {
  const DType to = c.attr("dtype").dtype();
  KILN_TRY(require_dtype(c, to, any_type));
  if (!c.attr("saturate").boolean() && !(dtypes(to) & byte_floats))
    return c.fail("saturate is false and dtype is ", name_of(to), "; expected saturate only of f8_e4m3fn and f8_e5m2");
  c.results = {make_type(c.attr("dtype").dtype(), c.inputs[0].dims)};
  return {};
}

// x, of type `from`, as a double that is rounded once more, to the float dtype `to`.
double converted(double x, DType, DType to) { return is_small_float(to) ? saturated(x, small_format(to)) : x; }
double converted(int64_t x, DType from, DType to) {
  const bool is_small = is_small_float(to);
  const long double exact =
      dtype_info(from).is_signed ? static_cast<long double>(x) : static_cast<long double>(static_cast<uint64_t>(x));
  if (to == DType::f64) return static_cast<double>(exact);
  return is_small ? saturated(rounded_to_odd(exact), small_format(to)) : rounded_to_odd(exact);
}

Status lower_convert(LowerContext &c) {
  kernel::BodyBuilder &body = c.body;
  const DType to = c.result.dtype;
  int x = c.load(0);
  const int y = body.convert(x, to);
  if (c.attr("saturate").boolean() || body.type(x) == to) return body.yield(y), Status();
  if (is_small_float(body.type(x))) x = body.convert(x, DType::f32);  // exact
  const DType from = body.type(x);
  const FloatFormat format = small_format(to);
  const double bound = overflow_bound(format);
  // Where no number of `from` is beyond the bound, there is nothing to look at: bytes, and i16 for f8_e5m2.
  const DTypeInfo &info = dtype_info(from);
  if (!info.is_float && std::ldexp(1.0, static_cast<int>(8 * size_of(from)) - info.is_signed) <= bound)
    return body.yield(y), Status();
  const double beyond = format.is_finite ? std::nan("") : infinity;
  const Core at_bound = overflows_at_bound(format) ? Core::ge : Core::gt;
  int result = body.op(Core::select, body.op(at_bound, x, body.constant(from, bound)), body.constant(to, beyond), y);
  if (info.is_signed)
    result =
        body.op(Core::select, body.op(at_bound, body.constant(from, -bound), x), body.constant(to, -beyond), result);
  body.yield(result);
  return {};
}

Status reference_convert(ReferenceContext &c) {
  const RefTensor &x = *c.inputs[0];
  RefTensor &out = c.results[0];
  const bool saturates = c.attr("saturate").boolean(), is_float = out.is_float();
  const auto convert = [&](auto value) {
    const WriteAny results(out);
    const ReadElements<decltype(value)> in(x);
    return c.for_ranges(out.size(), 2, [&](int64_t begin, int64_t end) -> Status {
      for (auto k = static_cast<size_t>(begin); k < static_cast<size_t>(end); ++k) {
        if (x.dtype == out.dtype)  // even what a conversion would saturate
          results.set(k, in[k]);
        else if (is_float)
          results.set(k, saturates ? converted(in[k], x.dtype, out.dtype)
                                   : unsaturated(converted(in[k], x.dtype, DType::f64), small_format(out.dtype)));
        else if constexpr (std::is_same_v<decltype(value), double>)
          results.set(k, to_integer(in[k], out.dtype));
        else
          results.set(k, in[k]);
      }
      return {};
    });
  };
  return x.is_float() ? convert(double{}) : convert(int64_t{});
}

void samples_convert(SampleSink &out) {
  out.push_back(
      {.name = "f32_to_i64", .inputs = {f32({65})}, .attrs = {{"dtype", DType::i64}}, .low = -40, .high = 40});
  out.push_back({.name = "f32_to_i64_edges",
                 .inputs = {f32({8})},
                 .attrs = {{"dtype", DType::i64}},
                 .given = {{0, f32_data({8}, {1e30f, -1e30f, INFINITY, -INFINITY, NAN, -0.9f, 0.9f, -1.5f})}}});
  out.push_back({.name = "i64_to_f32", .inputs = {i64({3, 7})}, .attrs = {{"dtype", DType::f32}}});
  out.push_back({.name = "i64_to_f32_large",
                 .inputs = {i64({4})},
                 .attrs = {{"dtype", DType::f32}},
                 .given = {{0, i64_data({4}, {i64_max, i64_min, (int64_t{1} << 40) + 1, -3})}}});
  out.push_back({.name = "f32_to_bool",
                 .inputs = {f32({5})},
                 .attrs = {{"dtype", DType::boolean}},
                 .given = {{0, f32_data({5}, {0.f, -0.f, 1e-40f, NAN, 2.f})}}});
  out.push_back({.name = "i64_to_bool", .inputs = {i64({33})}, .attrs = {{"dtype", DType::boolean}}});
  out.push_back({.name = "bool_to_f32", .inputs = {boolean({2, 17})}, .attrs = {{"dtype", DType::f32}}});
  out.push_back({.name = "bool_to_i64", .inputs = {boolean({7})}, .attrs = {{"dtype", DType::i64}}});
  out.push_back({.name = "same", .inputs = {f32({sym("n")})}, .attrs = {{"dtype", DType::f32}}, .sizes = {{"n", 3}}});
  out.push_back({.name = "same_infinite",
                 .inputs = {make_type(DType::f8_e5m2, {4})},
                 .attrs = {{"dtype", DType::f8_e5m2}},
                 .given = {{0, {DType::f8_e5m2, {4}, {0x7c, 0xfc, 0x7b, 0x38}}}}});  // +-infinity, the largest, 0.5
  // Around the points where each format overflows: 464 and 61440.
  const std::vector<float> edges = {448,   464,    464.0001f, -465,     480,       61439,
                                    61440, -61440, 57345,     INFINITY, -INFINITY, NAN};
  for (const DType to : {DType::f8_e4m3fn, DType::f8_e5m2}) {
    const AttrMap attrs = {{"dtype", to}, {"saturate", false}};
    const std::string name = str_cat("unsaturated_", name_of(to));
    out.push_back({.name = name, .inputs = {f32({12})}, .attrs = attrs, .given = {{0, f32_data({12}, edges)}}});
    out.push_back({.name = name + "_of_i64",
                   .inputs = {i64({6})},
                   .attrs = attrs,
                   .given = {{0, i64_data({6}, {464, 465, -465, 61440, -61440, i64_min})}}});
    for (const DType from : {DType::u8, DType::i16, DType::u64, DType::f16, DType::f64, DType::f8_e5m2})
      out.push_back({.name = str_cat(name, "_of_", name_of(from)),
                     .inputs = {make_type(from, {40})},
                     .attrs = attrs,
                     .low = -70000,
                     .high = 70000,
                     .int_low = dtype_info(from).is_signed ? -1000 : 0,
                     .int_high = from == DType::u8 ? 128 : 100000});
  }
  out.push_back({.name = "empty", .inputs = {f32({0})}, .attrs = {{"dtype", DType::i64}}});
}

const Op conversion_records[] = {
    {{.name = "convert",
      .doc = "Changes the dtype. Float to integer truncates and saturates, NaN gives 0; to bool: x != 0. To an 8-bit "
             "float it "
             "saturates, infinities too, unless saturate is false: then what is larger becomes infinity in f8_e5m2 and "
             "NaN "
             "in f8_e4m3fn, which has none.",
      .flags = op_flags::moves,
      .args = {{"x", "any shape", any_type}},
      .result_names = {"y"},
      .attrs = {{.name = "dtype", .doc = "of the result", .kind = AttrKind::dtype, .required = true},
                flag("saturate", "of 8-bit floats: what is too large becomes the largest number", true)},
      .infer = infer_convert},
     {.lower = lower_convert, .reference = reference_convert, .gradient = by_rule("x"), .samples = samples_convert}},
};

}  // namespace

std::span<const Op> conversion_ops() { return conversion_records; }

}  // namespace kiln::ops
