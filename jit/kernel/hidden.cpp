// Which columns of a kernel in tiles of rows need not be gone through: those of which its first contraction hides the
// sums behind one value, and where what follows makes of that value what changes nothing.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>

#include "jit/kernel/hidden.h"

namespace kiln::kernel {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
// Of what bounds are made of: with sizes that memory holds, no sum of a few leaves 64 bits, where a graph's would wrap.
constexpr int64_t most_number = int64_t{1} << 47;
bool is_moderate(int64_t number) { return -most_number <= number && number <= most_number; }

// Whether its constant is, and what it has of each leaf.
bool is_moderate(const Expr &expr) {
  std::vector<Expr> leaves;
  static_cast<void>(expr.substitute([&](const Expr &leaf) -> std::optional<Expr> {
    leaves.push_back(leaf);
    return {};
  }));
  const auto with_one = [&](const Expr &one) {
    return expr.evaluate_leaves([&](const Expr &leaf) -> int64_t { return leaf == one; });
  };
  return is_moderate(expr.evaluate_leaves([](const Expr &) -> int64_t { return 0; })) &&
         is_moderate(expr.evaluate_leaves([](const Expr &) -> int64_t { return 1; })) &&
         std::ranges::all_of(leaves, [&](const Expr &leaf) { return is_moderate(with_one(leaf)); });
}

// What a value is in all hidden columns of a row. `or_nan`: or else NaN, which it then is in all columns of the row.
struct Fact {
  double value;
  bool or_nan = false;
};
using Facts = std::vector<std::optional<Fact>>;

class HiddenFinder {
 public:
  explicit HiddenFinder(const Kernel &kernel) : kernel_(kernel), rows_(static_cast<uint32_t>(kernel.parallel.size())) {}

  std::optional<HiddenColumns> run() {
    if (!is_in_row_tiles(kernel_)) return {};
    size_t first = 0;
    while (first < kernel_.stages.size() && !kernel_.stages[first].contract) ++first;
    if (first == kernel_.stages.size() || !hides(kernel_.stages[first])) return {};
    for (size_t s = first + 1; s < kernel_.stages.size(); ++s)
      if (!go_on(kernel_.stages[s])) return {};
    return std::move(found_);
  }

 private:
  // ---- the contraction that hides
  // Numbers of a body, as far as they follow from axes and symbols.
  static std::optional<Expr> number_of(const Body &body, int32_t id) {
    const Value &v = body.values[static_cast<size_t>(id)];
    if (v.type != DType::i64) return {};
    if (v.op == Core::constant && is_moderate(static_cast<int64_t>(v.immediate)))
      return Expr(static_cast<int64_t>(v.immediate));
    if (v.op == Core::index && !v.expr.depends_on_value() && is_moderate(v.expr)) return v.expr;
    if (v.op != Core::add && v.op != Core::sub) return {};
    const std::optional<Expr> a = number_of(body, v.args[0]), b = number_of(body, v.args[1]);
    if (!a || !b) return {};
    return v.op == Core::add ? *a + *b : *a - *b;
  }

  // What a comparison says of the columns where it is true: of the last one, or of the first.
  struct Bound {
    Expr column;
    bool is_last;
  };
  // Of one that is true up to a column, or from one on, which does not fall along the rows.
  std::optional<Bound> bound_of(const Body &body, const Value &v) const {
    if (v.op != Core::lt && v.op != Core::le && v.op != Core::gt && v.op != Core::ge) return {};
    const std::optional<Expr> a = number_of(body, v.args[0]), b = number_of(body, v.args[1]);
    if (!a || !b) return {};
    const bool less = v.op == Core::lt || v.op == Core::le, strict = v.op == Core::lt || v.op == Core::gt;
    const Expr room = less ? *b - *a : *a - *b;  // true where it is at least `least`
    const int64_t least = strict ? 1 : 0;
    const std::optional<Expr> along = room.coefficient(column_.id());
    if (!along || !(along->is(1) || along->is(-1))) return {};
    const bool is_last = along->is(-1);
    const Expr column = is_last ? room + column_ - least : column_ - room + least;
    const std::optional<Expr> step = column.coefficient(rows_ - 1);
    if (column.depends_on_axis(column_.id()) || !step || !step->is_integer() || step->integer() < 0) return {};
    return Bound{column, is_last};
  }

  // By a bound on either side, as far as there are some.
  bool hides(const Stage &stage) {
    const ContractionAxes axes = contraction_axes(kernel_, stage);
    columns_ = stage.axes[axes.n - rows_].extent;
    column_ = Expr::axis(axes.n, columns_);
    std::optional<Facts> facts;
    HiddenColumns found;
    for (const Value &v : stage.body.values) {
      const std::optional<Bound> bound = bound_of(stage.body, v);
      if (!bound || (bound->is_last ? found.until : found.from)) continue;
      Facts behind = facts_of(stage.body, &v);
      if (facts ? !same_results(stage, *facts, behind) : !are_known(stage, behind)) continue;
      facts = std::move(behind);
      (bound->is_last ? found.until : found.from) = bound->is_last ? bound->column + 1 : bound->column;
      found.shows.push_back(&v);
    }
    if (!facts || !keep_facts(stage, *facts)) return false;
    found.axes = {&stage.axes[axes.n - rows_]};
    found_ = std::move(found);
    return true;
  }

  static const std::optional<Fact> &result_of(const Stage &stage, const Facts &facts, const Store &store) {
    return facts[static_cast<size_t>(stage.body.yields[static_cast<size_t>(store.value)])];
  }
  static bool are_known(const Stage &stage, const Facts &facts) {
    return std::ranges::all_of(stage.stores,
                               [&](const Store &store) { return result_of(stage, facts, store).has_value(); });
  }
  static bool same_results(const Stage &stage, const Facts &a, const Facts &b) {
    return std::ranges::all_of(stage.stores, [&](const Store &store) {
      const auto &x = result_of(stage, a, store), &y = result_of(stage, b, store);
      return x && y && std::bit_cast<uint64_t>(x->value) == std::bit_cast<uint64_t>(y->value) && x->or_nan == y->or_nan;
    });
  }

  // Notes what the stage leaves in row_local buffers; false: not all that it stores is known.
  bool keep_facts(const Stage &stage, const Facts &facts) {
    std::map<uint16_t, Fact> known;
    for (const Store &store : stage.stores) {
      const auto &fact = result_of(stage, facts, store);
      if (kernel_.buffers[store.to.buffer].space != Buffer::Space::row_local || store.combines() ||
          store.to.valid >= 0 || store.to.index[0] != column_ || !fact)
        return false;
      known.insert_or_assign(store.to.buffer, *fact);
    }
    for (const auto &[buffer, fact] : known) {
      forget(buffer);
      facts_.insert_or_assign(buffer, fact);
    }
    return !known.empty();
  }

  // ---- bodies
  // `ends`: a comparison that is false.
  Facts facts_of(const Body &body, const Value *ends = nullptr) const {
    Facts facts;
    for (const Value &v : body.values) facts.push_back(&v == ends ? Fact{0} : fact_of(body, facts, v));
    return facts;
  }

  std::optional<Fact> fact_of(const Body &body, const Facts &facts, const Value &v) const {
    const auto operand = [&](size_t a) { return facts[static_cast<size_t>(v.args[a])]; };
    const bool is_float = dtype_info(v.type).is_float;
    switch (v.op) {
      case Core::constant:
        if (is_float) {
          const auto number = std::bit_cast<double>(v.immediate);
          return std::isnan(number) ? std::nullopt : std::optional(Fact{number});
        }
        return v.type == DType::boolean ? std::optional(Fact{static_cast<double>(v.immediate)}) : std::nullopt;
      case Core::load: {
        const auto found = facts_.find(v.access.buffer);
        const bool here = v.access.valid < 0 && v.access.index[0] == column_;
        return here && found != facts_.end() ? std::optional(found->second) : std::nullopt;
      }
      case Core::logical_and:
        if ((operand(0) && operand(0)->value == 0) || (operand(1) && operand(1)->value == 0)) return Fact{0};
        return {};
      case Core::logical_or:
        if (operand(0) && operand(1) && operand(0)->value == 0 && operand(1)->value == 0) return Fact{0};
        return {};
      case Core::select: {
        if (!operand(0)) return {};
        const auto chosen = operand(operand(0)->value != 0 ? 1 : 2);
        return chosen && !chosen->or_nan ? chosen : std::nullopt;
      }
      case Core::max:
        if (!is_float || !operand(0) || !operand(1) || operand(0)->or_nan || operand(1)->or_nan) return {};
        return operand(0)->value < operand(1)->value ? operand(1) : operand(0);
      case Core::convert:  // 0 and infinity are so in all types of floats
        return is_float && dtype_info(body.values[static_cast<size_t>(v.args[0])].type).is_float ? operand(0)
                                                                                                 : std::nullopt;
      case Core::exp:
        if (operand(0) && operand(0)->value == -infinity) return Fact{0, operand(0)->or_nan};
        return {};
      case Core::sub:  // of one number of the row: where that is NaN, so are all columns
        if (!is_float || !operand(0) || operand(0)->value != -infinity || !is_of_row(body, v.args[1])) return {};
        if (is_above_all(body, v.args[1]) || is_greatest_of(body, v.args[0], v.args[1])) return Fact{-infinity, true};
        return {};
      case Core::div:  // a sum of nothing but zeros makes all columns NaN
        if (!is_float || !operand(0) || operand(0)->value != 0 || !is_sum_of(body, v.args[0], v.args[1])) return {};
        return Fact{0, true};
      default:
        return {};
    }
  }

  // Whether it is the same in all columns.
  bool is_of_row(const Body &body, int32_t id) const {
    const Value &v = body.values[static_cast<size_t>(id)];
    if (v.op == Core::index || v.op == Core::search) return false;
    if (v.op == Core::load)
      return v.access.valid < 0 && !v.access.index[0].depends_on_axis(column_.id()) &&
             !v.access.index[0].depends_on_value();
    for (int a = 0; a < core_info(v.op).operands; ++a)
      if (!is_of_row(body, v.args[static_cast<size_t>(a)])) return false;
    return true;
  }

  // Whether it is never -infinity: that is replaced.
  static bool is_above_all(const Body &body, int32_t id) {
    const Value &v = body.values[static_cast<size_t>(id)];
    const auto value = [&](int32_t of) -> const Value & { return body.values[static_cast<size_t>(of)]; };
    const auto is_number = [&](int32_t of, bool lowest) {
      return value(of).op == Core::constant && (std::bit_cast<double>(value(of).immediate) == -infinity) == lowest;
    };
    if (v.op == Core::convert && dtype_info(v.type).is_float) return false;
    if (v.op != Core::select || value(v.args[0]).op != Core::eq) return false;
    const Value &compared = value(v.args[0]);
    return compared.args[0] == v.args[2] && is_number(compared.args[1], true) && is_number(v.args[1], false);
  }

  // Whether `number` is a row's reduction of what `all` is loaded from.
  bool summarises(const Body &body, int32_t all, int32_t number, Core by) const {
    const Value &loaded = body.values[static_cast<size_t>(all)], &v = body.values[static_cast<size_t>(number)];
    if (loaded.op != Core::load || v.op != Core::load) return false;
    const auto found = summaries_.find(v.access.buffer);
    return found != summaries_.end() && found->second.of == loaded.access.buffer && found->second.by == by;
  }
  bool is_greatest_of(const Body &body, int32_t all, int32_t number) const {
    return summarises(body, all, number, Core::max);
  }
  bool is_sum_of(const Body &body, int32_t all, int32_t number) const {
    return summarises(body, all, number, Core::add);
  }

  // ---- the stages behind it
  bool reads_facts(const Body &body) const {
    return std::ranges::any_of(body.values,
                               [&](const Value &v) { return reads_memory(v.op) && facts_.contains(v.access.buffer); });
  }

  // False: it reads what is hidden, and makes something of it.
  bool go_on(const Stage &stage) {
    if (stage.contract) return sum_products(stage);
    if (!reads_facts(stage.body)) return forget(stage);
    if (stage.axes.size() != 1 || stage.axes[0].extent != columns_ || stage.scans()) return false;
    column_ = Expr::axis(rows_, columns_);
    const Facts facts = facts_of(stage.body);
    found_->axes.push_back(&stage.axes[0]);
    return stage.carriers.types.empty() ? keep_facts(stage, facts) : reduce(stage, facts);
  }

  // A product with 0 is 0 or, of what is not finite, NaN: an emitter has to look.
  bool sum_products(const Stage &stage) {
    if (reads_facts(stage.body)) return false;
    if (!reads_facts(stage.contract->a)) return forget(stage);
    const ContractionAxes axes = contraction_axes(kernel_, stage);
    const Axis &k = stage.axes[axes.k - rows_];
    if (k.extent != columns_) return false;
    column_ = Expr::axis(axes.k, columns_);
    const Facts facts = facts_of(stage.contract->a);
    const auto &factor = facts[static_cast<size_t>(stage.contract->a.yields[0])];
    found_->axes.push_back(&k);
    return factor && factor->value == 0 && !std::signbit(factor->value) && forget(stage);
  }

  bool reduce(const Stage &stage, const Facts &facts) {
    const Carriers &c = stage.carriers;
    const Body &combine = c.combine;
    if (c.types.size() != 1 || !dtype_info(c.types[0]).is_float || c.in_pairs || c.until ||
        combine.values.size() != 3 || combine.yields[0] != 2)
      return false;
    const Value &by = combine.values[2];
    const auto &fact = facts[static_cast<size_t>(stage.body.yields[0])];
    const bool known = (by.op == Core::max && fact && !fact->or_nan) || (by.op == Core::add && fact);
    if (!known || by.args[0] == by.args[1] || std::bit_cast<uint64_t>(fact->value) != c.identities[0]) return false;
    if (!forget(stage)) return false;
    const Value &from = stage.body.values[static_cast<size_t>(stage.body.yields[0])];
    for (const Store &store : stage.stores)
      if (from.op == Core::load && store.value == 0 && !store.combines() && store.to.valid < 0)
        summaries_.insert_or_assign(store.to.buffer, Summary{from.access.buffer, by.op});
    return true;
  }

  // What the stage writes is no longer what it was. Always true.
  bool forget(const Stage &stage) {
    for (const Store &store : stage.stores) forget(store.to.buffer);
    return true;
  }
  void forget(uint16_t buffer) {
    facts_.erase(buffer);
    summaries_.erase(buffer);
    std::erase_if(summaries_, [&](const auto &entry) { return entry.second.of == buffer; });
  }

  struct Summary {
    uint16_t of;
    Core by;
  };

  const Kernel &kernel_;
  const uint32_t rows_;
  Expr columns_, column_;                  // how many; the axis of the stage at hand
  std::map<uint16_t, Fact> facts_;         // of row_local buffers, at the column
  std::map<uint16_t, Summary> summaries_;  // of row_local buffers of one element
  std::optional<HiddenColumns> found_;
};

}  // namespace

std::optional<HiddenColumns> hidden_columns(const Kernel &kernel) { return HiddenFinder(kernel).run(); }

int64_t hidden_block(const Kernel &kernel) { return int64_t{sum_sets} * kernel.schedule.lanes(); }

}  // namespace kiln::kernel
