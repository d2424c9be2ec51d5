// Integer expressions over symbols, axes and loaded values: shapes, strides, index maps, size formulas.
//
// An Expr is an immutable value (a shared node, or a plain integer), normalised when it is made: sums of products with
// constant coefficients over sorted atoms, so that equal polynomials are equal structurally. floor_div, mod, min and
// max are atoms of their own, simplified by these rules:
//   (c*q + r) // c = q + r // c,  (c*q + r) % c = r % c,   x // c = 0 and x % c = x when 0 <= x < c,
//   (x // a) // b = x // (a*b),   (x % (k*b)) // b = (x // b) % k,   (x % (k*b)) % b = x % b,
//   (g*x + y) // (g*b) = x // b and (g*x + y) % (g*b) = g*(x % b) + y when 0 <= y < g,
//   c*D*(x // D) + c*(x % D) = c*x,   c*D*((x // D) % k) + c*(x % D) = c*(x % (k*D)).
// c, D, g may be terms with symbols, c and D sums as well. So a reshape's division of ((b*T + t)*H + h)*D + d finds the
// axes again. Axis atoms carry their extent, which is what "0 <= x < c" is decided from. Symbols are taken to be >= 0,
// and what divides, or is the extent of an axis that has a value, to be >= 1.
// Threads: an Expr may be read from any thread. No function fails; a division by 0 yields 0, an overflow saturates.
#pragma once
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jit/base/status.h"

namespace kiln {

class Expr {
 public:
  enum class Kind : uint8_t { integer, symbol, axis, value, sum, product, floor_div, mod, min, max };
  struct Node;

  Expr() = default;  // 0
  Expr(int64_t integer) : integer_(integer) {}
  Expr(int integer) : integer_(integer) {}
  static Expr symbol(std::string_view name);
  static Expr axis(uint32_t id, Expr extent);  // 0 <= axis < extent
  static Expr value(uint32_t id);  // a value that a kernel's body computed; meaningful inside that body only
  // Reads "2*n + 1", "(h + 3) // 4", "min(a, b)", "n / 2" (exact; kept as a floor division), "n % 8". Refuses what is
  // longer than 64 KiB or deeper than 200 levels, as written or simplified.
  static Result<Expr> parse(std::string_view text);

  Kind kind() const;
  bool is_integer() const { return !node_; }
  bool is(int64_t integer) const { return !node_ && integer_ == integer; }
  int64_t integer() const { return integer_; }  // kind integer
  const std::string &symbol_name() const;       // kind symbol
  uint32_t id() const;                          // kinds axis and value
  const Expr &extent() const;                   // kind axis
  // sum: the terms. product: the factors, a constant coefficient first when it is not 1. Others: the two operands.
  std::span<const Expr> operands() const;
  // Of its tree, where a shared part counts at each place that it stands in: what walking, printing and code of it
  // cost. An integer is one; extents of axes do not count. Saturates at 65,535.
  size_t nodes() const;

  friend Expr operator+(const Expr &a, const Expr &b);
  friend Expr operator-(const Expr &a, const Expr &b);
  friend Expr operator*(const Expr &a, const Expr &b);
  friend Expr floor_div(const Expr &a, const Expr &b);
  friend Expr ceil_div(const Expr &a, const Expr &b);
  friend Expr mod(const Expr &a, const Expr &b);
  friend Expr min(const Expr &a, const Expr &b);
  friend Expr max(const Expr &a, const Expr &b);
  Expr &operator+=(const Expr &b) { return *this = *this + b; }
  Expr &operator*=(const Expr &b) { return *this = *this * b; }

  friend bool operator==(const Expr &a, const Expr &b);                   // structural
  friend std::strong_ordering operator<=>(const Expr &a, const Expr &b);  // a total, process-independent order

  std::string text() const;  // reads back through parse if is_readable() (axes print as i0, values as v0)
  bool is_readable() const;  // neither longer nor deeper than what parse reads; costs nothing, unlike text()
  // The four below do not look into the extents of axes.
  void collect_symbols(std::set<std::string> &out) const;
  bool depends_on_axis(uint32_t id) const;
  bool depends_on_symbol() const;
  bool depends_on_value() const;
  // What this is in steps of axis `id`: e = result*axis + (rest without the axis); nullopt when e is not linear in it.
  std::optional<Expr> coefficient(uint32_t axis_id) const;
  // Rebuilds with each leaf (symbol, axis, value) replaced where `map` returns something. The extent of an axis that
  // stays is rebuilt, too.
  Expr substitute(const std::function<std::optional<Expr>(const Expr &leaf)> &map) const;
  // The value with symbols from `lookup` (which must know them all; no axes or values inside). Saturates.
  int64_t evaluate(const std::function<int64_t(const std::string &symbol)> &lookup) const;
  // The same with what each leaf (symbol, axis, value) is.
  int64_t evaluate_leaves(const std::function<int64_t(const Expr &leaf)> &lookup) const;
  // Bounds from axis extents and "symbols are >= 0"; nullopt = unbounded.
  std::optional<int64_t> lower_bound() const;
  std::optional<int64_t> upper_bound() const;

 private:
  friend struct ExprBuilder;
  explicit Expr(std::shared_ptr<const Node> node) : node_(std::move(node)) {}
  int64_t integer_ = 0;  // when node_ is null
  std::shared_ptr<const Node> node_;
};

// Namespace-scope names for the friends, so that they are found without arguments of type Expr.
Expr operator+(const Expr &a, const Expr &b);
Expr operator-(const Expr &a, const Expr &b);
Expr operator*(const Expr &a, const Expr &b);
Expr floor_div(const Expr &a, const Expr &b);
Expr ceil_div(const Expr &a, const Expr &b);
Expr mod(const Expr &a, const Expr &b);
Expr min(const Expr &a, const Expr &b);
Expr max(const Expr &a, const Expr &b);

using Dim = Expr;  // a dimension: an Expr without axes and values
using Shape = std::vector<Dim>;
std::string text_of(std::span<const Dim> shape);  // "[batch, 3]"
Expr product_of(std::span<const Dim> shape);      // 1 for a scalar
Shape row_major_strides(std::span<const Dim> shape);
// How many elements lie from the lowest to past the highest one, with these strides; 0 where a dim is 0.
Expr span_elements(std::span<const Dim> shape, std::span<const Dim> strides);

}  // namespace kiln
