// Floor division and modulo, and the proofs that they rest on.
#include <algorithm>
#include <numeric>

#include "jit/base/expr_node.h"

namespace kiln::expr {
namespace {

using Kind = Expr::Kind;

// The value of e where symbols have some small sizes (any two mostly different ones) and all axes stand at one end of
// their range; nullopt when e holds values of a kernel.
std::optional<int64_t> sample(const Expr &e, bool axes_at_end) {
  if (e.is_integer()) return e.integer();
  const Expr::Node &n = *ExprBuilder::node(e);
  if (n.has_value) return std::nullopt;
  if (n.kind == Kind::symbol) return 2 + static_cast<int64_t>(n.hash % 29);
  if (n.kind == Kind::axis) {
    if (!axes_at_end) return 0;
    std::optional<int64_t> extent = sample(n.extra, true);
    return extent ? std::optional(std::max<int64_t>(*extent - 1, 0)) : std::nullopt;
  }
  std::optional<int64_t> result = sample(n.operands[0], axes_at_end);
  for (size_t i = 1; result && i < n.operands.size(); ++i) {
    std::optional<int64_t> other = sample(n.operands[i], axes_at_end);
    if (!other) return std::nullopt;
    switch (n.kind) {
      case Kind::sum:
        result = add(*result, *other);
        break;
      case Kind::product:
        result = multiply(*result, *other);
        break;
      case Kind::floor_div:
        result = floor_divide(*result, *other);
        break;
      case Kind::mod:
        result = floor_modulo(*result, *other);
        break;
      case Kind::min:
        result = std::min(*result, *other);
        break;
      default:
        result = std::max(*result, *other);
    }
  }
  return result;
}

// Most questions have the answer no, and a point that shows it is found faster than a proof is given up.
bool has_counterexample(const Expr &p) { return sample(p, true).value_or(0) < 0 || sample(p, false).value_or(0) < 0; }

// A proof search over what bounds the atoms of a polynomial. Sound, not complete; `steps` keeps it short.
class Prover {
 public:
  explicit Prover(std::span<const Expr> positive) : positive_(positive.begin(), positive.end()) {}

  bool nonnegative(const Expr &p) {
    if (bounds(p).lower >= 0) return true;
    if (bounds(p).upper < 0 || has_counterexample(p) || --steps_ < 0) return false;
    std::optional<Expr> atom = next_bounded_atom(p);
    if (!atom) return nonnegative_over_symbols(p);
    std::optional<Linear> parts = linear_in(p, *atom);
    if (!parts) return false;
    return nonnegative_over(*atom, parts->linear, parts->rest);
  }

 private:
  // The atom to eliminate next: axes first (their extents cancel against what they are compared with), then the rest.
  static std::optional<Expr> next_bounded_atom(const Expr &p) {
    static constexpr Kind order[] = {Kind::axis, Kind::mod, Kind::floor_div, Kind::min, Kind::max};
    const Expr *best = nullptr;
    auto rank = [](Kind k) { return std::find(std::begin(order), std::end(order), k) - order; };
    for (const Expr &term : terms_of(p))
      for (const Expr &factor : split(term).factors)
        if (rank(factor.kind()) < std::ssize(order) && (!best || rank(factor.kind()) < rank(best->kind())))
          best = &factor;
    return best ? std::optional(*best) : std::nullopt;
  }

  // linear*atom + rest >= 0
  bool nonnegative_over(const Expr &atom, const Expr &linear, const Expr &rest) {
    bool rises = nonnegative(linear);
    bool falls = !rises && nonnegative(Expr(-1) * linear);
    switch (atom.kind()) {
      case Kind::axis: {  // 0 .. extent - 1
        assume_positive(atom.extent());
        if (rises) return nonnegative(rest);
        return falls && nonnegative(rest + linear * (atom.extent() - 1));
      }
      case Kind::mod: {  // 0 .. divisor - 1
        const Expr &divisor = atom.operands()[1];
        assume_positive(divisor);
        if (rises) return nonnegative(rest);
        return falls && nonnegative(rest + linear * (divisor - 1));
      }
      case Kind::floor_div: {
        // c*(x // c) = x - m with 0 <= m < c; and P >= 0 for an integer P if c*P + c - 1 >= 0.
        const Expr &x = atom.operands()[0], &c = atom.operands()[1];
        assume_positive(c);
        if (rises && nonnegative(x) && nonnegative(rest)) return true;
        if (rises) return nonnegative(c * rest + linear * (x - c + 1) + c - 1);
        return falls && nonnegative(c * rest + linear * x + c - 1);
      }
      case Kind::min:
      case Kind::max: {
        // It is one of its operands: both must do. Where the larger (smaller) one is the worse, one that does is
        // enough.
        bool one_is_enough = atom.kind() == Kind::min ? falls : rises;
        bool first = nonnegative(rest + linear * atom.operands()[0]);
        if (first == one_is_enough) return first;
        return nonnegative(rest + linear * atom.operands()[1]);
      }
      default:
        return false;
    }
  }

  // What divides, and the extent of an axis that has a value, is at least 1; so then is each of its factors.
  void assume_positive(const Expr &e) {
    if (terms_of(e).size() != 1) return;
    for (const Expr &factor : split(e).factors) positive_.push_back(factor);
  }

  bool nonnegative_over_symbols(const Expr &p) {
    std::ranges::sort(positive_);
    positive_.erase(std::ranges::unique(positive_).begin(), positive_.end());
    Expr shifted = p;
    for (const Expr &s : positive_) {
      if (terms_of(shifted).size() > most_terms) return false;
      shifted = shift(shifted, s);
      if (bounds(shifted).lower >= 0) return true;
    }
    return false;
  }

  // p with s + 1 for s: what is at least 1 is something >= 0, plus 1.
  static Expr shift(const Expr &p, const Expr &atom) {
    Expr result;
    for (const Expr &term : terms_of(p)) {
      Term t = split(term);
      Expr shifted = t.coefficient;
      for (const Expr &factor : t.factors) shifted *= factor == atom ? factor + 1 : factor;
      result += shifted;
    }
    return result;
  }

  static constexpr size_t most_terms = 32;  // each shift may double them
  std::vector<Expr> positive_;
  int steps_ = 100;
};

// The largest term that divides `term` and all terms of b.
Expr common_divisor(const Expr &term, const Expr &b) {
  Term t = split(term);
  int64_t coefficient = t.coefficient;
  std::vector<Expr> factors(t.factors.begin(), t.factors.end());
  for (const Expr &other : terms_of(b)) {
    Term o = split(other);
    if (coefficient == no_lower || o.coefficient == no_lower) return 1;  // its absolute value is no int64_t
    coefficient = std::gcd(coefficient, o.coefficient);
    std::vector<Expr> common;
    std::ranges::set_intersection(factors, o.factors, std::back_inserter(common));
    factors = std::move(common);
  }
  return make_term(coefficient, std::move(factors));
}

// p / term, where each term of p is a multiple of it.
Expr exact_quotient(const Expr &p, const Expr &term) {
  Term d = split(term);
  std::vector<Expr> out;
  for (const Expr &e : terms_of(p)) {
    Term t = split(e);
    out.push_back(make_term(t.coefficient / d.coefficient, *without(t.factors, d.factors)));
  }
  return make_sum(std::move(out));
}

bool is_multiple(const Expr &term, const Expr &of) {
  Term t = split(term), d = split(of);
  return t.coefficient % d.coefficient == 0 && std::ranges::includes(t.factors, d.factors);
}

// a = quotient*b + remainder as polynomials, without looking at bounds.
Division reduce_by_term(const Expr &a, const Expr &b) {
  Term d = split(b);
  std::vector<Expr> quotient, remainder;
  for (const Expr &term : terms_of(a)) {
    Term t = split(term);
    std::optional<std::vector<Expr>> factors = without(t.factors, d.factors);
    if (!factors) {
      remainder.push_back(term);
      continue;
    }
    // A constant goes to [0, d), so that (x + 5) // 4 and 1 + (x + 1) // 4 are the same; others keep their sign.
    bool constant = t.factors.empty();
    int64_t q = constant ? floor_divide(t.coefficient, d.coefficient) : t.coefficient / d.coefficient;
    int64_t r = constant ? floor_modulo(t.coefficient, d.coefficient) : t.coefficient % d.coefficient;
    if (q != 0) quotient.push_back(make_term(q, std::move(*factors)));
    if (r != 0) remainder.push_back(make_term(r, {t.factors.begin(), t.factors.end()}));
  }
  return {make_sum(std::move(quotient)), make_sum(std::move(remainder))};
}

// The same for any b. Where its first coefficient is below 0 (in 7 - s) its negative divides, so that no quotient
// overflows.
Division reduce(const Expr &a, const Expr &b) {
  if (split(terms_of(b)[0]).coefficient < 0) {
    const Division d = reduce(a, Expr(-1) * b);
    return {Expr(-1) * d.quotient, d.remainder};
  }
  if (terms_of(b).size() == 1) return reduce_by_term(a, b);
  Division d{0, a};
  const Expr &lead = terms_of(b)[0];
  for (int step = 0; step < 32; ++step) {
    std::span<const Expr> terms = terms_of(d.remainder);
    auto term = std::ranges::find_if(terms, [&](const Expr &t) { return is_multiple(t, lead); });
    if (term == terms.end()) break;
    Expr q = exact_quotient(*term, lead);
    d = {d.quotient + q, d.remainder - q * b};
  }
  return d;
}

// What a proof about a division by b may use.
class Range {
 public:
  explicit Range(const Expr &b) : b_(b) {
    if (terms_of(b).size() == 1) positive_ = split(b).factors;
  }
  // r // c, if that is known to be 0 or -1.
  std::optional<int> quotient(const Expr &r, const Expr &c) const {
    if (proves(r) && proves(c - 1 - r)) return 0;
    if (proves(r + c) && proves(Expr(-1) - r)) return -1;
    return std::nullopt;
  }

 private:
  bool proves(const Expr &p) const {
    if (proves_nonnegative(p, positive_)) return true;
    return terms_of(b_).size() > 1 && proves_nonnegative(p - (b_ - 1), positive_);
  }
  const Expr &b_;
  std::span<const Expr> positive_;
};

// r = g*high + low with 0 <= low < g, g a divisor of b: r // b = high // (b/g), r % b = g*(high % (b/g)) + low.
std::optional<Division> divide_by_parts(const Expr &r, const Expr &b, const Range &range) {
  std::vector<Expr> tried;
  for (const Expr &term : terms_of(r)) {  // by falling degree: the largest divisors first
    Expr g = common_divisor(term, b);
    if (g.is(1) || g == b || std::ranges::find(tried, g) != tried.end()) continue;
    tried.push_back(g);
    std::vector<Expr> high, low;
    for (const Expr &t : terms_of(r)) (is_multiple(t, g) ? high : low).push_back(t);
    Expr low_sum = make_sum(std::move(low));
    std::optional<int> carry = range.quotient(low_sum, g);
    if (!carry) continue;
    Division d = divide(exact_quotient(make_sum(std::move(high)), g) + *carry, exact_quotient(b, g));
    return Division{d.quotient, g * d.remainder + low_sum - g * *carry};
  }
  return std::nullopt;
}

}  // namespace

bool proves_nonnegative(const Expr &p, std::span<const Expr> positive) { return Prover(positive).nonnegative(p); }

Division divide(const Expr &a, const Expr &b) {
  if (b.is(0) || a.is(0)) return {0, 0};
  if (b.is(1)) return {a, 0};
  if (a.is_integer() && b.is_integer())
    return {floor_divide(a.integer(), b.integer()), floor_modulo(a.integer(), b.integer())};
  if (split(terms_of(b)[0]).coefficient == no_lower)  // has no negative
    return {make_atom(Kind::floor_div, a, b), make_atom(Kind::mod, a, b)};
  if (b.is_integer() && b.integer() < 0) {  // all other divisors are positive, whatever the signs of their terms
    Division d = divide(Expr(-1) * a, Expr(-1) * b);
    return {d.quotient, Expr(-1) * d.remainder};
  }
  Range range(b);
  if (std::optional<int> q = range.quotient(a, b)) return {*q, a - b * *q};

  auto [quotient, rest] = reduce(a, b);
  if (rest.is(0)) return {quotient, 0};
  if (rest != a)
    if (std::optional<int> q = range.quotient(rest, b)) return {quotient + *q, rest - b * *q};
  if (std::optional<Division> d = divide_by_parts(rest, b, range)) return {quotient + d->quotient, d->remainder};

  if (rest.kind() == Kind::floor_div) {  // (x // c) // b = x // (c*b)
    Expr q = divide(rest.operands()[0], rest.operands()[1] * b).quotient;
    return {quotient + q, make_atom(Kind::mod, rest, b, q)};
  }
  if (rest.kind() == Kind::mod) {  // (x % (k*b)) // b = (x // b) % k, (x % (k*b)) % b = x % b
    auto [k, left] = reduce(rest.operands()[1], b);
    if (left.is(0)) {
      Division d = divide(rest.operands()[0], b);
      return {quotient + divide(d.quotient, k).remainder, d.remainder};
    }
  }
  Expr q = make_atom(Kind::floor_div, rest, b);
  return {quotient + q, make_atom(Kind::mod, rest, b, q)};
}

}  // namespace kiln::expr
