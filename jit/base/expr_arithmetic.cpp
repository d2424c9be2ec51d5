// Sums, products, min and max in normal form.
#include <algorithm>

#include "jit/base/expr_node.h"

namespace kiln {
namespace expr {

int64_t add(int64_t a, int64_t b) {
  int64_t sum;
  if (__builtin_add_overflow(a, b, &sum)) return a < 0 ? no_lower : no_upper;
  return sum;
}

int64_t multiply(int64_t a, int64_t b) {
  int64_t product;
  if (__builtin_mul_overflow(a, b, &product)) return (a < 0) != (b < 0) ? no_lower : no_upper;
  return product;
}

int64_t floor_divide(int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return multiply(a, -1);
  int64_t q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

int64_t floor_modulo(int64_t a, int64_t b) {
  if (b == 0 || b == -1) return 0;  // INT64_MIN % -1 traps
  int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

std::span<const Expr> terms_of(const Expr &e) {
  if (e.kind() == Expr::Kind::sum) return e.operands();
  if (e.is(0)) return {};
  return {&e, 1};
}

Term split(const Expr &term) {
  if (term.is_integer()) return {term.integer(), {}};
  if (term.kind() != Expr::Kind::product) return {1, {&term, 1}};
  std::span<const Expr> all = term.operands();
  if (all[0].is_integer()) return {all[0].integer(), all.subspan(1)};
  return {1, all};
}

Expr make_term(int64_t coefficient, std::vector<Expr> factors) {
  if (coefficient == 0 || factors.empty()) return coefficient;
  if (coefficient == 1 && factors.size() == 1) return factors[0];
  if (coefficient != 1) factors.insert(factors.begin(), Expr(coefficient));
  Expr::Node n;
  n.kind = Expr::Kind::product;
  n.operands = std::move(factors);
  return ExprBuilder::make(std::move(n));
}

Expr make_atom(Expr::Kind kind, Expr a, Expr b, Expr extra) {
  Expr::Node n;
  n.kind = kind;
  n.operands = {std::move(a), std::move(b)};
  n.extra = std::move(extra);
  return ExprBuilder::make(std::move(n));
}

std::optional<std::vector<Expr>> without(std::span<const Expr> a, std::span<const Expr> b) {
  if (!std::ranges::includes(a, b)) return std::nullopt;
  std::vector<Expr> rest;
  std::ranges::set_difference(a, b, std::back_inserter(rest));
  return rest;
}

std::optional<Linear> linear_in(const Expr &p, const Expr &atom) {
  std::vector<Expr> linear, rest;
  for (const Expr &term : terms_of(p)) {
    Term t = split(term);
    auto power = std::ranges::count(t.factors, atom);
    if (power > 1) return std::nullopt;
    if (power == 0)
      rest.push_back(term);
    else
      linear.push_back(make_term(t.coefficient, *without(t.factors, {&atom, 1})));
  }
  // Taking one factor out of each keeps the order of the terms.
  return Linear{make_sum(std::move(linear)), make_sum(std::move(rest))};
}

namespace {

// By falling degree, then by factors: an order that multiplication by a term preserves.
std::strong_ordering order(const Expr &a, const Expr &b) {
  Term x = split(a), y = split(b);
  if (auto c = y.factors.size() <=> x.factors.size(); c != 0) return c;
  return std::lexicographical_compare_three_way(x.factors.begin(), x.factors.end(), y.factors.begin(), y.factors.end());
}

// The terms without `one` and without those of `others`; nullopt unless all of them are there.
std::optional<std::vector<Expr>> remove_all(const std::vector<Expr> &terms, const Expr &one, const Expr &others) {
  std::span<const Expr> gone = terms_of(others);
  std::vector<Expr> rest;
  std::ranges::copy_if(terms, std::back_inserter(rest),
                       [&](const Expr &e) { return e != one && std::ranges::find(gone, e) == gone.end(); });
  if (gone.empty() || rest.size() + gone.size() + 1 != terms.size()) return std::nullopt;
  return rest;
}

// For the first `x % D` that has its counterpart among the terms:
//   c*D*(x // D) + c*(x % D) = c*x,   c*D*((x // D) % k) + c*(x % D) = c*(x % (k*D)).
std::optional<Expr> fold_remainder(const std::vector<Expr> &terms) {
  for (const Expr &term : terms) {
    Term t = split(term);
    for (const Expr &factor : t.factors) {
      if (factor.kind() != Expr::Kind::mod) continue;
      Expr scale = make_term(t.coefficient, *without(t.factors, {&factor, 1}));
      const Expr &x = factor.operands()[0], &divisor = factor.operands()[1];
      const Expr &quotient = ExprBuilder::node(factor)->extra;
      if (auto rest = remove_all(terms, term, scale * divisor * quotient))
        return make_sum(std::move(*rest)) + scale * x;
      for (const Expr &other : terms) {
        for (const Expr &digit : split(other).factors) {
          if (digit.kind() != Expr::Kind::mod || digit.operands()[0] != quotient) continue;
          if (auto rest = remove_all(terms, term, scale * divisor * digit))
            return make_sum(std::move(*rest)) + scale * mod(x, divisor * digit.operands()[1]);
        }
      }
    }
  }
  return std::nullopt;
}

// Adds up sorted terms with equal factors.
std::vector<Expr> combine(std::vector<Expr> sorted) {
  std::vector<Expr> out;
  for (Expr &term : sorted) {
    if (out.empty() || order(out.back(), term) != 0) {
      out.push_back(std::move(term));
      continue;
    }
    Term t = split(out.back());
    int64_t coefficient = add(t.coefficient, split(term).coefficient);
    if (coefficient == 0)
      out.pop_back();
    else
      out.back() = make_term(coefficient, {t.factors.begin(), t.factors.end()});
  }
  return out;
}

constexpr size_t expansion_limit = 128;  // terms; beyond it a product keeps its sums as factors

// Whether a*b is not multiplied out: it would be huge, or one of them was kept so already.
bool keeps_factors(const Expr &a, const Expr &b) {
  auto has_kept_factor = [](const Expr &e) {
    return std::ranges::any_of(terms_of(e), [](const Expr &term) {
      return std::ranges::any_of(split(term).factors, [](const Expr &f) { return f.kind() == Expr::Kind::sum; });
    });
  };
  if (a.is_integer() || b.is_integer()) return false;
  return terms_of(a).size() * terms_of(b).size() > expansion_limit || has_kept_factor(a) || has_kept_factor(b);
}

Expr keep_product(const Expr &a, const Expr &b) {
  int64_t coefficient = 1;
  std::vector<Expr> factors;
  for (const Expr *e : {&a, &b}) {
    if (e->kind() == Expr::Kind::sum) {
      factors.push_back(*e);
    } else {
      Term t = split(*e);
      coefficient = multiply(coefficient, t.coefficient);
      factors.insert(factors.end(), t.factors.begin(), t.factors.end());
    }
  }
  std::ranges::sort(factors);
  return make_term(coefficient, std::move(factors));
}

// min and max differ in one comparison: whether `a` makes `b` superfluous.
Expr extreme(Expr::Kind kind, const Expr &a, const Expr &b) {
  std::vector<Expr> all;
  auto covers = [&](const Expr &x, const Expr &y) {
    return proves_nonnegative(kind == Expr::Kind::min ? y - x : x - y);
  };
  auto take = [&](const Expr &e, auto &&self) -> void {
    if (e.kind() == kind) {
      for (const Expr &operand : e.operands()) self(operand, self);
      return;
    }
    if (std::ranges::any_of(all, [&](const Expr &have) { return covers(have, e); })) return;
    std::erase_if(all, [&](const Expr &have) { return covers(e, have); });
    all.push_back(e);
  };
  take(a, take);
  take(b, take);
  std::ranges::sort(all);
  Expr result = all[0];
  for (size_t i = 1; i < all.size(); ++i) result = make_atom(kind, result, all[i]);
  return result;
}

}  // namespace

Expr make_sum(std::vector<Expr> terms) {
  if (terms.empty()) return 0;
  if (terms.size() == 1) return terms[0];
  if (std::optional<Expr> folded = fold_remainder(terms)) return *folded;
  Expr::Node n;
  n.kind = Expr::Kind::sum;
  n.operands = std::move(terms);
  return ExprBuilder::make(std::move(n));
}

}  // namespace expr

Expr operator+(const Expr &a, const Expr &b) {
  if (a.is_integer() && b.is_integer()) return expr::add(a.integer(), b.integer());
  if (a.is(0)) return b;
  if (b.is(0)) return a;
  std::span<const Expr> x = expr::terms_of(a), y = expr::terms_of(b);
  std::vector<Expr> merged;
  merged.reserve(x.size() + y.size());
  std::ranges::merge(x, y, std::back_inserter(merged),
                     [](const Expr &s, const Expr &t) { return expr::order(s, t) < 0; });
  return expr::make_sum(expr::combine(std::move(merged)));
}

Expr operator-(const Expr &a, const Expr &b) { return a + Expr(-1) * b; }

Expr operator*(const Expr &a, const Expr &b) {
  if (a.is_integer() && b.is_integer()) return expr::multiply(a.integer(), b.integer());
  if (a.is(0) || b.is(1)) return a;
  if (b.is(0) || a.is(1)) return b;
  std::span<const Expr> x = expr::terms_of(a), y = expr::terms_of(b);
  if (expr::keeps_factors(a, b)) return expr::keep_product(a, b);
  std::vector<Expr> products;
  products.reserve(x.size() * y.size());
  for (const Expr &s : x) {
    for (const Expr &t : y) {
      expr::Term p = expr::split(s), q = expr::split(t);
      std::vector<Expr> factors;
      factors.reserve(p.factors.size() + q.factors.size() + 1);
      std::ranges::merge(p.factors, q.factors, std::back_inserter(factors));
      products.push_back(expr::make_term(expr::multiply(p.coefficient, q.coefficient), std::move(factors)));
    }
  }
  std::ranges::sort(products, [](const Expr &s, const Expr &t) { return expr::order(s, t) < 0; });
  return expr::make_sum(expr::combine(std::move(products)));
}

Expr floor_div(const Expr &a, const Expr &b) { return expr::divide(a, b).quotient; }
Expr mod(const Expr &a, const Expr &b) { return expr::divide(a, b).remainder; }
Expr ceil_div(const Expr &a, const Expr &b) { return floor_div(a + b - 1, b); }
Expr min(const Expr &a, const Expr &b) { return expr::extreme(Expr::Kind::min, a, b); }
Expr max(const Expr &a, const Expr &b) { return expr::extreme(Expr::Kind::max, a, b); }

}  // namespace kiln
