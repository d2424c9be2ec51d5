// Private to expr*.cpp: the node behind an Expr, and the pieces of its normal form.
//
// Normal form: an Expr is an integer or a node. A sum's operands are terms, by falling degree, then by their factors; a
// constant comes last. A term is an integer, an atom, or a product: [coefficient unless 1, factors in ascending order].
// All other kinds are atoms. (A product whose expansion would be huge keeps sums as factors; they are atoms, too.)
#pragma once
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "jit/base/expr.h"

namespace kiln {

// Limits of what is read: of the text, and of the simplified expression's, so that all that is read can be written and
// read again.
inline constexpr size_t longest_text = 64 << 10;
inline constexpr int deepest_text = 200;

inline constexpr int64_t no_lower = std::numeric_limits<int64_t>::min();  // unbounded below; also where sums saturate
inline constexpr int64_t no_upper = std::numeric_limits<int64_t>::max();

struct Expr::Node {
  Kind kind = Kind::symbol;
  bool has_axis = false, has_value = false, has_symbol = false;  // anywhere inside; not in the extents of axes
  uint16_t depth = 1;                                            // of nodes below each other; saturates
  uint16_t nodes = 1;                                            // Expr::nodes
  uint32_t size = 1;  // at least the characters of text(), where shared parts repeat; saturates
  uint32_t id = 0;    // axis, value
  uint64_t hash = 0;
  int64_t lower = no_lower, upper = no_upper;  // constant bounds
  std::string name;                            // symbol
  Expr extra;                                  // axis: its extent. mod: operand 0 // operand 1, simplified
  std::vector<Expr> operands;
};

// The private door of Expr.
struct ExprBuilder {
  static const Expr::Node *node(const Expr &e) { return e.node_.get(); }
  static Expr make(Expr::Node node);  // fills in hash, flags, depth, size and bounds
};

namespace expr {

// Integer arithmetic that saturates: an overflowed size stays "too large", it never wraps to a small one.
int64_t add(int64_t a, int64_t b);
int64_t multiply(int64_t a, int64_t b);
int64_t floor_divide(int64_t a, int64_t b);  // 0 when b is 0
int64_t floor_modulo(int64_t a, int64_t b);  // has b's sign; 0 when b is 0

struct Interval {
  int64_t lower, upper;
};
Interval bounds(const Expr &e);

struct Term {
  int64_t coefficient;
  std::span<const Expr> factors;
};
std::span<const Expr> terms_of(const Expr &e);  // of any Expr; none for 0
Term split(const Expr &term);                   // of an element of terms_of
Expr make_term(int64_t coefficient, std::vector<Expr> sorted_factors);
Expr make_sum(std::vector<Expr> sorted_terms);  // distinct, non-zero; folds D*(x // D) + x % D
Expr make_atom(Expr::Kind kind, Expr a, Expr b, Expr extra = {});

// a's factors without those of b; nullopt when b does not divide a.
std::optional<std::vector<Expr>> without(std::span<const Expr> a, std::span<const Expr> b);

// P = linear*atom + rest for a top-level atom; nullopt when P holds a higher power of it.
struct Linear {
  Expr linear, rest;
};
std::optional<Linear> linear_in(const Expr &p, const Expr &atom);

// Whether p >= 0 follows from axis extents, symbols >= 0 and the atoms in `positive` being >= 1. False: not known.
bool proves_nonnegative(const Expr &p, std::span<const Expr> positive = {});

struct Division {
  Expr quotient, remainder;
};
Division divide(const Expr &a, const Expr &b);

}  // namespace expr
}  // namespace kiln
