// Which producers are computed where they are read, and their bodies put there.
#include <algorithm>

#include "jit/kernel/body.h"
#include "jit/kernel/fuse_steps.h"

namespace kiln::kernel {
namespace {

constexpr int free_cost = 3;          // may be computed again by every reader
constexpr int rows_operand_cost = 8;  // operand a of a contraction: packed again for each tile of columns
constexpr int max_inlined_cost = 512;
constexpr size_t max_values = 256, max_operands = 24;  // of one item: compile time grows with both

// One load of a tensor, and the axes (with their extents) that the body around it runs over.
struct Use {
  uint32_t item;
  enum class Where : uint8_t { body, a, b } where;
  const Access *access;
};

class Inliner {
 public:
  Inliner(const Program &program, const FuseOptions &options) : program_(program), options_(options) {
    const size_t n = program.tensors.size();
    maker_.assign(n, UINT32_MAX);
    inlined_.assign(n, false);
    readers_.assign(n, 0);
    for (uint32_t d = 0; d < program.defs.size(); ++d) maker_[program.defs[d].result] = d;
    count_readers();
  }

  std::vector<Item> run() {
    std::vector<Item> kept;
    items_.resize(program_.defs.size());
    for (uint32_t d = 0; d < program_.defs.size(); ++d) {
      items_[d] = make(program_.defs[d]);
      inlined_[items_[d].result] = decide(d);
    }
    // What no output needs is dropped.
    std::vector<bool> live(program_.tensors.size());
    for (size_t d = items_.size(); d-- > 0;) {
      const uint32_t tensor = items_[d].result;
      if (inlined_[tensor] || !(live[tensor] || program_.tensors[tensor].is_output)) continue;
      for (uint32_t operand : items_[d].operands) live[operand] = true;
      kept.push_back(std::move(items_[d]));
    }
    std::ranges::reverse(kept);
    return kept;
  }

 private:
  // How many computes read a tensor in the end, seen through views: a view's readers count in its place.
  void count_readers() {
    uses_.resize(program_.tensors.size());
    for (size_t d = program_.defs.size(); d-- > 0;) {
      const Program::Def &def = program_.defs[d];
      const uint32_t weight =
          def.compute.view ? std::max(1u, readers_[def.result] + program_.tensors[def.result].is_output) : 1;
      for (auto operand = def.operands.begin(); operand != def.operands.end(); ++operand) {
        if (std::find(def.operands.begin(), operand, *operand) == operand) readers_[*operand] += weight;
      }
      const auto collect = [&](const Body &body, Use::Where where) {
        for (const Value &v : body.values) {
          if (v.op == Core::load)
            uses_[def.operands[v.access.buffer]].push_back({static_cast<uint32_t>(d), where, &v.access});
        }
      };
      collect(def.compute.body, Use::Where::body);
      if (def.compute.contract) {
        collect(def.compute.contract->a, Use::Where::a);
        collect(def.compute.contract->b, Use::Where::b);
      }
    }
  }

  Item make(const Program::Def &def) {
    Item item;
    item.result = def.result;
    item.compute = def.compute;
    for (uint32_t d = 0; d < def.compute.dims.size(); ++d) {
      if (!def.compute.dims[d].is(1)) item.domain.push_back(d);
    }
    const auto unit_axes = [&](uint32_t axis) -> std::optional<Expr> {
      if (axis < def.compute.dims.size() && def.compute.dims[axis].is(1)) return Expr(0);
      const size_t r = axis - def.compute.dims.size();
      if (axis >= def.compute.dims.size() && r < def.compute.reduce.size() && def.compute.reduce[r].is(1))
        return Expr(0);
      return {};
    };
    const auto inlined = [&](const Body &from) {
      Body to;
      const std::vector<int> ids = copy_body(from, to, unit_axes, [&](Body &body, Value load) {
        return place_load(item, body, std::move(load), def.operands[load.access.buffer]);
      });
      to.yields.reserve(from.yields.size());
      for (int32_t y : from.yields) to.yields.push_back(ids[static_cast<size_t>(y)]);
      prune(to);
      return to;
    };
    item.compute.body = inlined(def.compute.body);
    if (item.compute.contract) {
      item.compute.contract->a = inlined(def.compute.contract->a);
      item.compute.contract->b = inlined(def.compute.contract->b);
    }
    drop_unused_operands(item);
    item.prepared = !program_.tensors[item.result].is_output && !item.operands.empty() && !has_symbols(item.compute) &&
                    std::ranges::all_of(item.operands, [&](uint32_t t) { return prepared(t); });
    return item;
  }

  // A load of `tensor`: stays one, or becomes the body of the item that makes it.
  int place_load(Item &item, Body &body, Value load, uint32_t tensor) {
    const auto numbered = [&](uint32_t t) {
      const auto at = std::ranges::find(item.operands, t);
      if (at != item.operands.end()) return static_cast<uint16_t>(at - item.operands.begin());
      item.operands.push_back(t);
      return static_cast<uint16_t>(item.operands.size() - 1);
    };
    if (!inlined_[tensor]) {
      load.access.buffer = numbered(tensor);
      return append(body, load);
    }
    const Item &producer = items_[maker_[tensor]];
    const int guard = load.access.valid;
    const std::vector<Expr> &index = load.access.index;
    const std::vector<int> ids = copy_body(
        producer.compute.body, body, [&](uint32_t axis) -> std::optional<Expr> { return index[axis]; },
        [&](Body &to, Value inner) {
          inner.access.buffer = numbered(producer.operands[inner.access.buffer]);
          if (guard >= 0 && inner.access.valid < 0) inner.access.valid = guard;
          if (guard >= 0 && inner.access.valid != guard) {
            inner.access.valid = append(to, make_value(Core::logical_and, DType::boolean, guard, inner.access.valid));
          }
          return append(to, inner);
        });
    const int result = ids[static_cast<size_t>(producer.compute.body.yields[0])];
    if (guard < 0) return result;
    Value fill = make_value(Core::constant, load.type, -1, -1);
    fill.immediate = load.access.fill;
    const int fill_id = append(body, fill);
    return append(body, make_value(Core::select, load.type, guard, result, fill_id));
  }

  static Value make_value(Core op, DType type, int a, int b, int c = -1) {
    return {.op = op, .type = type, .args = {a, b, c}, .immediate = 0, .access = {}, .expr = {}};
  }

  bool prepared(uint32_t tensor) const {
    return maker_[tensor] == UINT32_MAX ? program_.tensors[tensor].prepared : items_[maker_[tensor]].prepared;
  }

  static bool has_symbols(const Body &body) {
    return std::ranges::any_of(body.values, [](const Value &v) {
      return (v.op == Core::index && v.expr.depends_on_symbol()) ||
             (v.op == Core::load && std::ranges::any_of(v.access.index, &Expr::depends_on_symbol));
    });
  }
  static bool has_symbols(const Compute &compute) {
    return std::ranges::any_of(compute.dims, &Dim::depends_on_symbol) ||
           std::ranges::any_of(compute.reduce, &Expr::depends_on_symbol) || has_symbols(compute.body) ||
           (compute.contract && (has_symbols(compute.contract->a) || has_symbols(compute.contract->b)));
  }

  // Whether def d, a map whose own producers are in its body by now, is to be computed by its readers.
  bool decide(uint32_t d) const {
    const Item &item = items_[d];
    const uint32_t tensor = item.result;
    if (!item.is_map() || program_.tensors[tensor].is_output || uses_[tensor].empty()) return false;
    if (!options_.fuse) return item.compute.view && item.compute.body.values.size() == 1;
    if (item.compute.body.values.size() > max_values / 2 || item.operands.size() > max_operands / 2) return false;
    const int cost = cost_of(item.compute.body);
    if (cost > max_inlined_cost) return false;
    const bool checks = has(item.compute.body, Core::in_range) || has_integer_division(item.compute.body);
    for (const Use &use : uses_[tensor]) {
      // The error word must not hear of elements that a guard leaves out.
      if (use.access->valid >= 0 && checks) return false;
      const bool reader_prepared = is_prepared_def(use.item);
      if (item.prepared && !reader_prepared && cost > 0) return false;  // computed once a binding, not at each call
    }
    if (cost <= free_cost && !checks) return true;
    if (readers_[tensor] != 1 || !one_index(uses_[tensor])) return false;
    const Use &use = uses_[tensor].front();
    if (repeats(use)) return false;
    if (use.where == Use::Where::b) return false;
    if (use.where == Use::Where::a && cost > rows_operand_cost) return false;
    // What can end the kernel of a contraction (its epilogue) stays with it, rather than start the next kernel.
    if (reads_contraction_in_step(item) && !stays_in_step(item, use)) return false;
    return true;
  }

  bool is_prepared_def(uint32_t d) const {
    const Program::Def &def = program_.defs[d];
    if (program_.tensors[def.result].is_output || has_symbols(def.compute)) return false;
    return std::ranges::all_of(def.operands, [&](uint32_t t) {
      return maker_[t] == UINT32_MAX || maker_[t] < items_.size() ? prepared(t) : false;
    });
  }

  static bool has_integer_division(const Body &body) {
    return std::ranges::any_of(body.values, [](const Value &v) {
      return (v.op == Core::div || v.op == Core::rem) && !dtype_info(v.type).is_float;
    });
  }

  static bool one_index(const std::vector<Use> &uses) {
    return std::ranges::all_of(uses, [&](const Use &u) {
      return u.item == uses[0].item && u.where == uses[0].where && u.access->index == uses[0].access->index;
    });
  }

  // Whether the reader runs over an axis that the load does not depend on, so that elements would be computed again.
  bool repeats(const Use &use) const {
    const Compute &reader = program_.defs[use.item].compute;
    const auto depends = [&](uint32_t axis) {
      return std::ranges::any_of(use.access->index, [&](const Expr &e) { return e.depends_on_axis(axis); });
    };
    for (uint32_t axis = 0; axis < reader.dims.size() + reader.reduce.size(); ++axis) {
      const bool result_axis = axis < reader.dims.size();
      const Expr &extent = result_axis ? reader.dims[axis] : reader.reduce[axis - reader.dims.size()];
      if (extent.is(1) || depends(axis)) continue;
      if (result_axis && use.where == Use::Where::a && reader.roles[axis] == ContractRole::n) continue;
      if (result_axis && use.where == Use::Where::b && reader.roles[axis] == ContractRole::m) continue;
      return true;
    }
    return std::ranges::any_of(use.access->index, [](const Expr &e) { return e.depends_on_value(); });
  }

  bool identity(const Access &access, const Shape &dims) const {
    for (uint32_t d = 0; d < dims.size(); ++d) {
      if (!dims[d].is(1) && access.index[d] != Expr::axis(d, dims[d])) return false;
    }
    return true;
  }

  bool reads_contraction_in_step(const Item &item) const {
    for (const Value &v : item.compute.body.values) {
      if (v.op != Core::load) continue;
      const uint32_t t = item.operands[v.access.buffer];
      if (maker_[t] == UINT32_MAX || !program_.defs[maker_[t]].compute.contract) continue;
      if (program_.tensors[t].dims == item.compute.dims && identity(v.access, item.compute.dims)) return true;
    }
    return false;
  }

  bool stays_in_step(const Item &item, const Use &use) const {
    const Compute &reader = program_.defs[use.item].compute;
    return !reader.contract && reader.carriers.types.empty() && reader.dims == item.compute.dims &&
           identity(*use.access, item.compute.dims);
  }

  const Program &program_;
  const FuseOptions &options_;
  std::vector<Item> items_;             // by def
  std::vector<uint32_t> maker_;         // def, by tensor
  std::vector<bool> inlined_;           // by tensor
  std::vector<uint32_t> readers_;       // by tensor
  std::vector<std::vector<Use>> uses_;  // by tensor
};

}  // namespace

void drop_unused_operands(Item &item) {
  std::vector<int> renumbered(item.operands.size(), -1);
  std::vector<uint32_t> kept;
  const auto visit = [&](Body &body) {
    for (Value &v : body.values) {
      if (v.op != Core::load) continue;
      int &number = renumbered[v.access.buffer];
      if (number < 0) {
        number = static_cast<int>(kept.size());
        kept.push_back(item.operands[v.access.buffer]);
      }
      v.access.buffer = static_cast<uint16_t>(number);
    }
  };
  visit(item.compute.body);
  if (item.compute.contract) {
    visit(item.compute.contract->a);
    visit(item.compute.contract->b);
  }
  item.operands = std::move(kept);
}

std::vector<Item> inline_producers(const Program &program, const FuseOptions &options) {
  return Inliner(program, options).run();
}

}  // namespace kiln::kernel
