// Every core op of every dtype it takes, at every level: accepted by the image writer (nothing calls out, nothing is
// undefined), and computing what core_ops.def says.
#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "jit/base/small_float.h"
#include "tests/unit/jit/llvm/compiled_kernel.h"

namespace kiln::codegen::testing {
namespace {

constexpr DType arithmetic_types[] = {DType::f64, DType::f32, DType::i64, DType::i32, DType::i16,
                                      DType::i8,  DType::u64, DType::u32, DType::u16, DType::u8};
constexpr DType all_types[] = {DType::f64, DType::f32,     DType::f16, DType::bf16, DType::f8_e4m3fn,
                               DType::i64, DType::i32,     DType::i16, DType::i8,   DType::f8_e5m2,
                               DType::u8,  DType::boolean, DType::u16, DType::u32,  DType::u64};

// Small floats are stored and converted, not computed with.
bool takes(Core op, DType type) {
  const bool is_half = is_small_float(type);
  switch (core_info(op).group) {
    case CoreGroup::number:
      return !is_half && type != DType::boolean;
    case CoreGroup::real:
      return !is_half && dtype_info(type).is_float;
    case CoreGroup::integer:
      return dtype_info(type).is_integer;
    case CoreGroup::compare:
      return !is_half && (type != DType::boolean || op == Core::eq || op == Core::ne);
    case CoreGroup::logical:
      return type == DType::boolean;
    case CoreGroup::in_range:
      return type == DType::i64;
    case CoreGroup::select:
      return true;
    case CoreGroup::leaf:
    case CoreGroup::convert:  // these two have loops of their own
    case CoreGroup::search:
      return false;
  }
  return false;
}

// out[i] = op(a[i], b[i], ...) over n points; `from` is the operands' type.
Kernel op_kernel(Core op, DType from, DType to) {
  const Expr n = Expr::symbol("s0"), i = axis(0, n);
  Kernel kernel;
  kernel.symbols = {"s0"};
  kernel.buffers = {in(from), in(from), in(DType::boolean), out(to)};
  kernel.parallel = {parallel(n)};
  kernel.schedule.tiles = {64};
  Stage stage;
  BodyBuilder b(stage.body);
  const int x = b.load(0, from, {i}), y = b.load(1, from, {i});
  if (op == Core::convert) {
    b.yield(b.convert(x, to));
  } else if (op == Core::select) {
    b.yield(b.op(op, b.load(2, DType::boolean, {i}), x, y));
  } else {
    b.yield(core_info(op).operands == 1 ? b.op(op, x) : b.op(op, x, y));
  }
  kernel.buffers[3].type = b.type(stage.body.yields[0]);
  stage.stores = {store_at(3, i)};
  kernel.stages = {stage};
  return kernel;
}

TEST(CoreOps, EachOfEachDtypeBecomesAnImageAtEveryLevel) {
  for (const Target &target : all_targets()) {
    SCOPED_TRACE("at level " + target.name());
    std::vector<Bytes> kernels;
    std::vector<std::string> names;
    const auto add = [&](Kernel kernel, std::string name) {
      for (Schedule::Vector vector : {Schedule::Vector::parallel, Schedule::Vector::inner}) {
        kernel.schedule.vector = vector;  // inner: no stage axis, so scalar code
        set_target(kernel, target);
        kernels.push_back(serialize(kernel));
        names.push_back(name);
      }
    };
    for (int op = 0; op < static_cast<int>(core_count); ++op) {
      for (DType type : all_types) {
        if (takes(static_cast<Core>(op), type))
          add(op_kernel(static_cast<Core>(op), type, type),
              str_cat(core_info(static_cast<Core>(op)).name, " of ", name_of(type)));
      }
    }
    for (DType from : all_types)
      for (DType to : all_types)
        if (from != to)
          add(op_kernel(Core::convert, from, to), str_cat("convert ", name_of(from), " to ", name_of(to)));
    const std::vector<Compiled> compiled = compile_all(kernels, target.name(), 2);
    ASSERT_EQ(compiled.size(), kernels.size());
    for (size_t k = 0; k < compiled.size(); ++k) EXPECT_EQ(compiled[k].error, "") << names[k];
  }
}

// Runs a kernel of up to two operands over all pairs, in vectors and in scalar code.
template <class From, class To>
void expect_op(Core op, DType from, DType to, const std::vector<From> &values,
               const std::function<To(From, From)> &expected) {
  at_every_level([&](const Target &target) {
    for (Schedule::Vector vector : {Schedule::Vector::parallel, Schedule::Vector::inner}) {
      Kernel source = op_kernel(op, from, to);
      source.schedule.vector = vector;
      const LoadedKernel kernel(source, target);
      std::vector<From> a, b;
      for (From x : values) {
        for (From y : values) {
          a.push_back(x);
          b.push_back(y);
        }
      }
      std::vector<uint8_t> choice(a.size());
      for (size_t k = 0; k < choice.size(); ++k) choice[k] = k % 3 == 0;
      std::vector<To> result(a.size());
      kernel.run({data_of(a), data_of(b), data_of(choice), data_of(result)}, {static_cast<int64_t>(a.size())});
      for (size_t k = 0; k < a.size(); ++k) {
        const To want = expected(a[k], b[k]);
        const bool both_nan = want != want && result[k] != result[k];
        ASSERT_TRUE(both_nan || result[k] == want)
            << core_info(op).name << " " << name_of(from) << " to " << name_of(to) << ": " << +a[k] << ", " << +b[k]
            << " gives " << +result[k] << ", expected " << +want;
      }
    }
  });
}

const std::vector<float> special_floats = {
    0.0f,   -0.0f, 0.5f,   -0.5f,  1.5f,    2.5f,   -2.5f,     3.7f,   -3.7f,    1e9f,      -1e9f,         3e10f,
    -3e10f, 1e30f, -1e30f, 127.9f, -128.9f, 255.5f, 8388609.f, 1e-40f, INFINITY, -INFINITY, std::nanf(""), 9.3e18f};

template <class To>
To saturate(float x) {
  if (std::isnan(x)) return 0;
  if (static_cast<double>(x) >= static_cast<double>(std::numeric_limits<To>::max()))
    return std::numeric_limits<To>::max();
  if (static_cast<double>(x) <= static_cast<double>(std::numeric_limits<To>::min()))
    return std::numeric_limits<To>::min();
  return static_cast<To>(x);
}

TEST(CoreOps, FloatToIntegerTruncatesAndSaturates) {
  const auto test = [](auto zero, DType to) {
    using To = decltype(zero);
    expect_op<float, To>(Core::convert, DType::f32, to, special_floats, [](float x, float) { return saturate<To>(x); });
  };
  test(int64_t{}, DType::i64);
  test(int32_t{}, DType::i32);
  test(int16_t{}, DType::i16);
  test(int8_t{}, DType::i8);
  test(uint8_t{}, DType::u8);
  test(uint16_t{}, DType::u16);
  test(uint32_t{}, DType::u32);
  test(uint64_t{}, DType::u64);
  expect_op<float, uint8_t>(Core::convert, DType::f32, DType::boolean, special_floats,
                            [](float x, float) { return static_cast<uint8_t>(x != 0); });
}

TEST(CoreOps, IntegersConvertByValueAndWrap) {
  const std::vector<int64_t> values = {0,   1,     -1,        127,       128,       -129,   255,
                                       256, 65535, INT32_MAX, INT64_MAX, INT64_MIN, 1 << 25};
  expect_op<int64_t, float>(Core::convert, DType::i64, DType::f32, values,
                            [](int64_t x, int64_t) { return static_cast<float>(x); });
  expect_op<int64_t, uint8_t>(Core::convert, DType::i64, DType::u8, values,
                              [](int64_t x, int64_t) { return static_cast<uint8_t>(x); });
  expect_op<uint8_t, int32_t>(Core::convert, DType::u8, DType::i32, {0, 1, 127, 128, 255},
                              [](uint8_t x, uint8_t) { return int32_t{x}; });
  expect_op<uint8_t, float>(Core::convert, DType::u8, DType::f32, {0, 1, 127, 128, 255},
                            [](uint8_t x, uint8_t) { return static_cast<float>(x); });
  expect_op<int8_t, int64_t>(Core::convert, DType::i8, DType::i64, {0, 1, 127, -128, -1},
                             [](int8_t x, int8_t) { return int64_t{x}; });
}

TEST(CoreOps, HalfFloatsConvertWithoutLoss) {
  std::vector<uint16_t> bits;
  for (uint32_t b :
       {0u, 1u, 2u, 0x3ffu, 0x400u, 0x3555u, 0x3c00u, 0x7bffu, 0x7c00u, 0x8000u, 0x8001u, 0xbc00u, 0xfc00u})
    bits.push_back(static_cast<uint16_t>(b));
  expect_op<uint16_t, float>(Core::convert, DType::f16, DType::f32, bits, [](uint16_t x, uint16_t) {
    const int exponent = x >> 10 & 31;
    const double mantissa = x & 0x3ff;
    const double size = exponent == 31  ? INFINITY
                        : exponent == 0 ? std::ldexp(mantissa, -24)
                                        : std::ldexp(1024 + mantissa, exponent - 25);
    return static_cast<float>(x & 0x8000 ? -size : size);
  });
  expect_op<uint16_t, float>(Core::convert, DType::bf16, DType::f32, bits,
                             [](uint16_t x, uint16_t) { return std::bit_cast<float>(uint32_t{x} << 16); });
  const std::vector<float> floats = {0.0f,           -0.0f,    1.0f,      1.0009766f, 1.00048828125f,
                                     1.00146484375f, 65504.0f, 65519.0f,  65520.0f,   1e-7f,
                                     6e-8f,          2.9e-8f,  -INFINITY, 0.1f,       1e38f};
  const std::vector<uint16_t> halves = {0,      0x8000, 0x3c00, 0x3c01, 0x3c00, 0x3c02, 0x7bff, 0x7bff,
                                        0x7c00, 2,      1,      0,      0xfc00, 0x2e66, 0x7c00};
  expect_op<float, uint16_t>(Core::convert, DType::f32, DType::f16, floats, [&](float x, float) {
    const auto same = [&](float y) { return std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y); };
    return halves[static_cast<size_t>(std::find_if(floats.begin(), floats.end(), same) - floats.begin())];
  });
  expect_op<float, uint16_t>(Core::convert, DType::f32, DType::bf16, floats, [](float x, float) {
    const uint32_t b = std::bit_cast<uint32_t>(x);
    return static_cast<uint16_t>((b + 0x7fff + (b >> 16 & 1)) >> 16);
  });
}

// To and from a small float whose bits are Bits: every number of 8 bits, and of 16 the edges and a sample.
template <class Bits>
void expect_small(DType type) {
  const FloatFormat format = small_format(type);
  std::vector<Bits> bits;
  for (uint32_t b = 0; b < 2 * format.sign(); b += sizeof(Bits) == 1 ? 1 : 257) bits.push_back(static_cast<Bits>(b));
  for (uint32_t b : {1u, format.infinity() - 1, format.infinity(), format.nan(), format.largest()})
    for (uint32_t sign : {0u, format.sign()}) bits.push_back(static_cast<Bits>(b | sign));
  expect_op<Bits, float>(Core::convert, type, DType::f32, bits,
                         [&](Bits x, Bits) { return static_cast<float>(decode_float(x, format)); });
  expect_op<Bits, double>(Core::convert, type, DType::f64, bits, [&](Bits x, Bits) { return decode_float(x, format); });

  // Each number, the middle between it and the next, and their neighbours.
  std::vector<double> numbers = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1e300, -1e300, 1e-300, 5e-324, 3.5e38};
  for (Bits b : bits) {
    const double low = decode_float(b, format), high = decode_float(static_cast<Bits>(b + 1), format);
    const double middle = low + (high - low) / 2;
    for (double x : {low, middle, middle * (1 + 0x1p-23), middle * (1 - 0x1p-30), std::nextafter(middle, INFINITY)})
      if (numbers.size() < 600) numbers.push_back(x);
  }
  std::vector<float> floats;
  for (double x : numbers) floats.push_back(static_cast<float>(x));
  expect_op<double, Bits>(Core::convert, DType::f64, type, numbers, [&](double x, double) {
    return static_cast<Bits>(encode_float(saturated(x, format), format));
  });
  expect_op<float, Bits>(Core::convert, DType::f32, type, floats, [&](float x, float) {
    return static_cast<Bits>(encode_float(saturated(double{x}, format), format));
  });
  const auto integers = [&](auto zero, DType from) {
    using T = decltype(zero);
    std::vector<T> values = {0,
                             1,
                             3,
                             17,
                             100,
                             static_cast<T>(-1),
                             static_cast<T>(-9),
                             std::numeric_limits<T>::max(),
                             std::numeric_limits<T>::min()};
    for (int shift = 8; shift < std::numeric_limits<T>::digits; shift += 9)
      for (int64_t more : {-1, 0, 1}) values.push_back(static_cast<T>((int64_t{0x101} << (shift - 8)) + more));
    expect_op<T, Bits>(Core::convert, from, type, values, [&](T x, T) {
      return static_cast<Bits>(encode_float(saturated(rounded_to_odd(x), format), format));
    });
  };
  integers(int64_t{}, DType::i64);
  integers(uint64_t{}, DType::u64);
  integers(int32_t{}, DType::i32);
  integers(uint32_t{}, DType::u32);
  integers(int16_t{}, DType::i16);
  integers(uint8_t{}, DType::u8);
}

TEST(CoreOps, SmallFloatsConvertAndRoundOnce) {
  expect_small<uint16_t>(DType::f16);
  expect_small<uint16_t>(DType::bf16);
  expect_small<uint8_t>(DType::f8_e4m3fn);
  expect_small<uint8_t>(DType::f8_e5m2);
}

TEST(CoreOps, TheLargerZeroIsThePositiveOne) {
  for (const auto &[op, more] : {std::pair{Core::max, true}, std::pair{Core::min, false}})
    at_every_level([&, op = op, more = more](const Target &target) {
      for (Schedule::Vector vector : {Schedule::Vector::parallel, Schedule::Vector::inner}) {
        Kernel source = op_kernel(op, DType::f32, DType::f32);
        source.schedule.vector = vector;
        const LoadedKernel kernel(source, target);
        std::vector<float> a = {0.0f, 0.0f, -0.0f, -0.0f}, b = {0.0f, -0.0f, 0.0f, -0.0f}, result(4);
        std::vector<uint8_t> choice(4);
        kernel.run({data_of(a), data_of(b), data_of(choice), data_of(result)}, {4});
        for (size_t k = 0; k < 4; ++k)
          EXPECT_EQ(std::signbit(result[k]),
                    more ? std::signbit(a[k]) && std::signbit(b[k]) : std::signbit(a[k]) || std::signbit(b[k]))
              << target.name() << " " << k;
      }
    });
}

TEST(CoreOps, FloatsRoundCompareAndChooseAsC) {
  const auto unary = [](Core op, float (*f)(float)) {
    expect_op<float, float>(op, DType::f32, DType::f32, special_floats, [f](float x, float) { return f(x); });
  };
  unary(Core::floor, [](float x) { return std::floor(x); });
  unary(Core::ceil, [](float x) { return std::ceil(x); });
  unary(Core::trunc, [](float x) { return std::trunc(x); });
  unary(Core::round, [](float x) { return std::nearbyint(x); });
  unary(Core::sqrt, [](float x) { return std::sqrt(x); });
  unary(Core::abs, [](float x) { return std::abs(x); });
  unary(Core::neg, [](float x) { return -x; });
  const auto binary = [](Core op, float (*f)(float, float)) {
    expect_op<float, float>(op, DType::f32, DType::f32, special_floats, f);
  };
  binary(Core::min, [](float x, float y) { return x != x || y != y ? NAN : std::min(x, y); });
  binary(Core::max, [](float x, float y) { return x != x || y != y ? NAN : std::max(x, y); });
  binary(Core::rem, [](float x, float y) {
    const float rest = std::fmod(x, y);
    return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
  });
  binary(Core::div, [](float x, float y) { return x / y; });
  const auto compare = [](Core op, bool (*f)(float, float)) {
    expect_op<float, uint8_t>(op, DType::f32, DType::boolean, special_floats,
                              [f](float x, float y) { return static_cast<uint8_t>(f(x, y)); });
  };
  compare(Core::eq, [](float x, float y) { return x == y; });
  compare(Core::ne, [](float x, float y) { return x != y; });
  compare(Core::lt, [](float x, float y) { return x < y; });
  compare(Core::le, [](float x, float y) { return x <= y; });
  compare(Core::gt, [](float x, float y) { return x > y; });
  compare(Core::ge, [](float x, float y) { return x >= y; });
}

template <class T>
void expect_integers(DType type) {
  using Unsigned = std::make_unsigned_t<T>;
  const std::vector<T> values = {0,
                                 1,
                                 2,
                                 3,
                                 7,
                                 static_cast<T>(-1),
                                 static_cast<T>(-2),
                                 static_cast<T>(-5),
                                 std::numeric_limits<T>::max(),
                                 std::numeric_limits<T>::min()};
  const auto binary = [&](Core op, T (*f)(T, T)) { expect_op<T, T>(op, type, type, values, f); };
  binary(Core::add, [](T x, T y) { return static_cast<T>(static_cast<Unsigned>(x) + static_cast<Unsigned>(y)); });
  binary(Core::sub, [](T x, T y) { return static_cast<T>(static_cast<Unsigned>(x) - static_cast<Unsigned>(y)); });
  binary(Core::mul,
         [](T x, T y) { return static_cast<T>(uint64_t{static_cast<Unsigned>(x)} * static_cast<Unsigned>(y)); });
  binary(Core::min, [](T x, T y) { return std::min(x, y); });
  binary(Core::max, [](T x, T y) { return std::max(x, y); });
  binary(Core::neg, [](T x, T) { return static_cast<T>(-static_cast<Unsigned>(x)); });
  binary(Core::abs, [](T x, T) { return x < 0 ? static_cast<T>(-static_cast<Unsigned>(x)) : x; });
  binary(Core::pow, [](T x, T y) {
    if (y < 0) return static_cast<T>(x == 1 ? 1 : x == static_cast<T>(-1) ? (y % 2 == 0 ? 1 : -1) : 0);
    uint64_t result = 1, base = static_cast<uint64_t>(x);
    for (auto e = static_cast<uint64_t>(y); e != 0; e /= 2, base *= base)
      if (e % 2 == 1) result *= base;
    return static_cast<T>(result);
  });
  expect_op<T, uint8_t>(Core::lt, type, DType::boolean, values, [](T x, T y) { return static_cast<uint8_t>(x < y); });
  for (Core op : {Core::floor, Core::ceil, Core::trunc, Core::round}) binary(op, [](T x, T) { return x; });
}

template <class T>
void expect_bits(DType type) {
  constexpr T width = sizeof(T) * 8;
  const std::vector<T> values = {0,
                                 1,
                                 2,
                                 5,
                                 width - 1,
                                 width,
                                 width + 1,
                                 static_cast<T>(-1),
                                 static_cast<T>(-7),
                                 static_cast<T>(0x5a),
                                 std::numeric_limits<T>::max(),
                                 std::numeric_limits<T>::min()};
  const auto binary = [&](Core op, T (*f)(T, T)) { expect_op<T, T>(op, type, type, values, f); };
  binary(Core::bit_and, [](T x, T y) { return static_cast<T>(x & y); });
  binary(Core::bit_or, [](T x, T y) { return static_cast<T>(x | y); });
  binary(Core::bit_xor, [](T x, T y) { return static_cast<T>(x ^ y); });
  binary(Core::bit_not, [](T x, T) { return static_cast<T>(~x); });
  binary(Core::shift_left,
         [](T x, T y) { return y < 0 || y >= width ? T(0) : static_cast<T>(static_cast<uint64_t>(x) << y); });
  binary(Core::shift_right,
         [](T x, T y) { return y < 0 || y >= width ? static_cast<T>(x < 0 ? -1 : 0) : static_cast<T>(x >> y); });
}

TEST(CoreOps, BitsOfIntegersAreOfTheirWidth) {
  expect_bits<int64_t>(DType::i64);
  expect_bits<int32_t>(DType::i32);
  expect_bits<int16_t>(DType::i16);
  expect_bits<int8_t>(DType::i8);
  expect_bits<uint8_t>(DType::u8);
  expect_bits<uint16_t>(DType::u16);
  expect_bits<uint32_t>(DType::u32);
  expect_bits<uint64_t>(DType::u64);
}

TEST(CoreOps, IntegersWrapAtEveryWidth) {
  expect_integers<int64_t>(DType::i64);
  expect_integers<int32_t>(DType::i32);
  expect_integers<int16_t>(DType::i16);
  expect_integers<int8_t>(DType::i8);
  expect_integers<uint8_t>(DType::u8);
  expect_integers<uint16_t>(DType::u16);
  expect_integers<uint32_t>(DType::u32);
  expect_integers<uint64_t>(DType::u64);
}

TEST(CoreOps, BooleansAreBytesOfZeroAndOne) {
  const std::vector<uint8_t> values = {0, 1};
  const auto test = [&](Core op, uint8_t (*f)(uint8_t, uint8_t)) {
    expect_op<uint8_t, uint8_t>(op, DType::boolean, DType::boolean, values, f);
  };
  test(Core::logical_and, [](uint8_t x, uint8_t y) { return static_cast<uint8_t>(x & y); });
  test(Core::logical_or, [](uint8_t x, uint8_t y) { return static_cast<uint8_t>(x | y); });
  test(Core::logical_not, [](uint8_t x, uint8_t) { return static_cast<uint8_t>(!x); });
  expect_op<uint8_t, float>(Core::convert, DType::boolean, DType::f32, values,
                            [](uint8_t x, uint8_t) { return static_cast<float>(x); });
}

}  // namespace
}  // namespace kiln::codegen::testing
