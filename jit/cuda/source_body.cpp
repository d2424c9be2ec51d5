#include "jit/cuda/source_body.h"

#include <bit>
#include <cmath>

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
    case DType::u8:
      return "unsigned char";
    case DType::boolean:
      return "bool";
    default:
      return "float";
  }
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

std::string BodyText::text_of(const Value &v) const {
  const std::string a = name(v.args[0]), b = name(v.args[1]), c = name(v.args[2]);
  const DType operand = v.args[0] >= 0 ? body_.values[static_cast<size_t>(v.args[0])].type : v.type;
  const bool single = operand == DType::f32;
  const auto infix = [&](std::string_view op) {
    return str_cat("(", value_type(v.type), ")(", a, " ", op, " ", b, ")");
  };
  // Signed overflow wraps in kernel IR; unsigned arithmetic does so in C++.
  const auto wrapping = [&](std::string_view op) {
    if (dtype_info(v.type).is_float) return infix(op);
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
    case Core::index:
      return expr_text(v.expr, prefix_);
    case Core::carrier:
      return leaves_[v.immediate];
    case Core::accumulator:
      return leaves_[0];
    case Core::convert:
      if (v.type == DType::boolean) return str_cat(a, " != 0");
      if (dtype_info(operand).is_float && !dtype_info(v.type).is_float) {
        const uint32_t bits = size_of(v.type) * 8;
        const bool is_signed = v.type != DType::u8;
        const std::string high = is_signed ? str_cat((uint64_t{1} << (bits - 1)) - 1, "ll") : "255ll";
        const std::string low = is_signed ? str_cat("(-", high, " - 1)") : "0ll";
        return str_cat("(", value_type(v.type), ")kiln_to_int<kiln_i64>(", a, ", ", low, ", ", high, ")");
      }
      return str_cat("(", value_type(v.type), ")", a);
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
      return dtype_info(v.type).is_float ? "-" + a
                                         : str_cat("(", value_type(v.type), ")(0ull - (unsigned long long)", a, ")");
    case Core::abs:
      if (dtype_info(v.type).is_float) return call("fabs");
      return str_cat(a, " < 0 ? (", value_type(v.type), ")(0ull - (unsigned long long)", a, ") : ", a);
    case Core::min:
      return str_cat("kiln_min(", a, ", ", b, ")");
    case Core::max:
      return str_cat("kiln_max(", a, ", ", b, ")");
    case Core::sqrt:
      return call("sqrt");
    case Core::rsqrt:
      return str_cat("(", value_type(v.type), ")1 / ", call("sqrt"));
    case Core::exp:
      return call("exp");
    case Core::log:
      return call("log");
    case Core::tanh:
      return call("tanh");
    case Core::erf:
      return call("erf");
    case Core::sin:
      return call("sin");
    case Core::cos:
      return call("cos");
    case Core::pow:
      return str_cat("kiln_pow(", a, ", ", b, ")");
    case Core::floor:
      return call("floor");
    case Core::round:
      return call("rint");
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
