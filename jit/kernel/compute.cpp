#include "jit/kernel/compute.h"

#include <bit>
#include <cassert>
#include <cmath>
#include <limits>

namespace kiln::kernel {

uint64_t immediate_of(DType type, double value) {
  if (dtype_info(type).is_float) return std::bit_cast<uint64_t>(value);
  if (type == DType::boolean) return value != 0;
  // Saturating, as Core::convert: infinities are how lowerings say "the smallest" and "the largest".
  const bool is_signed = dtype_info(type).is_signed;
  const uint32_t bits = size_of(type) * 8 - (is_signed ? 1 : 0);
  const uint64_t high = ~uint64_t{0} >> (64 - bits), low = is_signed ? ~high : 0;
  if (std::isnan(value)) return 0;
  if (value >= std::ldexp(1.0, static_cast<int>(bits))) return high;
  if (value <= (is_signed ? -std::ldexp(1.0, static_cast<int>(bits)) : 0.0)) return low;
  return is_signed ? static_cast<uint64_t>(static_cast<int64_t>(value)) : static_cast<uint64_t>(value);
}

int BodyBuilder::push(Value value) {
  body_.values.push_back(std::move(value));
  return static_cast<int>(body_.values.size()) - 1;
}

int BodyBuilder::constant(DType type, double value) { return constant_bits(type, immediate_of(type, value)); }

int BodyBuilder::constant_bits(DType type, uint64_t immediate) {
  return push(
      {.op = Core::constant, .type = type, .args = {-1, -1, -1}, .immediate = immediate, .access = {}, .expr = {}});
}

int BodyBuilder::index(Expr expr) {
  return push({.op = Core::index,
               .type = DType::i64,
               .args = {-1, -1, -1},
               .immediate = 0,
               .access = {},
               .expr = std::move(expr)});
}

int BodyBuilder::load(uint16_t operand, DType type, std::vector<Expr> index, int valid, uint64_t fill) {
  return push({.op = Core::load,
               .type = type,
               .args = {-1, -1, -1},
               .immediate = 0,
               .access = {.buffer = operand, .index = std::move(index), .valid = valid, .fill = fill},
               .expr = {}});
}

int BodyBuilder::convert(int value, DType to) {
  if (type(value) == to) return value;
  return push({.op = Core::convert, .type = to, .args = {value, -1, -1}, .immediate = 0, .access = {}, .expr = {}});
}

int BodyBuilder::carrier(DType type, uint32_t which) {
  return push({.op = Core::carrier, .type = type, .args = {-1, -1, -1}, .immediate = which, .access = {}, .expr = {}});
}

int BodyBuilder::search(int value, uint16_t operand, std::vector<Expr> index, Expr count, uint64_t flags, int valid,
                        uint64_t fill) {
  return push({.op = Core::search,
               .type = DType::i64,
               .args = {value, -1, -1},
               .immediate = flags,
               .access = {.buffer = operand, .index = std::move(index), .valid = valid, .fill = fill},
               .expr = std::move(count)});
}

int BodyBuilder::op(Core core, int a, int b, int c) {
  const CoreGroup group = core_info(core).group;
  const bool asks = group == CoreGroup::compare || group == CoreGroup::in_range;
  const DType type_of_result = asks ? DType::boolean : group == CoreGroup::select ? type(b) : type(a);
  assert((core != Core::select || type(b) == type(c)) && "select chooses between values of one type");
  assert((core_info(core).operands != 2 || type(a) == type(b)) && "the operands' types differ");
  return push({.op = core, .type = type_of_result, .args = {a, b, c}, .immediate = 0, .access = {}, .expr = {}});
}

Carriers carriers_of(Core combine, DType type) {
  Carriers carriers;
  const double inf = std::numeric_limits<double>::infinity();
  const double identity = combine == Core::add ? 0 : combine == Core::mul ? 1 : combine == Core::min ? inf : -inf;
  carriers.types = {type};
  carriers.identities = {immediate_of(type, identity)};
  BodyBuilder body(carriers.combine);
  const int left = body.carrier(type, 0), right = body.carrier(type, 1);
  body.yield(body.op(combine, left, right));
  return carriers;
}

// The right side wins when it is beyond the left, or NaN where the left is not, or equal with a smaller index: a total
// order, so that the result does not depend on how the schedule groups the elements.
Carriers argmax_carriers(DType value_type, bool largest) {
  Carriers carriers;
  carriers.types = {value_type, DType::i64};
  const double infinity = std::numeric_limits<double>::infinity();
  carriers.identities = {immediate_of(value_type, largest ? -infinity : infinity), static_cast<uint64_t>(INT64_MAX)};
  BodyBuilder b(carriers.combine);
  const int lv = b.carrier(value_type, 0), li = b.carrier(DType::i64, 1), rv = b.carrier(value_type, 2),
            ri = b.carrier(DType::i64, 3);
  const int l_nan = b.op(Core::ne, lv, lv), r_nan = b.op(Core::ne, rv, rv);
  const int beyond = b.op(largest ? Core::gt : Core::lt, rv, lv);
  const int greater = b.op(Core::logical_or, beyond, b.op(Core::logical_and, r_nan, b.op(Core::logical_not, l_nan)));
  const int same = b.op(Core::logical_or, b.op(Core::eq, rv, lv), b.op(Core::logical_and, r_nan, l_nan));
  const int wins = b.op(Core::logical_or, greater, b.op(Core::logical_and, same, b.op(Core::lt, ri, li)));
  b.yield(b.op(Core::select, wins, rv, lv));
  b.yield(b.op(Core::select, wins, ri, li));
  return carriers;
}

}  // namespace kiln::kernel
