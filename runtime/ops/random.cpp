// Random numbers as a function of (seed, counter), by Philox 4x32-10: J. Salmon et al., "Parallel random numbers: as
// easy as 1, 2, 3", 2011. Block b of four words is Philox of (counter + b, 0) under the key `seed`, low words first;
// element i of a row-major result is made of word i % 4 of block i / 4, one of 64 bits of words 2 * (i % 2) and the
// next of block i / 2. So each element is its own, on every backend, and however work is split.
#include <numbers>

#include "runtime/ops/formula.h"
#include "runtime/ops/random.h"

namespace kiln::ops {
namespace {

constexpr uint64_t multiplier[2] = {0xD2511F53, 0xCD9E8D57}, key_step[2] = {0x9E3779B9, 0xBB67AE85};
constexpr int rounds = 10;

using Block = std::array<uint32_t, 4>;
Block block_at(uint64_t seed, uint64_t counter) {
  Block x{static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0};
  uint32_t key[2] = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
  for (int round = 0; round < rounds; ++round) {
    const uint64_t first = multiplier[0] * x[0], second = multiplier[1] * x[2];
    x = {static_cast<uint32_t>(second >> 32) ^ x[1] ^ key[0], static_cast<uint32_t>(second),
         static_cast<uint32_t>(first >> 32) ^ x[3] ^ key[1], static_cast<uint32_t>(first)};
    for (size_t k = 0; k < 2; ++k) key[k] += static_cast<uint32_t>(key_step[k]);
  }
  return x;
}

}  // namespace

uint64_t bits_at(const ReferenceContext &c, size_t seed, int64_t i, bool wide) {
  const auto scalar = [&](size_t operand) { return ReadElements<uint64_t>(*c.inputs[operand])[0]; };
  const uint64_t key = scalar(seed), counter = scalar(seed + 1);
  const auto k = static_cast<uint64_t>(i);
  const Block block = block_at(key, counter + k / (wide ? 2 : 4));
  if (!wide) return block[k % 4];
  return uint64_t{block[k % 2 * 2]} | uint64_t{block[k % 2 * 2 + 1]} << 32;
}
double unit_at(const ReferenceContext &c, size_t seed, int64_t i, bool wide) {
  const uint64_t bits = bits_at(c, seed, i, wide);
  return wide ? static_cast<double>(bits >> 11) * 0x1p-53 : static_cast<double>(bits >> 8) * 0x1p-24;
}

Status require_key(const InferContext &c, size_t seed) {
  KILN_TRY(require_rank(c, seed, 0));
  return require_rank(c, seed + 1, 0);
}

std::vector<ArgDef> keyed(std::vector<ArgDef> args) {
  const auto key = [&](std::string_view name, std::string_view doc) {
    args.push_back({name, doc, dtypes(DType::u64), Arity::one, /*same_dtype=*/false});
  };
  key("seed", "a scalar; its bits are the key");
  key("counter", "a scalar: the number of the first block");
  return args;
}

void keyed_sample(SampleSink &out, const char *name, std::vector<TensorType> before, AttrMap attrs, bool large,
                  std::map<std::string, int64_t> sizes) {
  Sample made{.name = name, .inputs = std::move(before), .attrs = std::move(attrs), .sizes = std::move(sizes)};
  made.low = 0;
  made.high = 1;
  const size_t seed = made.inputs.size();
  const TensorType key = make_type(DType::u64, {});
  made.inputs.insert(made.inputs.end(), {key, key});
  const auto scalar = [](uint64_t value) { return tensor_of<uint64_t>(DType::u64, {}, {value}); };
  made.given = {{seed, scalar(large ? 0x0123456789abcdef : 0)}, {seed + 1, scalar(large ? 0xfffffffffffffffd : 0)}};
  out.push_back(std::move(made));
}

namespace {

using kernel::Core;

// ---- lowering

Term shifted(const Term &x, double by) { return x.op(Core::shift_right, x.literal(by)); }
Term low_word(const Term &x) { return x.as(DType::u32).as(DType::u64); }

// The words of a block, as u64.
std::array<Term, 4> philox(const Term &seed, const Term &counter) {
  const Term zero = counter.literal(0);
  std::array<Term, 4> x{low_word(counter), shifted(counter, 32), zero, zero};
  std::array<Term, 2> key{low_word(seed), shifted(seed, 32)};
  for (int round = 0; round < rounds; ++round) {
    const Term first = x[0] * static_cast<double>(multiplier[0]), second = x[2] * static_cast<double>(multiplier[1]);
    x = {shifted(second, 32).op(Core::bit_xor, x[1]).op(Core::bit_xor, key[0]), low_word(second),
         shifted(first, 32).op(Core::bit_xor, x[3]).op(Core::bit_xor, key[1]), low_word(first)};
    for (size_t k = 0; k < 2; ++k) key[k] = low_word(key[k] + static_cast<double>(key_step[k]));
  }
  return x;
}

struct Drawn {
  std::array<Term, 4> words;
  Term within;  // which of its block's elements this is
};
// The block that the element is made of; of `elements` in a block.
Drawn block_of(LowerContext &c, size_t seed, int64_t elements) {
  Expr flat = 0;
  for (size_t d = 0; d < c.result.rank(); ++d) flat = flat * c.result.dims[d] + c.axis(d);
  const auto scalar = [&](size_t operand) { return Term(c.body, c.load(operand, {})).as(DType::u64); };
  const Term block = Term(c.body, c.body.index(floor_div(flat, elements))).as(DType::u64);
  return {philox(scalar(seed), scalar(seed + 1) + block), Term(c.body, c.body.index(mod(flat, elements)))};
}

Term word_of(const Drawn &d) {
  return select(d.within < 2, select(d.within == 0, d.words[0], d.words[1]),
                select(d.within == 2, d.words[2], d.words[3]));
}
Term joined(const Term &low, const Term &high) {
  return high.op(Core::shift_left, high.literal(32)).op(Core::bit_or, low);
}

// 32 bits, or 64 for a type of 64 bits, as u64.
Term bits_for(LowerContext &c, size_t seed, DType dtype) {
  if (size_of(dtype) < 8) return word_of(block_of(c, seed, 4));
  const Drawn d = block_of(c, seed, 2);
  return select(d.within == 0, joined(d.words[0], d.words[1]), joined(d.words[2], d.words[3]));
}

// The upper bits as a number of [0, 1), exactly; f64 has 53 of them, f32 24.
Term unit(const Term &bits, DType dtype) {
  return dtype == DType::f64 ? shifted(bits, 11).as(dtype) * 0x1p-53 : shifted(bits, 8).as(dtype) * 0x1p-24;
}

Status lower_bits(LowerContext &c) {
  c.body.yield(bits_for(c, 0, c.result.dtype).as(c.result.dtype).value());
  return {};
}

Status lower_uniform(LowerContext &c) {
  const double low = c.attr("low").f64(), high = c.attr("high").f64();
  c.body.yield((unit(bits_for(c, 0, c.result.dtype), c.result.dtype) * (high - low) + low).value());
  return {};
}

Status lower_bernoulli(LowerContext &c) {
  const Term p(c.body, c.load(0));
  c.body.yield((unit(bits_for(c, 1, p.type()), p.type()) < p).value());
  return {};
}

// The upper half of bits * range.
Status lower_randint(LowerContext &c) {
  const DType dtype = c.result.dtype;
  const uint64_t range = static_cast<uint64_t>(c.attr("high").i64()) - static_cast<uint64_t>(c.attr("low").i64());
  const Term bits = bits_for(c, 0, dtype);
  const auto constant = [&](uint64_t value) { return Term(c.body, c.body.constant_bits(DType::u64, value)); };
  const Term low = constant(static_cast<uint64_t>(c.attr("low").i64()));
  if (size_of(dtype) < 8) {
    c.body.yield((low + shifted(bits * constant(range), 32)).as(dtype).value());
    return {};
  }
  const Term a = low_word(bits), b = shifted(bits, 32), r = constant(range & 0xffffffff), s = constant(range >> 32);
  const Term middle = b * r + shifted(a * r, 32), other = a * s + low_word(middle);
  c.body.yield((low + (b * s + shifted(middle, 32) + shifted(other, 32))).as(dtype).value());
  return {};
}

// G. E. P. Box and M. E. Muller, "A note on the generation of random normal deviates", 1958: of two words or doubles,
// for two elements.
Status lower_normal(LowerContext &c) {
  const DType dtype = c.result.dtype;
  const bool wide = dtype == DType::f64;
  const Drawn d = block_of(c, 0, wide ? 2 : 4);
  const Term first = d.within < 2;
  const Term a = wide ? joined(d.words[0], d.words[1]) : select(first, d.words[0], d.words[2]);
  const Term b = wide ? joined(d.words[2], d.words[3]) : select(first, d.words[1], d.words[3]);
  const Term above_0 = unit(a, dtype) + (wide ? 0x1p-53 : 0x1p-24);  // up to 1
  // Quarters of a turn, and what is left of one, both exactly: so the result is precise where it is near 0, too.
  const Term turns = unit(b, dtype) * 4, quarter = turns.op(Core::round);
  const Term angle = (turns - quarter) * (std::numbers::pi / 2);
  const Term is_even = (d.within == 0) | (d.within == 2), whole = quarter.as(DType::i32);
  const Term at = select(is_even, whole, whole - 1);  // a sine is a cosine a quarter before
  const Term cosine = at.op(Core::bit_and, at.literal(1)) == 0;
  const Term part = select(cosine, angle.op(Core::cos), angle.op(Core::sin));
  const Term negative = (at + 1).op(Core::bit_and, at.literal(2)) != 0;
  const Term normal = sqrt(log(above_0) * -2) * select(negative, -part, part);
  c.body.yield((normal * c.attr("std").f64() + c.attr("mean").f64()).value());
  return {};
}

// ---- reference kernels

constexpr int64_t random_work = 16;  // of a number, as work is counted

Status reference_bits(ReferenceContext &c) {
  const bool wide = size_of(c.results[0].dtype) == 8;
  return make_each<uint64_t>(c, [&](int64_t k) { return bits_at(c, 0, k, wide); }, random_work);
}

// In f32, which rounds twice.
Status reference_uniform(ReferenceContext &c) {
  const double low = c.attr("low").f64(), range = c.attr("high").f64() - low;
  const bool wide = c.results[0].dtype == DType::f64;
  const auto number = [&](int64_t k) {
    const double u = unit_at(c, 0, k, wide);
    const float narrow = static_cast<float>(u) * static_cast<float>(range) + static_cast<float>(low);
    return wide ? u * range + low : static_cast<double>(narrow);
  };
  return make_each<double>(c, number, random_work);
}

Status reference_bernoulli(ReferenceContext &c) {
  const ReadElements<double> p(*c.inputs[0]);
  const bool wide = c.inputs[0]->dtype == DType::f64;
  return make_each<int64_t>(
      c, [&](int64_t k) { return unit_at(c, 1, k, wide) < p[static_cast<size_t>(k)]; }, random_work);
}

Status reference_randint(ReferenceContext &c) {
  const bool wide = size_of(c.results[0].dtype) == 8;
  const auto low = static_cast<uint64_t>(c.attr("low").i64()),
             range = static_cast<uint64_t>(c.attr("high").i64()) - low;
  const auto number = [&](int64_t k) {
    const auto product = static_cast<unsigned __int128>(bits_at(c, 0, k, wide)) * range;
    return low + static_cast<uint64_t>(product >> (wide ? 64 : 32));
  };
  return make_each<uint64_t>(c, number, random_work);
}

// Cosine and sine of u turns. A u is a multiple of 2^-53 and so is its distance to the nearest quarter, so that nothing
// is lost where they come near 0.
std::pair<long double, long double> cos_and_sin_of_turns(double u) {
  const double quarters = std::nearbyint(4 * u);
  const long double angle = 2 * std::numbers::pi_v<long double> * (u - quarters / 4);
  const long double cos = std::cos(angle), sin = std::sin(angle);
  switch (static_cast<int>(quarters) % 4) {
    case 1:
      return {-sin, cos};
    case 2:
      return {-cos, -sin};
    case 3:
      return {sin, -cos};
    default:
      return {cos, sin};
  }
}

Status reference_normal(ReferenceContext &c) {
  const bool wide = c.results[0].dtype == DType::f64;
  const auto number = [&](int64_t k) {
    const double above_0 = unit_at(c, 0, k & ~int64_t{1}, wide) + (wide ? 0x1p-53 : 0x1p-24);
    const auto [cos, sin] = cos_and_sin_of_turns(unit_at(c, 0, k | 1, wide));
    const long double size = std::sqrt(-2 * std::log(static_cast<long double>(above_0)));
    const long double normal = size * (k % 2 == 0 ? cos : sin);
    return normal * c.attr("std").f64() + c.attr("mean").f64();
  };
  return make_each<double>(c, number, random_work);
}

// ---- inference

Status infer_made(InferContext &c) {
  KILN_TRY(require_key(c, 0));
  const Shape &shape = c.attr("shape").dim_list();
  KILN_TRY(require_shape(c, shape));
  c.results = {make_type(c.attr("dtype").dtype(), shape)};
  return {};
}
Status infer_bits(InferContext &c) {
  KILN_TRY(require_dtype(c, c.attr("dtype").dtype(), integer_types));
  return infer_made(c);
}
Status infer_uniform(InferContext &c) {
  KILN_TRY(require_dtype(c, c.attr("dtype").dtype(), float_types));
  const double low = c.attr("low").f64(), high = c.attr("high").f64();
  if (!(low <= high) || !std::isfinite(high - low))
    return c.fail("low is ", low, ", high is ", high, "; expected finite numbers, low <= high");
  return infer_made(c);
}
Status infer_normal(InferContext &c) {
  KILN_TRY(require_dtype(c, c.attr("dtype").dtype(), float_types));
  KILN_TRY(require_finite(c, "mean"));
  KILN_TRY(require_finite(c, "std", 0));
  return infer_made(c);
}
Status infer_randint(InferContext &c) {
  const DType dtype = c.attr("dtype").dtype();
  KILN_TRY(require_dtype(c, dtype, integer_types));
  const int64_t low = c.attr("low").i64(), high = c.attr("high").i64();
  if (low >= high) return c.fail("low is ", low, ", high is ", high, "; expected low < high");
  const bool is_unsigned = !dtype_info(dtype).is_signed;
  const int64_t largest = dtype == DType::u64 ? i64_max : largest_of(dtype);
  if (low < (is_unsigned ? 0 : least_of(dtype)) || high - 1 > largest)
    return c.fail("low is ", low, ", high is ", high, ", which ", name_of(dtype), " does not hold");
  return infer_made(c);
}
Status infer_bernoulli(InferContext &c) {
  KILN_TRY(require_key(c, 1));
  c.results = {make_type(DType::boolean, c.inputs[0].dims)};
  return {};
}
// ---- samples

void samples_random_bits(SampleSink &out) {
  for (const DType dtype :
       {DType::u32, DType::u64, DType::i32, DType::i64, DType::u16, DType::i16, DType::u8, DType::i8})
    keyed_sample(out, name_of(dtype).data(), {}, {{"dtype", dtype}, {"shape", AttrValue(Shape{3, 11})}}, true);
  keyed_sample(out, "of_zeros", {}, {{"shape", AttrValue(Shape{8})}}, false);
  keyed_sample(out, "none", {}, {{"shape", AttrValue(Shape{0})}}, false);
  keyed_sample(out, "symbolic", {}, {{"shape", AttrValue(Shape{sym("n"), 3})}}, true, {{"n", 5}});
}
void samples_floats(SampleSink &out, std::string_view first, std::string_view second) {
  const auto with = [&](DType dtype, Shape shape, double a, double b) {
    return AttrMap{
        {"dtype", dtype}, {"shape", AttrValue(std::move(shape))}, {std::string(first), a}, {std::string(second), b}};
  };
  keyed_sample(out, "f32", {}, with(DType::f32, {5, 33}, 0, 1), true);
  keyed_sample(out, "f64", {}, with(DType::f64, {33}, 0, 1), true);
  keyed_sample(out, "bf16", {}, with(DType::bf16, {33}, 0, 1), false);
  keyed_sample(out, "moved", {}, with(DType::f32, {17}, -1, 2), false);
  keyed_sample(out, "symbolic", {}, with(DType::f32, {sym("n"), 3}, 0, 1), true, {{"n", 5}});
}
void samples_uniform(SampleSink &out) { samples_floats(out, "low", "high"); }
void samples_normal(SampleSink &out) { samples_floats(out, "mean", "std"); }
void samples_randint(SampleSink &out) {
  const auto with = [](DType dtype, int64_t low, int64_t high) {
    return AttrMap{{"dtype", dtype}, {"shape", AttrValue(Shape{65})}, {"low", low}, {"high", high}};
  };
  keyed_sample(out, "i64", {}, with(DType::i64, -7, 100), true);
  keyed_sample(out, "i64_all", {}, with(DType::i64, i64_min, i64_max), true);
  keyed_sample(out, "i32_all", {}, with(DType::i32, -(int64_t{1} << 31), int64_t{1} << 31), true);
  keyed_sample(out, "u64", {}, with(DType::u64, 3, i64_max), true);
  for (const DType dtype : {DType::u32, DType::u16, DType::i16, DType::u8, DType::i8})
    keyed_sample(out, name_of(dtype).data(), {}, with(dtype, 0, 6), false);
  keyed_sample(out, "symbolic", {}, {{"shape", AttrValue(Shape{sym("n")})}, {"low", 0}, {"high", 10}}, true,
               {{"n", 9}});
}
void samples_bernoulli(SampleSink &out) {
  keyed_sample(out, "vector", {f32({65})}, {}, true);
  keyed_sample(out, "rows", {f32({3, 7})}, {}, false);
  keyed_sample(out, "symbolic", {f32({sym("n")})}, {}, true, {{"n", 9}});
}
// ---- records

std::vector<AttrDef> made_of(DType dtype, std::vector<AttrDef> more) {
  more.push_back({.name = "shape", .doc = "of the result", .kind = AttrKind::dim, .is_list = true, .required = true});
  more.push_back({.name = "dtype", .doc = "of the result", .kind = AttrKind::dtype, .fallback = dtype});
  return more;
}

const Op random_records[] = {
    {{.name = "random_bits",
      .doc =
          "Random bits by Philox 4x32-10, the same on every backend: element i is word i % 4 of block counter + i / 4; "
          "of a type of 64 bits, two words of block counter + i / 2. n elements use up n / 4 or n / 2 counters, "
          "rounded up. Types below 32 bits take the lowest.",
      .args = keyed({}),
      .result_names = {"y"},
      .attrs = made_of(DType::u32, {}),
      .infer = infer_bits},
     {.lower = lower_bits, .reference = reference_bits, .gradient = gives_integers, .samples = samples_random_bits}},
    {{.name = "uniform",
      .doc = "Random numbers of low <= y < high, the same on every backend: 24 of random_bits' upper bits, of f64 53. "
             "n elements use up n / 4 counters, of f64 n / 2. Where low + u * (high - low) is rounded, or the dtype "
             "has 16 bits, high may come.",
      .args = keyed({}),
      .result_names = {"y"},
      .attrs = made_of(DType::f32, {number("low", "the least", 0), number("high", "what all are below", 1)}),
      .infer = infer_uniform},
     {.lower = lower_uniform, .reference = reference_uniform, .gradient = takes_no_floats, .samples = samples_uniform}},
    {{.name = "normal",
      .doc =
          "Normally distributed random numbers, by Box and Muller: two elements of two of uniform's numbers u and v, "
          "sqrt(-2 log(u + 2^-24)), of f64 2^-53, times the cosine and then the sine of 2 pi v. Backends differ in the "
          "last digits. n elements use up n / 4 counters, of f64 n / 2.",
      .args = keyed({}),
      .result_names = {"y"},
      .attrs = made_of(DType::f32, {number("mean", "the mean", 0), number("std", "the standard deviation", 1)}),
      .infer = infer_normal},
     {.lower = lower_normal, .reference = reference_normal, .gradient = takes_no_floats, .samples = samples_normal}},
    {{.name = "randint",
      .doc =
          "Random integers of low <= y < high, the same on every backend: the upper half of random_bits' 32 bits, of a "
          "type of 64 bits 64, times high - low. An integer's probability is off by at most 2^-32, or 2^-64. n "
          "elements use up n / 4 counters, of 64 bits n / 2.",
      .args = keyed({}),
      .result_names = {"y"},
      .attrs =
          made_of(DType::i64, {{.name = "low", .doc = "the least", .kind = AttrKind::i64, .fallback = 0},
                               {.name = "high", .doc = "what all are below", .kind = AttrKind::i64, .required = true}}),
      .infer = infer_randint},
     {.lower = lower_randint, .reference = reference_randint, .gradient = gives_integers, .samples = samples_randint}},
    {{.name = "bernoulli",
      .doc = "True with probability p, the same on every backend: where uniform's number of p's dtype (f32 for 16 "
             "bits) is "
             "below it. n elements use up n / 4 counters, of f64 n / 2.",
      .args = keyed({{"p", "any shape", float_types}}),
      .result_names = {"y"},
      .infer = infer_bernoulli},
     {.lower = lower_bernoulli,
      .reference = reference_bernoulli,
      .gradient = gives_booleans,
      .samples = samples_bernoulli}},
};

}  // namespace

std::span<const Op> random_ops() { return random_records; }

}  // namespace kiln::ops
