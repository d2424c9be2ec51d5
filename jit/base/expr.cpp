// Expr: leaves, structure, order, queries. Arithmetic is in expr_arithmetic.cpp, division in expr_divide.cpp.
#include "jit/base/expr.h"

#include <algorithm>
#include <cassert>

#include "jit/base/expr_node.h"

namespace kiln {
namespace {

uint64_t mix(uint64_t h, uint64_t v) {
  h ^= v + 0x9e3779b97f4a7c15u + (h << 6) + (h >> 2);
  return h * 0xff51afd7ed558ccdu;
}

uint64_t hash_of(const Expr &e) {
  return e.is_integer() ? mix(1, static_cast<uint64_t>(e.integer())) : ExprBuilder::node(e)->hash;
}

bool is_infinite(int64_t v) { return v == no_lower || v == no_upper; }
int64_t add_bound(int64_t a, int64_t b) { return is_infinite(a) ? a : is_infinite(b) ? b : expr::add(a, b); }

int64_t multiply_bound(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;  // also of an infinity
  if (is_infinite(a) || is_infinite(b)) return (a < 0) != (b < 0) ? no_lower : no_upper;
  return expr::multiply(a, b);
}

expr::Interval multiply_bounds(expr::Interval a, expr::Interval b) {
  auto [low, high] = std::minmax({multiply_bound(a.lower, b.lower), multiply_bound(a.lower, b.upper),
                                  multiply_bound(a.upper, b.lower), multiply_bound(a.upper, b.upper)});
  return {low, high};
}

expr::Interval floor_div_bounds(expr::Interval x, expr::Interval c) {
  int64_t small = std::max<int64_t>(c.lower, 1), large = std::max(c.upper, small);  // divisors are positive
  auto quotient = [](int64_t a, int64_t b) -> int64_t {
    if (is_infinite(b)) return a < 0 ? -1 : 0;
    return is_infinite(a) ? a : expr::floor_divide(a, b);
  };
  return {quotient(x.lower, x.lower < 0 ? small : large), quotient(x.upper, x.upper < 0 ? large : small)};
}

expr::Interval bounds_of_node(const Expr::Node &n) {
  using Kind = Expr::Kind;
  auto operand = [&](size_t i) { return expr::bounds(n.operands[i]); };
  switch (n.kind) {
    case Kind::symbol:
      return {0, no_upper};
    case Kind::axis: {
      int64_t extent = expr::bounds(n.extra).upper;
      return {0, is_infinite(extent) ? no_upper : std::max<int64_t>(extent - 1, 0)};
    }
    case Kind::sum: {
      expr::Interval all{0, 0};
      for (const Expr &term : n.operands) {
        expr::Interval one = expr::bounds(term);
        all = {add_bound(all.lower, one.lower), add_bound(all.upper, one.upper)};
      }
      return all;
    }
    case Kind::product: {
      expr::Interval all = operand(0);
      for (size_t i = 1; i < n.operands.size(); ++i) all = multiply_bounds(all, operand(i));
      return all;
    }
    case Kind::floor_div:
      return floor_div_bounds(operand(0), operand(1));
    case Kind::mod: {
      expr::Interval x = operand(0), c = operand(1);
      int64_t top = is_infinite(c.upper) ? no_upper : std::max<int64_t>(c.upper - 1, 0);
      return {0, x.lower >= 0 ? std::min(top, x.upper) : top};
    }
    case Kind::min:
      return {std::min(operand(0).lower, operand(1).lower), std::min(operand(0).upper, operand(1).upper)};
    case Kind::max:
      return {std::max(operand(0).lower, operand(1).lower), std::max(operand(0).upper, operand(1).upper)};
    case Kind::integer:
    case Kind::value:
      break;
  }
  return {no_lower, no_upper};
}

}  // namespace

Expr ExprBuilder::make(Expr::Node n) {
  uint64_t h = mix(2, static_cast<uint64_t>(n.kind));
  h = mix(h, n.id);
  for (char c : n.name) h = mix(h, static_cast<uint8_t>(c));
  if (n.kind == Expr::Kind::axis) h = mix(h, hash_of(n.extra));
  n.has_axis = n.kind == Expr::Kind::axis;
  n.has_value = n.kind == Expr::Kind::value;
  n.has_symbol = n.kind == Expr::Kind::symbol;
  uint64_t size = n.name.size() + 12;  // "min(, )" around the operands; the digits of an id
  size_t nodes = 1;
  for (const Expr &e : n.operands) {
    h = mix(h, hash_of(e));
    size += 5;  // " + (" and ")"
    nodes += e.nodes();
    if (const Expr::Node *child = node(e)) {
      n.has_axis |= child->has_axis;
      n.has_value |= child->has_value;
      n.has_symbol |= child->has_symbol;
      n.depth = std::max(n.depth, static_cast<uint16_t>(std::min(child->depth + 1, 0xffff)));
      size += child->size;
    } else {
      size += 20;  // the digits of an integer
    }
  }
  n.size = static_cast<uint32_t>(std::min<uint64_t>(size, 0xffffffff));
  n.nodes = static_cast<uint16_t>(std::min<size_t>(nodes, 0xffff));
  n.hash = h;
  expr::Interval b = bounds_of_node(n);
  n.lower = b.lower;
  n.upper = b.upper;
  return Expr(std::make_shared<const Expr::Node>(std::move(n)));
}

expr::Interval expr::bounds(const Expr &e) {
  if (e.is_integer()) return {e.integer(), e.integer()};
  const Expr::Node *n = ExprBuilder::node(e);
  return {n->lower, n->upper};
}

Expr Expr::symbol(std::string_view name) {
  Node n;
  n.kind = Kind::symbol;
  n.name = name;
  return ExprBuilder::make(std::move(n));
}

Expr Expr::axis(uint32_t id, Expr extent) {
  Node n;
  n.kind = Kind::axis;
  n.id = id;
  n.extra = std::move(extent);
  return ExprBuilder::make(std::move(n));
}

Expr Expr::value(uint32_t id) {
  Node n;
  n.kind = Kind::value;
  n.id = id;
  return ExprBuilder::make(std::move(n));
}

Expr::Kind Expr::kind() const { return node_ ? node_->kind : Kind::integer; }
const std::string &Expr::symbol_name() const {
  assert(kind() == Kind::symbol);
  return node_->name;
}
uint32_t Expr::id() const {
  assert(kind() == Kind::axis || kind() == Kind::value);
  return node_->id;
}
const Expr &Expr::extent() const {
  assert(kind() == Kind::axis);
  return node_->extra;
}
std::span<const Expr> Expr::operands() const {
  return node_ ? std::span<const Expr>(node_->operands) : std::span<const Expr>();
}

bool operator==(const Expr &a, const Expr &b) {
  if (a.node_ == b.node_) return a.integer_ == b.integer_;
  if (!a.node_ || !b.node_ || a.node_->hash != b.node_->hash) return false;
  return (a <=> b) == 0;
}

std::strong_ordering operator<=>(const Expr &a, const Expr &b) {
  if (a.is_integer() || b.is_integer()) {
    if (a.is_integer() && b.is_integer()) return a.integer() <=> b.integer();
    return a.is_integer() ? std::strong_ordering::less : std::strong_ordering::greater;
  }
  if (a.node_ == b.node_) return std::strong_ordering::equal;
  const Expr::Node &x = *a.node_, &y = *b.node_;
  if (auto c = x.kind <=> y.kind; c != 0) return c;
  if (auto c = x.id <=> y.id; c != 0) return c;
  if (auto c = x.name <=> y.name; c != 0) return c;
  if (x.kind == Expr::Kind::axis) return x.extra <=> y.extra;
  return std::lexicographical_compare_three_way(x.operands.begin(), x.operands.end(), y.operands.begin(),
                                                y.operands.end());
}

size_t Expr::nodes() const { return node_ ? node_->nodes : 1; }

void Expr::collect_symbols(std::set<std::string> &out) const {
  if (kind() == Kind::symbol) out.insert(node_->name);
  for (const Expr &e : operands()) e.collect_symbols(out);
}

bool Expr::depends_on_axis(uint32_t id) const {
  if (!node_ || !node_->has_axis) return false;
  if (node_->kind == Kind::axis) return node_->id == id;
  return std::ranges::any_of(node_->operands, [&](const Expr &e) { return e.depends_on_axis(id); });
}

bool Expr::depends_on_symbol() const { return node_ && node_->has_symbol; }
bool Expr::depends_on_value() const { return node_ && node_->has_value; }

std::optional<Expr> Expr::coefficient(uint32_t axis_id) const {
  Expr result;
  for (const Expr &term : expr::terms_of(*this)) {
    if (!term.depends_on_axis(axis_id)) continue;
    expr::Term t = expr::split(term);
    std::vector<Expr> others;
    for (const Expr &f : t.factors)
      if (f.kind() != Kind::axis || f.id() != axis_id) others.push_back(f);
    if (others.size() + 1 != t.factors.size()) return std::nullopt;  // a power, or inside an atom only
    Expr part = expr::make_term(t.coefficient, std::move(others));
    if (part.depends_on_axis(axis_id)) return std::nullopt;
    result += part;
  }
  return result;
}

Expr Expr::substitute(const std::function<std::optional<Expr>(const Expr &leaf)> &map) const {
  // Of an operation with two operands.
  const auto rebuilt = [&](Expr (*operation)(const Expr &, const Expr &)) {
    const Expr a = node_->operands[0].substitute(map), b = node_->operands[1].substitute(map);
    return a == node_->operands[0] && b == node_->operands[1] ? *this : operation(a, b);
  };
  switch (kind()) {
    case Kind::integer:
      return *this;
    case Kind::symbol:
    case Kind::value:
      return map(*this).value_or(*this);
    case Kind::axis: {
      if (std::optional<Expr> replaced = map(*this)) return *replaced;
      Expr extent = node_->extra.substitute(map);  // symbols of the extent may have got new names or values
      return extent == node_->extra ? *this : axis(node_->id, extent);
    }
    case Kind::sum:
    case Kind::product: {
      std::vector<Expr> parts;
      bool changed = false;
      for (const Expr &e : node_->operands) {
        parts.push_back(e.substitute(map));
        changed |= parts.back() != e;
      }
      if (!changed) return *this;
      Expr result = parts[0];
      for (size_t i = 1; i < parts.size(); ++i) result = kind() == Kind::sum ? result + parts[i] : result * parts[i];
      return result;
    }
    case Kind::floor_div:
      return rebuilt(kiln::floor_div);
    case Kind::mod:
      return rebuilt(kiln::mod);
    case Kind::min:
      return rebuilt(kiln::min);
    case Kind::max:
      return rebuilt(kiln::max);
  }
  return *this;
}

int64_t Expr::evaluate(const std::function<int64_t(const std::string &symbol)> &lookup) const {
  return evaluate_leaves([&](const Expr &leaf) {
    assert(leaf.kind() == Kind::symbol && "an axis or a value has no number here");
    return leaf.kind() == Kind::symbol ? lookup(leaf.symbol_name()) : 0;
  });
}

int64_t Expr::evaluate_leaves(const std::function<int64_t(const Expr &leaf)> &lookup) const {
  const auto operand = [&](size_t i) { return node_->operands[i].evaluate_leaves(lookup); };
  switch (kind()) {
    case Kind::integer:
      return integer_;
    case Kind::symbol:
    case Kind::axis:
    case Kind::value:
      return lookup(*this);
    case Kind::sum:
    case Kind::product: {
      int64_t result = operand(0);
      for (size_t i = 1; i < node_->operands.size(); ++i)
        result = kind() == Kind::sum ? expr::add(result, operand(i)) : expr::multiply(result, operand(i));
      return result;
    }
    case Kind::floor_div:
      return expr::floor_divide(operand(0), operand(1));
    case Kind::mod:
      return expr::floor_modulo(operand(0), operand(1));
    case Kind::min:
      return std::min(operand(0), operand(1));
    case Kind::max:
      return std::max(operand(0), operand(1));
  }
  return 0;
}

std::optional<int64_t> Expr::lower_bound() const {
  int64_t bound = expr::bounds(*this).lower;
  return bound == no_lower ? std::nullopt : std::optional(bound);
}

std::optional<int64_t> Expr::upper_bound() const {
  int64_t bound = expr::bounds(*this).upper;
  return bound == no_upper ? std::nullopt : std::optional(bound);
}

std::string text_of(std::span<const Dim> shape) {
  return str_cat('[', join(shape, ", ", [](const Dim &d) { return d.text(); }), ']');
}

Expr product_of(std::span<const Dim> shape) {
  Expr product = 1;
  for (const Dim &d : shape) product *= d;
  return product;
}

Shape row_major_strides(std::span<const Dim> shape) {
  Shape strides(shape.size());
  Expr stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= shape[d];
  }
  return strides;
}

Expr span_elements(std::span<const Dim> shape, std::span<const Dim> strides) {
  Expr count = product_of(shape);
  if (std::ranges::equal(strides, row_major_strides(shape))) return count;
  Expr last = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    const Expr &stride = strides[d];
    const Expr least = min(stride, 0);
    last += (shape[d] - 1) * (least.is(0) ? stride : least == stride ? 0 - stride : max(stride, 0 - stride));
  }
  // Of an empty tensor `last` may be anything. No element is further from the next than the factor.
  return max(min(last + 1, count * Expr(int64_t{1} << 31)), 0);
}

}  // namespace kiln
