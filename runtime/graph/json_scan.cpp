#include "runtime/graph/json_scan.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <string>

#include "jit/base/utf8.h"
#include "runtime/graph/nesting.h"

namespace kiln {
namespace {

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  Status scan() {
    skip_space();
    KILN_TRY(value());
    skip_space();
    if (at_ != text_.size()) return expected("the end");
    return {};
  }

 private:
  static constexpr size_t longest_number = 63;  // cJSON copies a number into a buffer of 64

  Status value() {
    switch (peek()) {
      case '{':
        return nested(&Scanner::object);
      case '[':
        return nested(&Scanner::list);
      case '"': {
        std::string ignored;
        return string(ignored);
      }
      case 't':
        return word("true");
      case 'f':
        return word("false");
      case 'n':
        return word("null");
      default:
        return number();
    }
  }

  Status nested(Status (Scanner::*contents)()) {
    if (++depth_ > deepest_brackets) return error_at(at_, "nested deeper than ", deepest_brackets);
    ++at_;
    skip_space();
    KILN_TRY((this->*contents)());
    --depth_;
    return {};
  }

  Status object() {
    if (take('}')) return {};
    std::set<std::string> keys;
    do {
      skip_space();
      size_t begin = at_;
      std::string key;
      if (peek() != '"') return expected("a key in quotes");
      KILN_TRY(string(key));
      if (!keys.insert(key).second) return error_at(begin, "key '", key, "' stands twice in one object");
      skip_space();
      if (!take(':')) return expected("':'");
      skip_space();
      KILN_TRY(value());
      skip_space();
    } while (take(','));
    return take('}') ? Status() : expected("',' or '}'");
  }

  Status list() {
    if (take(']')) return {};
    do {
      skip_space();
      KILN_TRY(value());
      skip_space();
    } while (take(','));
    return take(']') ? Status() : expected("',' or ']'");
  }

  Status word(std::string_view name) {
    if (!text_.substr(at_).starts_with(name)) return expected("a value");
    at_ += name.size();
    return {};
  }

  size_t digits() {
    size_t begin = at_;
    while (peek() >= '0' && peek() <= '9') ++at_;
    return at_ - begin;
  }

  Status number() {
    size_t begin = at_;
    bool negative = take('-');
    if (!(peek() >= '0' && peek() <= '9')) return expected(negative ? "a digit" : "a value");
    size_t first = at_;
    if (digits() > 1 && text_[first] == '0') return error_at(begin, "a number begins with 0");
    bool is_integer = true;
    if (take('.')) {
      is_integer = false;
      if (digits() == 0) return expected("a digit");
    }
    if (peek() == 'e' || peek() == 'E') {
      is_integer = false;
      ++at_;
      if (!take('+')) take('-');
      if (digits() == 0) return expected("a digit");
    }
    std::string_view literal = text_.substr(begin, at_ - begin);
    if (literal.size() > longest_number)
      return error_at(begin, "a number has more than ", longest_number, " characters");
    const char *end = literal.data() + literal.size();
    if (is_integer) {
      constexpr int64_t exact = int64_t{1} << 53;
      int64_t integer = 0;
      auto [_, failure] = std::from_chars(literal.data(), end, integer);
      if (failure != std::errc() || integer > exact || integer < -exact)
        return error_at(begin, "integer ", literal, " is beyond 2^53; write it as a string");
      return {};
    }
    // Out of range means too large or too small; the latter reads as 0 or a subnormal, as everywhere.
    double real = 0;
    auto [_, failure] = std::from_chars(literal.data(), end, real);
    bool too_large = failure == std::errc::result_out_of_range && exceeds_one(literal);
    if (too_large) return error_at(begin, "number ", literal, " is too large; write \"inf\" for infinity");
    return {};
  }

  // Whether a literal that is out of double's range is above it: by where its leading digit stands.
  static bool exceeds_one(std::string_view literal) {
    if (literal[0] == '-') literal.remove_prefix(1);
    size_t mark = std::min(literal.find_first_of("eE"), literal.size());
    int64_t exponent = 0;
    if (mark < literal.size()) {
      size_t begin = mark + 1 + (literal[mark + 1] == '+');
      auto [_, failure] = std::from_chars(literal.data() + begin, literal.data() + literal.size(), exponent);
      if (failure != std::errc()) return literal[begin] != '-';
    }
    std::string_view mantissa = literal.substr(0, mark);
    auto point = static_cast<int64_t>(std::min(mantissa.find('.'), mantissa.size()));
    auto leading = static_cast<int64_t>(mantissa.find_first_of("123456789"));
    return exponent + (leading < point ? point - leading - 1 : point - leading) >= 0;
  }

  // The string's content, decoded, is appended to `out`.
  Status string(std::string &out) {
    size_t begin = at_++;
    for (;;) {
      if (at_ == text_.size()) return error_at(begin, "a string has no end");
      char c = text_[at_];
      if (c == '"') {
        ++at_;
        return {};
      }
      if (static_cast<unsigned char>(c) < 0x20)
        return error_at(at_, "a control character in a string; write it as \\u00XX");
      if (c == '\\') {
        KILN_TRY(escape(out));
        continue;
      }
      size_t length = utf8_sequence(text_.substr(at_));
      if (length == 0) return error_at(at_, "a string is not UTF-8");
      out.append(text_.substr(at_, length));
      at_ += length;
    }
  }

  Status escape(std::string &out) {
    static constexpr std::string_view letters = "\"\\/bfnrt", meanings = "\"\\/\b\f\n\r\t";
    size_t begin = at_++;
    char c = peek();
    if (size_t which = letters.find(c); which != std::string_view::npos && at_ < text_.size()) {
      out += meanings[which];
      ++at_;
      return {};
    }
    if (c != 'u') return error_at(begin, "an escape is none of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX");
    char32_t unit = 0;
    KILN_TRY(hex4(unit));
    if (unit == 0) return error_at(begin, "\\u0000 is not allowed");
    if (unit >= 0xdc00 && unit <= 0xdfff) return error_at(begin, "a lone surrogate");
    if (unit >= 0xd800 && unit <= 0xdbff) {
      char32_t low = 0;
      if (!take('\\') || peek() != 'u') return error_at(begin, "a lone surrogate");
      KILN_TRY(hex4(low));
      if (low < 0xdc00 || low > 0xdfff) return error_at(begin, "a lone surrogate");
      unit = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
    }
    append_utf8(out, unit);
    return {};
  }

  // At the 'u' of \uXXXX.
  Status hex4(char32_t &out) {
    std::string_view four = text_.substr(++at_, 4);
    uint32_t number = 0;
    const char *stop = std::from_chars(four.data(), four.data() + four.size(), number, 16).ptr;
    at_ += static_cast<size_t>(stop - four.data());
    if (stop != four.data() + 4) return expected("four hexadecimal digits");
    out = number;
    return {};
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void skip_space() {
    while (at_ < text_.size() && std::string_view(" \t\n\r").find(text_[at_]) != std::string_view::npos) ++at_;
  }

  template <class... Parts>
  Status error_at(size_t at, const Parts &...parts) const {
    std::string_view before = text_.substr(0, at);
    size_t line = 1 + static_cast<size_t>(std::ranges::count(before, '\n'));
    size_t newline = before.rfind('\n');
    size_t column = newline == std::string_view::npos ? at + 1 : at - newline;
    return invalid("JSON, line ", line, ", column ", column, ": ", parts...);
  }
  Status expected(std::string_view what) const {
    char c = peek();
    bool printable = c > 0x20 && c < 0x7f;
    std::string found = at_ == text_.size() ? "the end"
                        : printable         ? str_cat('\'', c, '\'')
                                            : str_cat("byte ", uint32_t{static_cast<unsigned char>(c)});
    return error_at(at_, "expected ", what, ", found ", found);
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Status scan_json(std::string_view text) { return Scanner(text).scan(); }

}  // namespace kiln
