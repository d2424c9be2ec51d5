#include "runtime/functions/signature.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "jit/base/str.h"

namespace kiln {
namespace {

using Signature = FunctionSignature;
using Argument = Signature::Argument;
using Kind = Argument::Kind;

constexpr size_t longest_text = 4096, most_arguments = 64, deepest = 32, most_nodes = 4096;
constexpr std::array<std::string_view, 7> keywords = {"user", "tensor", "data", "inout", "scratch", "size", "stride"};

bool begins_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_keyword(std::string_view word) { return std::ranges::find(keywords, word) != keywords.end(); }

// - signature: ("void" | "i32" | "error") "(" [argument ("," argument)*] ")"
// - argument: "user" | "tensor" place | [TYPE] "data" place | [TYPE] "inout" place "=" operand | "scratch" sum
//   | TYPE ["*"] (NUMBER | NAME | sum)
// - place: operand ["[" [extent ("," extent)*] "]"]
// - operand: NAME | INTEGER
// - extent: NAME | INTEGER | "_"
// - sum: product (("+" | "-") product)*
// - product: factor (("*" | "/" | "%") factor)*
// - factor: INTEGER | CHARACTER | NAME | ("size" | "stride") operand INTEGER | "-" factor | "(" sum ")"
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) { signature_.text = text; }

  Result<Signature> run() {
    if (text_.size() > longest_text)
      return invalid("it has ", text_.size(), " characters; at most ", longest_text, " are read");
    KILN_TRY(read_return());
    if (!take('(')) return expected("'('");
    if (!take(')')) {
      do {
        if (signature_.arguments.size() == most_arguments)
          return fail("there are more than ", most_arguments, " arguments");
        KILN_TRY(read_argument());
      } while (take(','));
      if (!take(')')) return expected("',' or ')'");
    }
    skip_space();
    if (at_ != text_.size()) return expected("the end");
    return std::move(signature_);
  }

 private:
  template <class... Parts>
  Status fail_at(size_t at, const Parts &...parts) const {
    return invalid("at ", at, ": ", parts...);
  }
  template <class... Parts>
  Status fail(const Parts &...parts) const {
    return fail_at(at_, parts...);
  }
  Status expected(std::string_view what) const {
    if (at_ == text_.size()) return fail("expected ", what, ", and it ends there");
    return fail("expected ", what, ", not '", text_.substr(at_, std::min<size_t>(text_.size() - at_, 12)), "'");
  }

  void skip_space() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(char c) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  // The name that stands here; empty: none does.
  std::string_view peek_word() {
    skip_space();
    size_t end = at_;
    if (end < text_.size() && begins_name(text_[end]))
      while (end < text_.size() && (begins_name(text_[end]) || is_digit(text_[end]) || text_[end] == '.')) ++end;
    return text_.substr(at_, end - at_);
  }
  bool take_word(std::string_view word) {
    if (peek_word() != word) return false;
    at_ += word.size();
    return true;
  }

  Status read_return() {
    if (take_word("void")) return {};
    if (take_word("i32"))
      signature_.returns = Signature::Return::code;
    else if (take_word("error"))
      signature_.returns = Signature::Return::error;
    else
      return expected("what it returns, void, i32 or error");
    return {};
  }

  Status read_argument() {
    skip_space();
    Argument argument{.at = at_};
    KILN_TRY(read_rest(argument));
    argument.end = at_;
    while (text_[argument.end - 1] == ' ') --argument.end;
    signature_.arguments.push_back(std::move(argument));
    return {};
  }
  Status read_rest(Argument &argument) {
    if (take_word("user")) return {};
    if (take_word("tensor")) {
      argument.kind = Kind::tensor;
      return read_place(argument);
    }
    if (take_word("scratch")) {
      argument.kind = Kind::scratch;
      skip_space();
      const size_t begin = at_;
      KILN_ASSIGN(argument.value, sum());
      if (argument.value.is_integer() && argument.value.integer() < 0)
        return fail_at(begin, "scratch of ", argument.value.integer(), " bytes");
      return {};
    }
    if (const std::optional<DType> type = dtype_from_name(peek_word()); type && *type != DType::token) {
      argument.type = *type;
      at_ += peek_word().size();
    }
    if (take_word("data")) {
      argument.kind = Kind::data;
      return read_place(argument);
    }
    if (take_word("inout")) {
      argument.kind = Kind::inout;
      KILN_TRY(read_place(argument));
      if (!take('=')) return expected("'=' and the operand that it begins as");
      KILN_ASSIGN(argument.operand, operand());
      return {};
    }
    if (argument.type == DType::none) return expected("a type, data, inout, tensor, scratch or user");
    argument.kind = Kind::scalar;
    argument.by_pointer = take('*');
    return read_value(argument);
  }

  Status read_value(Argument &argument) {
    const DTypeInfo &type = dtype_info(argument.type);
    if (type.is_float && type.size_bytes < 4)
      return fail("there is no C type for a ", type.name, " that is no element");
    const std::string_view word = peek_word();
    const size_t begin = at_;
    if (!word.empty() && !is_keyword(word)) {
      at_ += word.size();
      const bool is_all = take(',') || take(')');
      at_ = is_all ? begin + word.size() : begin;
      if (is_all) argument.name = word;
    }
    if (!argument.name.empty()) {
      argument.value = reference({.name = argument.name, .at = begin});
      return {};
    }
    if (type.is_float) return read_number(argument.number, argument.type);
    KILN_ASSIGN(argument.value, sum());
    if (argument.value.is_integer() && !fits(argument.value.integer(), argument.type))
      return fail_at(begin, argument.value.integer(), " is no ", type.name);
    return {};
  }
  Status read_number(double &out, DType type) {
    skip_space();
    const size_t begin = at_;
    const auto [end, failed] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), out);
    if (failed != std::errc()) return expected("a number or a name");
    at_ = static_cast<size_t>(end - text_.data());
    if (type == DType::f32 && std::isfinite(out) && std::isinf(static_cast<float>(out)))
      return fail_at(begin, text_.substr(begin, at_ - begin), " is no f32");
    return {};
  }

  Status read_place(Argument &argument) {
    KILN_ASSIGN(argument.place, operand());
    if (!take('[')) return {};
    std::vector<Signature::Extent> &extents = argument.extents.emplace();
    if (take(']')) return {};
    do {
      skip_space();
      Signature::Extent &extent = extents.emplace_back(Signature::Extent{.at = at_});
      const std::string_view word = peek_word();
      if (word.empty()) {
        KILN_ASSIGN(extent.is, integer());
      } else {
        if (is_keyword(word)) return expected("a size's name, a number or _");
        if (word != "_") extent.name = word;
        at_ += word.size();
      }
    } while (take(','));
    return take(']') ? Status() : expected("',' or ']'");
  }
  Result<Signature::Place> operand() {
    const std::string_view word = peek_word();
    Signature::Place place{.at = at_};
    if (!word.empty() && !is_keyword(word)) {
      place.name = word;
      at_ += word.size();
      return place;
    }
    if (at_ == text_.size() || !is_digit(text_[at_])) return expected("an operand or a result, by name or number");
    KILN_ASSIGN(const int64_t number, integer());
    if (number > UINT16_MAX) return fail_at(place.at, "there is no operand ", number);
    place.number = static_cast<uint32_t>(number);
    return place;
  }
  Result<int64_t> integer() {
    skip_space();
    int64_t value = 0;
    const auto [end, failed] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (failed != std::errc() || value < 0) return expected("an integer");
    at_ = static_cast<size_t>(end - text_.data());
    return value;
  }

  // Behind a '-': of the least integer, what is no integer without its sign.
  bool take_least() {
    constexpr std::string_view least = "9223372036854775808";
    skip_space();
    const std::string_view rest = text_.substr(at_);
    if (!rest.starts_with(least) || (rest.size() > least.size() && is_digit(rest[least.size()]))) return false;
    at_ += least.size();
    return true;
  }

  Expr reference(Signature::Reference of) {
    signature_.references.push_back(std::move(of));
    return Expr::symbol(reference_symbol(signature_.references.size() - 1));
  }
  Result<Expr> sum() {
    KILN_ASSIGN(Expr left, product());
    for (;;) {
      const bool plus = take('+');
      if (!plus && !take('-')) break;
      KILN_ASSIGN(const Expr right, product());
      left = plus ? left + right : left - right;
    }
    return left;
  }
  Result<Expr> product() {
    KILN_ASSIGN(Expr left, factor());
    for (;;) {
      const bool times = take('*'), over = !times && take('/');
      if (!times && !over && !take('%')) return left;
      skip_space();
      const size_t begin = at_;
      KILN_ASSIGN(const Expr right, factor());
      if (!times && right.is_integer() && right.integer() == 0) return fail_at(begin, "it divides by 0");
      if (left.nodes() * right.nodes() > most_nodes) return fail("the expression is too long");
      left = times ? left * right : over ? floor_div(left, right) : mod(left, right);
    }
  }
  Result<Expr> factor() {
    const bool minus = take('-');
    if (minus || take('(')) {
      if (minus && take_least()) return Expr(INT64_MIN);
      if (++depth_ > deepest) return fail("it is nested more than ", deepest, " deep");
      KILN_ASSIGN(const Expr value, minus ? factor() : sum());
      --depth_;
      if (minus) return Expr(0) - value;
      if (!take(')')) return expected("an operator or ')'");
      return value;
    }
    const size_t at = at_;
    if (take('\'')) {
      if (text_.size() - at_ < 2 || text_[at_ + 1] != '\'') return fail_at(at, "expected one character between quotes");
      at_ += 2;
      return Expr(static_cast<int64_t>(text_[at_ - 2]));
    }
    for (const auto kind : {Signature::Reference::Kind::size, Signature::Reference::Kind::stride}) {
      if (!take_word(kind == Signature::Reference::Kind::size ? "size" : "stride")) continue;
      KILN_ASSIGN(Signature::Place place, operand());
      KILN_ASSIGN(const int64_t dim, integer());
      if (dim > UINT16_MAX) return fail("no array has dim ", dim);
      return reference({.kind = kind, .place = std::move(place), .dim = static_cast<uint32_t>(dim), .at = at});
    }
    const std::string_view word = peek_word();
    if (!word.empty() && !is_keyword(word)) {
      at_ += word.size();
      return reference({.name = std::string(word), .at = at});
    }
    if (at_ == text_.size() || !is_digit(text_[at_])) return expected("a number, a name, size or stride");
    KILN_ASSIGN(const int64_t value, integer());
    return Expr(value);
  }

  const std::string_view text_;
  size_t at_ = 0, depth_ = 0;
  Signature signature_;
};

}  // namespace

Result<FunctionSignature> parse_function_signature(std::string_view text) { return Parser(text).run(); }

bool fits(int64_t value, DType type) {
  const DTypeInfo &info = dtype_info(type);
  if (type == DType::boolean) return value == 0 || value == 1;
  if (info.size_bytes == 8) return info.is_signed || value >= 0;
  const int bits = static_cast<int>(info.size_bytes) * 8;
  const int64_t low = info.is_signed ? -(int64_t{1} << (bits - 1)) : 0;
  const int64_t high = (int64_t{1} << (info.is_signed ? bits - 1 : bits)) - 1;
  return low <= value && value <= high;
}

std::string reference_symbol(size_t number) { return str_cat("$", number); }

size_t reference_number(std::string_view symbol) {
  size_t number = 0;
  std::from_chars(symbol.data() + 1, symbol.data() + symbol.size(), number);
  return number;
}

}  // namespace kiln
