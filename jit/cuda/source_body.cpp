#include "jit/cuda/source_body.h"

#include <bit>
#include <cmath>

#include "jit/base/small_float.h"

namespace kiln::cuda {

using namespace kernel;

std::string_view value_type(DType type) {
  switch (type) {
    case DType::f64:
      return "double";
    case DType::i64:
      return "kiln_i64";
    case DType::i32:
      return "int";
    case DType::i16:
      return "short";
    case DType::i8:
      return "signed char";
    case DType::u64:
      return "kiln_u64";
    case DType::u32:
      return "unsigned";
    case DType::u16:
    case DType::f16:  // the bits
    case DType::bf16:
      return "unsigned short";
    case DType::u8:
    case DType::f8_e4m3fn:
    case DType::f8_e5m2:
      return "unsigned char";
    case DType::boolean:
      return "bool";
    case DType::f32:
    case DType::none:
    case DType::token:
      break;
  }
  return "float";
}
std::string_view memory_type(DType type) { return type == DType::boolean ? "unsigned char" : value_type(type); }

std::string expr_text(const Expr &e, std::string_view value_prefix) {
  using Kind = Expr::Kind;
  const auto operand = [&](size_t i) { return expr_text(e.operands()[i], value_prefix); };
  const auto all = [&](std::string_view separator) {
    return "(" + join(e.operands(), separator, [&](const Expr &o) { return expr_text(o, value_prefix); }) + ")";
  };
  switch (e.kind()) {
    case Kind::integer:
      return str_cat(e.integer(), "ll");
    case Kind::symbol:
      return e.symbol_name();
    case Kind::axis:
      return str_cat("i", e.id());
    case Kind::value:
      return str_cat(value_prefix, e.id());
    case Kind::sum:
      return all(" + ");
    case Kind::product:
      return all(" * ");
    case Kind::floor_div:
      return str_cat("kiln_floor_div(", operand(0), ", ", operand(1), ")");
    case Kind::mod:
      return str_cat("kiln_floor_mod(", operand(0), ", ", operand(1), ")");
    case Kind::min:
      return str_cat("kiln_min<kiln_i64>(", operand(0), ", ", operand(1), ")");
    case Kind::max:
      return str_cat("kiln_max<kiln_i64>(", operand(0), ", ", operand(1), ")");
  }
  return "0";
}

std::string immediate_text(DType type, uint64_t immediate) {
  if (type == DType::boolean) return immediate ? "true" : "false";
  if (is_small_float(type))
    return str_cat("(", value_type(type), ")", encode_float(std::bit_cast<double>(immediate), small_format(type)), "u");
  if (dtype_info(type).is_integer && !dtype_info(type).is_signed)
    return str_cat("(", value_type(type), ")", immediate, "ull");
  if (!dtype_info(type).is_float) {
    const int64_t v = static_cast<int64_t>(immediate);
    return v == INT64_MIN ? "(-9223372036854775807ll - 1)" : str_cat("(", value_type(type), ")", v, "ll");
  }
  const double v = std::bit_cast<double>(immediate);
  if (std::isnan(v)) return str_cat("(", value_type(type), ")(0.0 / 0.0)");
  if (std::isinf(v)) return str_cat("(", value_type(type), ")(", v < 0 ? "-1.0" : "1.0", " / 0.0)");
  std::string digits = str_cat(v);
  if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
  return str_cat("(", value_type(type), ")", digits);
}

BodyText::BodyText(const Body &body, std::string_view prefix, std::span<const std::string> leaves)
    : body_(body), prefix_(prefix), leaves_(leaves) {
  for (size_t i = 0; i < body.values.size(); ++i) {
    statements_.push_back(str_cat("const ", value_type(body.values[i].type), " ", name(static_cast<int32_t>(i)), " = ",
                                  text_of(body.values[i]), ";"));
  }
}

std::vector<std::string> BodyText::yields() const {
  std::vector<std::string> names;
  for (int32_t y : body_.yields) names.push_back(name(y));
  return names;
}

namespace {

// The template arguments that are a format.
std::string format_text(DType type) {
  const FloatFormat format = small_format(type);
  return str_cat("<", format.exponent_bits, ", ", format.mantissa_bits, ", ", format.is_finite ? "true" : "false", ">");
}

// As f32, rounded to odd where it is not exact: rounding that once more to a small float is rounding once.
std::string odd_text(const std::string &value, DType from) {
  if (from == DType::f32) return value;
  if (from == DType::f64) return str_cat("kiln_to_odd(", value, ")");
  if (size_of(from) == 8) return str_cat("kiln_to_odd((double)kiln_gathered(", value, "))");
  return size_of(from) == 4 ? str_cat("kiln_to_odd((double)", value, ")") : str_cat("(float)", value);
}

std::string search_text(const Value &v, const std::string &key, DType type, const std::string &prefix) {
  return str_cat("kiln_search<", order_text(type, v.immediate & search_descending), ", ",
                 v.immediate & search_upper ? "true" : "false", ">(b", v.access.buffer, " + (",
                 expr_text(v.access.index[0], prefix), "), ", expr_text(v.access.index[1], prefix), ", ",
                 expr_text(v.expr, prefix), ", (", memory_type(type), ")", key, ")");
}

std::string convert_text(const std::string &value, DType from, DType to) {
  if (from == to) return value;
  if (is_small_float(from))
    return convert_text(str_cat("kiln_from_small", format_text(from), "(", value, ")"), DType::f32, to);
  if (is_small_float(to)) {
    const FloatFormat format = small_format(to);
    return str_cat("(", value_type(to), ")kiln_to_small", format_text(to), "(", odd_text(value, from), ", ",
                   format.converted_overflow(), "u, ", format.nan(), "u)");
  }
  if (to == DType::boolean) return str_cat(value, " != 0");
  if (!dtype_info(from).is_float || dtype_info(to).is_float) return str_cat("(", value_type(to), ")", value);
  const uint64_t all_ones = ~uint64_t{0} >> (64 - 8 * size_of(to));
  if (!dtype_info(to).is_signed)
    return str_cat("(", value_type(to), ")kiln_to_int<kiln_u64>(", value, ", 0ull, ", all_ones, "ull)");
  const std::string high = str_cat(all_ones >> 1, "ll");
  return str_cat("(", value_type(to), ")kiln_to_int<kiln_i64>(", value, ", -", high, " - 1, ", high, ")");
}

}  // namespace

std::string order_text(DType type, bool descending) {
  return str_cat(is_small_float(type) ? str_cat("kiln_small", format_text(type)) : "kiln_plain", ", ",
                 descending ? "true" : "false");
}

std::string BodyText::text_of(const Value &v) const {
  std::string a = name(v.args[0]);  // may be returned
  const std::string b = name(v.args[1]), c = name(v.args[2]);
  const DType operand = v.args[0] >= 0 ? body_.values[static_cast<size_t>(v.args[0])].type : v.type;
  const bool single = operand == DType::f32, is_float = dtype_info(v.type).is_float;
  const auto infix = [&](std::string_view op) {
    return str_cat("(", value_type(v.type), ")(", a, " ", op, " ", b, ")");
  };
  // Signed overflow wraps in kernel IR; unsigned arithmetic does so in C++.
  const auto wrapping = [&](std::string_view op) {
    if (is_float) return infix(op);
    return str_cat("(", value_type(v.type), ")((unsigned long long)", a, " ", op, " (unsigned long long)", b, ")");
  };
  const auto call = [&](std::string_view function) { return str_cat(function, single ? "f(" : "(", a, ")"); };
  switch (v.op) {
    case Core::constant:
      return immediate_text(v.type, v.immediate);
    case Core::load: {
      const std::string element = str_cat("b", v.access.buffer, "[", expr_text(v.access.index[0], prefix_), "]");
      const std::string value = v.type == DType::boolean ? str_cat("(", element, " != 0)") : element;
      return v.access.valid < 0
                 ? value
                 : str_cat(name(v.access.valid), " ? ", value, " : ", immediate_text(v.type, v.access.fill));
    }
    case Core::search: {
      const std::string found = search_text(v, a, operand, prefix_);
      return v.access.valid < 0
                 ? found
                 : str_cat(name(v.access.valid), " ? ", found, " : ", immediate_text(v.type, v.access.fill));
    }
    case Core::index:
      return expr_text(v.expr, prefix_);
    case Core::carrier:
      return leaves_[v.immediate];
    case Core::accumulator:
      return leaves_[0];
    case Core::convert:
      return convert_text(a, operand, v.type);
    case Core::add:
      return wrapping("+");
    case Core::sub:
      return wrapping("-");
    case Core::mul:
      return wrapping("*");
    case Core::div:
      return str_cat("kiln_div(", a, ", ", b, ", args.error_word)");
    case Core::rem:
      return str_cat("kiln_rem(", a, ", ", b, ", args.error_word)");
    case Core::neg:
      return is_float ? "-" + a : str_cat("(", value_type(v.type), ")(0ull - (unsigned long long)", a, ")");
    case Core::abs:
      if (is_float) return call("fabs");
      if (!dtype_info(v.type).is_signed) return a;
      return str_cat(a, " < 0 ? (", value_type(v.type), ")(0ull - (unsigned long long)", a, ") : ", a);
    case Core::min:
      return str_cat("kiln_min(", a, ", ", b, ")");
    case Core::max:
      return str_cat("kiln_max(", a, ", ", b, ")");
    case Core::sqrt:
      return call("sqrt");
    case Core::rsqrt:
      return str_cat("(", value_type(v.type), ")1 / ", call("sqrt"));
#define CORE_OP(name, operands, group, cost, kind, meaning)
#define CORE_FUNCTION(name, cost, meaning) case Core::name:
#include "jit/kernel/core_ops.def"
#undef CORE_OP
      return call(core_info(v.op).name);
    case Core::atan2:
      return str_cat(single ? "atan2f(" : "atan2(", a, ", ", b, ")");
    case Core::pow:
      return str_cat("kiln_pow(", a, ", ", b, ")");
    case Core::floor:
      return is_float ? call("floor") : a;
    case Core::ceil:
      return is_float ? call("ceil") : a;
    case Core::trunc:
      return is_float ? call("trunc") : a;
    case Core::round:
      return is_float ? call("rint") : a;
    case Core::bit_and:
      return infix("&");
    case Core::bit_or:
      return infix("|");
    case Core::bit_xor:
      return infix("^");
    case Core::bit_not:
      return str_cat("(", value_type(v.type), ")~", a);
    case Core::shift_left:
      return str_cat("kiln_shift_left(", a, ", ", b, ")");
    case Core::shift_right:
      return str_cat("kiln_shift_right(", a, ", ", b, ")");
    case Core::eq:
      return str_cat(a, " == ", b);
    case Core::ne:
      return str_cat(a, " != ", b);
    case Core::lt:
      return str_cat(a, " < ", b);
    case Core::le:
      return str_cat(a, " <= ", b);
    case Core::gt:
      return str_cat(a, " > ", b);
    case Core::ge:
      return str_cat(a, " >= ", b);
    case Core::logical_and:
      return str_cat(a, " && ", b);
    case Core::logical_or:
      return str_cat(a, " || ", b);
    case Core::logical_not:
      return "!" + a;
    case Core::select:
      return str_cat(a, " ? ", b, " : ", c);
    case Core::in_range:
      return str_cat("kiln_in_range(", a, ", ", b, ", args.error_word)");
  }
  return "0";
}

}  // namespace kiln::cuda
