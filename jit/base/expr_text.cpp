// The text form of an Expr, out and in.
#include <cctype>
#include <charconv>

#include "jit/base/expr_node.h"

namespace kiln {
namespace {

using Kind = Expr::Kind;

void print(const Expr &e, std::string &out);

// As an operand of *, // or %: anything but a leaf or a call is put in parentheses.
void print_factor(const Expr &e, std::string &out) {
  bool bare = e.kind() == Kind::symbol || e.kind() == Kind::axis || e.kind() == Kind::value || e.kind() == Kind::min ||
              e.kind() == Kind::max || (e.is_integer() && e.integer() >= 0);
  if (bare) return print(e, out);
  out += '(';
  print(e, out);
  out += ')';
}

void print_product(const Expr &e, std::string &out) {
  std::span<const Expr> factors = e.operands();
  if (factors[0].is(-1)) {
    out += '-';
    factors = factors.subspan(1);
  }
  for (size_t i = 0; i < factors.size(); ++i) {
    if (i) out += '*';
    if (i == 0 && factors[i].is_integer())
      print(factors[i], out);  // a negative coefficient needs no parentheses
    else
      print_factor(factors[i], out);
  }
}

void print(const Expr &e, std::string &out) {
  auto call = [&](std::string_view name) {
    str_append(out, name);
    out += '(';
    print(e.operands()[0], out);
    out += ", ";
    print(e.operands()[1], out);
    out += ')';
  };
  auto infix = [&](std::string_view op) {
    print_factor(e.operands()[0], out);
    str_append(out, op);
    print_factor(e.operands()[1], out);
  };
  switch (e.kind()) {
    case Kind::integer:
      str_append(out, e.integer());
      break;
    case Kind::symbol:
      out += e.symbol_name();
      break;
    case Kind::axis:
      out += str_cat('i', e.id());
      break;
    case Kind::value:
      out += str_cat('v', e.id());
      break;
    case Kind::product:
      print_product(e, out);
      break;
    case Kind::floor_div:
      infix(" // ");
      break;
    case Kind::mod:
      infix(" % ");
      break;
    case Kind::min:
      call("min");
      break;
    case Kind::max:
      call("max");
      break;
    case Kind::sum: {
      for (const Expr &term : e.operands()) {
        std::string text = term.text();
        if (&term == &e.operands()[0])
          out += text;
        else if (text[0] == '-' && !text.starts_with("-9223372036854775808"))  // which is no number without its sign
          out += " - " + text.substr(1);
        else
          out += " + " + text;
      }
    }
  }
}

// sum := product (("+" | "-") product)*      product := unary (("*" | "/" | "//" | "%") unary)*
// unary := "-" unary | primary               primary := integer | name | ("min" | "max") "(" sum ("," sum)+ ")" | "("
// sum ")"
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Expr> parse() {
    if (text_.size() > longest_text)
      return invalid("expression of ", text_.size(), " characters; at most ", longest_text, " are read");
    KILN_ASSIGN(Expr e, sum());
    skip_space();
    if (at_ != text_.size()) return expected("an operator or the end");
    return e;
  }

 private:
  Result<Expr> sum() {
    if (++depth_ > deepest_text) return too_deep();
    KILN_ASSIGN(Expr left, product());
    for (;;) {
      bool plus = take("+");
      if (!plus && !take("-")) break;
      KILN_ASSIGN(Expr right, product());
      left = plus ? left + right : left - right;
      KILN_TRY(check_growth(left));
    }
    --depth_;
    return left;
  }

  Result<Expr> product() {
    KILN_ASSIGN(Expr left, unary());
    for (;;) {
      std::string_view op = take("*") ? "*" : take("//") ? "/" : take("/") ? "/" : take("%") ? "%" : "";
      if (op.empty()) return left;
      KILN_ASSIGN(Expr right, unary());
      if (op != "*" && right.is(0))
        return invalid("expression '", text_, "': division by zero before character ", at_ + 1);
      left = op == "*" ? left * right : op == "/" ? floor_div(left, right) : mod(left, right);
      KILN_TRY(check_growth(left));
    }
  }

  Result<Expr> unary() {
    bool negative = false;
    while (take("-")) negative = !negative;
    skip_space();
    if (at_ < text_.size() && is_digit(text_[at_])) return integer(negative);
    if (!negative) return primary();
    KILN_ASSIGN(Expr e, primary());
    return Expr(-1) * e;
  }

  Result<Expr> primary() {
    if (take("(")) {
      KILN_ASSIGN(Expr e, sum());
      if (!take(")")) return expected("')'");
      return e;
    }
    std::string_view word = name();
    if (word.empty()) return expected("a number, a name or '('");
    if (word == "min" || word == "max") return call(word == "min");
    return Expr::symbol(word);
  }

  // With its sign, for the smallest number has no positive counterpart.
  Result<Expr> integer(bool negative) {
    uint64_t magnitude = 0;
    auto [end, failure] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), magnitude);
    if (failure != std::errc() || magnitude > static_cast<uint64_t>(no_upper) + negative)
      return invalid("expression '", text_, "': the number at character ", at_ + 1, " exceeds 64 bits");
    at_ = static_cast<size_t>(end - text_.data());
    return Expr(static_cast<int64_t>(negative ? 0 - magnitude : magnitude));
  }

  Result<Expr> call(bool is_min) {
    if (!take("(")) return expected("'('");
    KILN_ASSIGN(Expr e, sum());
    if (!take(",")) return expected("','");
    do {
      KILN_ASSIGN(Expr other, sum());
      e = is_min ? min(e, other) : max(e, other);
      KILN_TRY(check_growth(e));
    } while (take(","));
    if (!take(")")) return expected("')'");
    return e;
  }

  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  static bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

  std::string_view name() {
    size_t begin = at_;
    if (at_ < text_.size() && is_name_start(text_[at_]))
      while (at_ < text_.size() && (is_name_start(text_[at_]) || is_digit(text_[at_]) || text_[at_] == '.')) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  void skip_space() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  bool take(std::string_view token) {
    skip_space();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }

  // A few characters can make a huge expression: each product, quotient or remainder may repeat its operands.
  Status check_growth(const Expr &e) const {
    const Expr::Node *node = ExprBuilder::node(e);
    if (!node) return {};
    if (node->size > longest_text)
      return invalid("expression '", text_.substr(0, 40), "...' takes more than ", longest_text,
                     " characters when it is simplified, at character ", at_ + 1);
    return node->depth > deepest_text ? too_deep() : Status();
  }

  Status too_deep() const {
    return invalid("expression '", text_.substr(0, 40), "...' is nested deeper than ", deepest_text);
  }

  Status expected(std::string_view what) {
    skip_space();
    std::string found = at_ == text_.size() ? "the end" : str_cat('\'', text_[at_], '\'');
    return invalid("expression '", text_, "': expected ", what, " at character ", at_ + 1, ", found ", found);
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::string Expr::text() const {
  std::string out;
  print(*this, out);
  return out;
}

bool Expr::is_readable() const { return !node_ || (node_->size <= longest_text && node_->depth <= deepest_text); }

Result<Expr> Expr::parse(std::string_view text) { return Parser(text).parse(); }

}  // namespace kiln
