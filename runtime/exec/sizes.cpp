#include "runtime/exec/sizes.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <set>

namespace kiln {
namespace {

constexpr int64_t lowest = std::numeric_limits<int64_t>::min(), highest = std::numeric_limits<int64_t>::max();

int64_t saturating_add(int64_t a, int64_t b) {
  int64_t result;
  if (!__builtin_add_overflow(a, b, &result)) return result;
  return a < 0 ? lowest : highest;
}

int64_t saturating_multiply(int64_t a, int64_t b) {
  int64_t result;
  if (!__builtin_mul_overflow(a, b, &result)) return result;
  return (a < 0) != (b < 0) ? lowest : highest;
}

// Rounds down; division by 0 yields 0, as everywhere in Kiln.
int64_t floor_divide(int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return a == lowest ? highest : -a;
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

int64_t floor_mod(int64_t a, int64_t b) {
  if (b == 0 || b == -1) return 0;
  const int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

}  // namespace

uint32_t Sizes::push(Operation operation) {
  operations_.push_back(operation);
  return static_cast<uint32_t>(operations_.size() - 1);
}

uint32_t Sizes::add(const Expr &e, std::span<const Plan::Symbol> symbols) {
  if (auto known = numbers_.find(e); known != numbers_.end()) return known->second;
  // Operands first: an operation refers to earlier ones only.
  const auto fold = [&](Kind kind) {
    uint32_t number = add(e.operands()[0], symbols);
    for (const Expr &operand : e.operands().subspan(1)) number = push({kind, number, add(operand, symbols)});
    return number;
  };
  uint32_t number = 0;
  switch (e.kind()) {
    case Expr::Kind::integer:
      number = push({.kind = Kind::constant, .immediate = e.integer()});
      break;
    case Expr::Kind::symbol: {
      const auto at = std::ranges::find(symbols, e.symbol_name(), &Plan::Symbol::name);
      assert(at != symbols.end() && "parse_plan refuses symbols that are not bound");
      number = push({.kind = Kind::symbol, .a = static_cast<uint32_t>(at - symbols.begin())});
      break;
    }
    case Expr::Kind::sum:
      number = fold(Kind::add);
      break;
    case Expr::Kind::product:
      number = fold(Kind::multiply);
      break;
    case Expr::Kind::floor_div:
      number = fold(Kind::floor_div);
      break;
    case Expr::Kind::mod:
      number = fold(Kind::mod);
      break;
    case Expr::Kind::min:
      number = fold(Kind::min);
      break;
    case Expr::Kind::max:
      number = fold(Kind::max);
      break;
    case Expr::Kind::axis:
    case Expr::Kind::value:
      assert(!"a plan's sizes have neither axes nor values");
      break;
  }
  numbers_.emplace(e, number);
  return number;
}

void Sizes::evaluate(std::span<const int64_t> symbols, std::span<int64_t> out) const {
  for (size_t i = 0; i < operations_.size(); ++i) {
    const Operation &o = operations_[i];
    switch (o.kind) {
      case Kind::constant:
        out[i] = o.immediate;
        break;
      case Kind::symbol:
        out[i] = symbols[o.a];
        break;
      case Kind::add:
        out[i] = saturating_add(out[o.a], out[o.b]);
        break;
      case Kind::multiply:
        out[i] = saturating_multiply(out[o.a], out[o.b]);
        break;
      case Kind::floor_div:
        out[i] = floor_divide(out[o.a], out[o.b]);
        break;
      case Kind::mod:
        out[i] = floor_mod(out[o.a], out[o.b]);
        break;
      case Kind::min:
        out[i] = std::min(out[o.a], out[o.b]);
        break;
      case Kind::max:
        out[i] = std::max(out[o.a], out[o.b]);
        break;
    }
  }
}

void Sizes::evaluate(std::span<const Range> symbols, std::span<Range> out) const {
  const auto hull = [](std::initializer_list<int64_t> values) { return Range{std::min(values), std::max(values)}; };
  const auto magnitude = [](const Range &r) { return std::max(r.high, r.low == lowest ? highest : -r.low); };
  for (size_t i = 0; i < operations_.size(); ++i) {
    const Operation &o = operations_[i];
    const Range &a = o.kind == Kind::symbol ? symbols[o.a] : out[o.a];
    const Range &b = out[o.b];
    switch (o.kind) {
      case Kind::constant:
        out[i] = {o.immediate, o.immediate};
        break;
      case Kind::symbol:
        out[i] = a;
        break;
      case Kind::add:
        out[i] = {saturating_add(a.low, b.low), saturating_add(a.high, b.high)};
        break;
      case Kind::multiply:
        out[i] = hull({saturating_multiply(a.low, b.low), saturating_multiply(a.low, b.high),
                       saturating_multiply(a.high, b.low), saturating_multiply(a.high, b.high)});
        break;
      case Kind::floor_div:
        if (b.low > 0)
          out[i] = hull({floor_divide(a.low, b.low), floor_divide(a.low, b.high), floor_divide(a.high, b.low),
                         floor_divide(a.high, b.high)});
        else
          out[i] = {-magnitude(a), magnitude(a)};
        break;
      case Kind::mod:
        if (b.low > 0)
          out[i] = a.low >= 0 && a.high < b.low ? a : Range{0, b.high - 1};
        else
          out[i] = {-magnitude(b), magnitude(b)};
        break;
      case Kind::min:
        out[i] = {std::min(a.low, b.low), std::min(a.high, b.high)};
        break;
      case Kind::max:
        out[i] = {std::max(a.low, b.low), std::max(a.high, b.high)};
        break;
    }
  }
}

bool PlanSizes::is_late(Late::Kind kind, uint32_t number) const {
  return std::ranges::any_of(late, [&](const Late &l) { return l.kind == kind && l.number == number; });
}

PlanSizes::PlanSizes(const Plan &plan) {
  const auto number = [&](const Expr &e) { return sizes.add(e, plan.symbols); };
  const auto numbers = [&](const Shape &shape) {
    std::vector<uint32_t> out;
    for (const Expr &e : shape) out.push_back(number(e));
    return out;
  };
  const auto add_steps = [&](const std::vector<Plan::Step> &from, std::vector<Step> &to) {
    for (const Plan::Step &s : from) {
      Step &step = to.emplace_back(Step{number(s.tasks), number(s.scratch_bytes), number(s.scan.turns), {}});
      for (const Plan::Nested &n : s.nested) step.nested.push_back(numbers(n.symbols));
    }
  };
  for (const auto *list : {&plan.inputs, &plan.parameters, &plan.outputs})
    for (const Plan::Argument &a : *list) arguments.push_back({numbers(a.dims), numbers(a.strides)});
  for (const Plan::Presented &p : plan.presented) presented.push_back({numbers(p.strides), number(p.offset)});
  for (const Plan::Check &c : plan.checks) checks.push_back({number(c.left), number(c.right)});
  for (const Plan::Bound &b : plan.bounds) bounds.push_back({number(b.size), number(b.room)});
  const auto first_parameter = static_cast<uint32_t>(plan.inputs.size());
  const auto first_output = first_parameter + static_cast<uint32_t>(plan.parameters.size());
  for (const Plan::Slot &s : plan.slots) {
    const auto slot = static_cast<uint32_t>(slots.size());
    slots.push_back(number(s.size_bytes));
    if (s.kind == Plan::Slot::Kind::input) uses.push_back({slot, s.index});
    if (s.kind == Plan::Slot::Kind::parameter) uses.push_back({slot, first_parameter + s.index});
    if (s.kind == Plan::Slot::Kind::output) uses.push_back({slot, first_output + s.index});
  }
  for (const Plan::Storage &s : plan.arena) arena.push_back(number(s.size_bytes));
  for (const Plan::Storage &s : plan.prepared) prepared.push_back(number(s.size_bytes));
  add_steps(plan.prepare, prepare);
  add_steps(plan.steps, steps);
  for (const Plan &p : plan.nested) nested.emplace_back(p);

  for (const Plan::Symbol &s : plan.symbols) symbol_bounds.push_back(s.resolved ? number(s.bound) : 0);
  if (std::ranges::none_of(plan.symbols, &Plan::Symbol::resolved)) return;
  const auto note = [&](Late::Kind kind, size_t which, std::initializer_list<const Shape *> shapes) {
    std::set<std::string> used;
    for (const Shape *shape : shapes)
      for (const Expr &e : *shape) e.collect_symbols(used);
    Late item{kind, static_cast<uint32_t>(which), {}};
    for (uint32_t s = 0; s < plan.symbols.size(); ++s)
      if (plan.symbols[s].resolved && used.contains(plan.symbols[s].name)) item.symbols.push_back(s);
    if (!item.symbols.empty()) late.push_back(std::move(item));
  };
  for (size_t i = 0; i < plan.checks.size(); ++i) {
    const Shape sides = {plan.checks[i].left, plan.checks[i].right};
    note(Late::Kind::check, i, {&sides});
  }
  for (size_t i = 0; i < plan.bounds.size(); ++i) {
    const Shape sides = {plan.bounds[i].size, plan.bounds[i].room};
    note(Late::Kind::bound, i, {&sides});
  }
  // Arguments before the uses that are held against them.
  for (size_t i = 0; i < plan.outputs.size(); ++i)
    note(Late::Kind::argument, first_output + i, {&plan.outputs[i].dims, &plan.outputs[i].strides});
  for (size_t i = 0; i < uses.size(); ++i) {
    Shape sides = {plan.slots[uses[i].plan_slot].size_bytes};
    if (uses[i].argument >= first_output) {
      const Plan::Argument &a = plan.outputs[uses[i].argument - first_output];
      sides.insert(sides.end(), a.dims.begin(), a.dims.end());
    }
    note(Late::Kind::use, i, {&sides});
  }
}

}  // namespace kiln
