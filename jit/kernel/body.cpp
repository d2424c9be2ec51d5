#include "jit/kernel/body.h"

#include <algorithm>

namespace kiln::kernel {
namespace {

bool same(const Access &a, const Access &b) {
  return a.buffer == b.buffer && a.valid == b.valid && a.fill == b.fill && a.index == b.index;
}

bool same(const Value &a, const Value &b) {
  if (a.op != b.op || a.type != b.type || a.args != b.args || a.immediate != b.immediate) return false;
  if (reads_memory(a.op) && !same(a.access, b.access)) return false;
  return !has_expr(a.op) || a.expr == b.expr;
}

}  // namespace

int append(Body &body, const Value &value) {
  for (size_t i = 0; i < body.values.size(); ++i) {
    if (same(body.values[i], value)) return static_cast<int>(i);
  }
  body.values.push_back(value);
  return static_cast<int>(body.values.size()) - 1;
}

Expr translate(const Expr &e, const AxisMap &axes, const std::vector<int> &value_ids) {
  if (e.is_integer()) return e;
  return e.substitute([&](const Expr &leaf) -> std::optional<Expr> {
    if (leaf.kind() == Expr::Kind::axis) return axes(leaf.id());
    if (leaf.kind() == Expr::Kind::value) return Expr::value(static_cast<uint32_t>(value_ids[leaf.id()]));
    return {};
  });
}

std::vector<int> copy_body(const Body &from, Body &to, const AxisMap &axes, const LoadHook &on_load) {
  std::vector<int> ids;
  ids.reserve(from.values.size());
  if (to.values.empty()) to.values.reserve(from.values.size());
  auto renamed = [&](int32_t id) { return id < 0 ? id : ids[static_cast<size_t>(id)]; };
  for (const Value &old : from.values) {
    Value value = old;
    for (int32_t &arg : value.args) arg = renamed(arg);
    if (has_expr(value.op)) value.expr = translate(value.expr, axes, ids);
    if (!reads_memory(value.op)) {
      ids.push_back(append(to, value));
      continue;
    }
    for (Expr &index : value.access.index) index = translate(index, axes, ids);
    value.access.valid = renamed(value.access.valid);
    ids.push_back(on_load(to, std::move(value)));
  }
  return ids;
}

void prune(Body &body) {
  std::vector<bool> live(body.values.size());
  for (int32_t y : body.yields) live[static_cast<size_t>(y)] = true;
  auto mark_expr = [&](const Expr &e) {
    if (!e.depends_on_value()) return;
    e.substitute([&](const Expr &leaf) -> std::optional<Expr> {
      if (leaf.kind() == Expr::Kind::value) live[leaf.id()] = true;
      return {};
    });
  };
  for (size_t i = body.values.size(); i-- > 0;) {
    if (!live[i]) continue;
    const Value &v = body.values[i];
    for (int32_t arg : v.args) {
      if (arg >= 0) live[static_cast<size_t>(arg)] = true;
    }
    if (has_expr(v.op)) mark_expr(v.expr);
    if (!reads_memory(v.op)) continue;
    for (const Expr &e : v.access.index) mark_expr(e);
    if (v.access.valid >= 0) live[static_cast<size_t>(v.access.valid)] = true;
  }
  if (std::ranges::all_of(live, [](bool l) { return l; })) return;

  Body kept;
  kept.values.reserve(static_cast<size_t>(std::ranges::count(live, true)));
  std::vector<int> ids(body.values.size(), -1);
  const AxisMap same_axes = [](uint32_t) { return std::nullopt; };
  for (size_t i = 0; i < body.values.size(); ++i) {
    if (!live[i]) continue;
    Value value = std::move(body.values[i]);
    for (int32_t &arg : value.args) arg = arg < 0 ? arg : ids[static_cast<size_t>(arg)];
    value.expr = translate(value.expr, same_axes, ids);
    for (Expr &e : value.access.index) e = translate(e, same_axes, ids);
    if (value.access.valid >= 0) value.access.valid = ids[static_cast<size_t>(value.access.valid)];
    ids[i] = static_cast<int>(kept.values.size());
    kept.values.push_back(std::move(value));
  }
  for (int32_t y : body.yields) kept.yields.push_back(ids[static_cast<size_t>(y)]);
  body = std::move(kept);
}

int cost_of(const Body &body) {
  int cost = 0;
  for (const Value &v : body.values) cost += core_info(v.op).cost;
  return cost;
}

bool has(const Body &body, Core op) {
  return std::ranges::any_of(body.values, [&](const Value &v) { return v.op == op; });
}

bool has_symbols(const Body &body) {
  return std::ranges::any_of(body.values, [](const Value &v) {
    return (has_expr(v.op) && v.expr.depends_on_symbol()) ||
           (reads_memory(v.op) && std::ranges::any_of(v.access.index, &Expr::depends_on_symbol));
  });
}

bool has_symbols(const Compute &compute) {
  return std::ranges::any_of(compute.dims, &Dim::depends_on_symbol) ||
         std::ranges::any_of(compute.reduce, &Expr::depends_on_symbol) || has_symbols(compute.body) ||
         (compute.contract && (has_symbols(compute.contract->a) || has_symbols(compute.contract->b))) ||
         (compute.scatter && (has_symbols(compute.scatter->begin) ||
                              std::ranges::any_of(compute.scatter->index, &Expr::depends_on_symbol)));
}

void for_each_expr(Body &body, const std::function<void(Expr &)> &fn) {
  for (Value &v : body.values) {
    if (has_expr(v.op)) fn(v.expr);
    if (reads_memory(v.op)) {
      for (Expr &e : v.access.index) fn(e);
    }
  }
}

std::vector<int64_t> divisors_of(const Body &body, size_t axis) {
  const auto is_axis = [&](const Expr &e) { return e.kind() == Expr::Kind::axis && e.id() == axis; };
  const auto number = [](const Expr &e) { return e.is_integer() ? e.integer() : 0; };
  std::vector<int64_t> divisors;
  const std::function<void(const Expr &)> look = [&](const Expr &e) {
    if (!e.depends_on_axis(static_cast<uint32_t>(axis)) || e.kind() == Expr::Kind::axis) return;
    if (e.kind() == Expr::Kind::floor_div || e.kind() == Expr::Kind::mod) {
      const Expr &dividend = e.operands()[0], &divisor = e.operands()[1];
      if (is_axis(dividend)) divisors.push_back(number(divisor));
      if (e.kind() == Expr::Kind::mod && dividend.kind() == Expr::Kind::floor_div && is_axis(dividend.operands()[0]))
        divisors.push_back(number(dividend.operands()[1]) * number(divisor));
    }
    for (const Expr &operand : e.operands()) look(operand);
  };
  Body copy = body;
  for_each_expr(copy, [&](Expr &e) { look(e); });
  if (std::ranges::any_of(divisors, [](int64_t d) { return d <= 0; })) return {};
  return divisors;
}

}  // namespace kiln::kernel
