// The bits of integers, two's complement.
#include "runtime/ops/elementwise.h"
#include "runtime/ops/formula.h"

namespace kiln::ops {
namespace {

using kernel::Core;

template <auto combine>
Status reference_of_each(ReferenceContext &c) {
  return reference_of_integers<[](ReferenceContext &, auto a, auto b) { return combine(int64_t(a), int64_t(b)); }>(c);
}

// By less than 0, or by the width or more, every bit has left.
template <bool to_the_left>
Status reference_shift(ReferenceContext &c) {
  return reference_of_integers<[](ReferenceContext &context, auto a, auto by) -> int64_t {
    const DType type = context.results[0].dtype;
    const bool all = by < 0 || static_cast<uint64_t>(by) >= uint64_t{8} * size_of(type);
    if constexpr (to_the_left) return all ? 0 : static_cast<int64_t>(uint64_t(a) << uint64_t(by));
    if (all) return a < 0 ? -1 : 0;
    return static_cast<int64_t>(a >> by);
  }>(c);
}

void samples_bits(SampleSink &out) {
  const Dim n = sym("n");
  out.push_back({.name = "vectors", .inputs = {i64({65}), i64({65})}, .int_low = i64_min / 2, .int_high = i64_max / 2});
  out.push_back({.name = "broadcast", .inputs = {i64({7, 1}), i64({5})}});
  out.push_back({.name = "scalar", .inputs = {i64({3, 17}), i64({})}});
  out.push_back({.name = "empty", .inputs = {i64({0}), i64({1})}});
  out.push_back({.name = "symbolic", .inputs = {i64({n, 3}), i64({n, 1})}, .sizes = {{"n", 9}}});
  for (const DType type : {DType::i32, DType::i16, DType::i8, DType::u64, DType::u32, DType::u16, DType::u8})
    out.push_back({.name = str_cat(name_of(type)),
                   .inputs = {make_type(type, {5, 13}), make_type(type, {13})},
                   .int_low = dtype_info(type).is_signed ? -128 : 0,
                   .int_high = dtype_info(type).is_signed ? 128 : 256});
}
void samples_shift(SampleSink &out) {
  samples_bits(out);
  out.push_back(
      {.name = "by_all_numbers",
       .inputs = {i64({4, 1}), i64({6})},
       .given = {{0, i64_data({4, 1}, {1, -1, i64_min, 0x1234})}, {1, i64_data({6}, {0, 1, 63, 64, -1, i64_min})}}});
  for (const DType type : {DType::i32, DType::i16, DType::i8, DType::u64, DType::u32, DType::u16, DType::u8})
    out.push_back({.name = str_cat(name_of(type), "_by_little"),
                   .inputs = {make_type(type, {5, 13}), make_type(type, {13})},
                   .int_low = dtype_info(type).is_signed ? -2 : 0,
                   .int_high = 20});
}
void samples_bit_not(SampleSink &out) {
  const Dim n = sym("n");
  for (const DType type :
       {DType::i64, DType::i32, DType::i16, DType::i8, DType::u64, DType::u32, DType::u16, DType::u8})
    out.push_back({.name = str_cat(name_of(type)),
                   .inputs = {make_type(type, {7, n})},
                   .sizes = {{"n", 9}},
                   .int_low = dtype_info(type).is_signed ? -128 : 0,
                   .int_high = 128});
}

const Op bits_records[] = {
    commuting(binary("bit_and", "The bits that both a and b have.", integer_types,
                     {.lower = lower_as<Core::bit_and>,
                      .reference = reference_of_each<[](int64_t a, int64_t b) { return a & b; }>,
                      .gradient = gives_integers,
                      .samples = samples_bits})),
    commuting(binary("bit_or", "The bits that a or b has, or both.", integer_types,
                     {.lower = lower_as<Core::bit_or>,
                      .reference = reference_of_each<[](int64_t a, int64_t b) { return a | b; }>,
                      .gradient = gives_integers,
                      .samples = samples_bits})),
    commuting(binary("bit_xor", "The bits that one of a and b has.", integer_types,
                     {.lower = lower_as<Core::bit_xor>,
                      .reference = reference_of_each<[](int64_t a, int64_t b) { return a ^ b; }>,
                      .gradient = gives_integers,
                      .samples = samples_bits})),
    unary("bit_not", "The bits that x has not: -1 - x.", integer_types,
          {.lower = lower_by<[](LowerContext &, const Term &x) { return x.op(Core::bit_not); }>,
           .reference = reference_of_integers<[](ReferenceContext &, auto x) { return ~int64_t(x); }>,
           .gradient = gives_integers,
           .samples = samples_bit_not}),
    binary("shift_left", "a * 2^b, which wraps; 0 where b is less than 0, or the dtype's width or more.", integer_types,
           {.lower = lower_as<Core::shift_left>,
            .reference = reference_shift<true>,
            .gradient = gives_integers,
            .samples = samples_shift}),
    binary("shift_right",
           "a / 2^b, rounded down; where b is less than 0, or the dtype's width or more, -1 for negative a, else 0.",
           integer_types,
           {.lower = lower_as<Core::shift_right>,
            .reference = reference_shift<false>,
            .gradient = gives_integers,
            .samples = samples_shift}),
};

}  // namespace

std::span<const Op> bits_ops() { return bits_records; }

}  // namespace kiln::ops
