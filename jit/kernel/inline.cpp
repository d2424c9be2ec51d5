// Which producers are computed where they are read, and their bodies put there.
#include <algorithm>
#include <utility>

#include "jit/kernel/body.h"
#include "jit/kernel/fuse_steps.h"

namespace kiln::kernel {
namespace {

constexpr int free_cost = 3;          // may be computed again by every reader
constexpr int index_cost = 8;         // likewise, where it reads nothing: a mask of numbers of rows and columns
constexpr int rows_operand_cost = 8;  // operand a of a contraction: packed again for each tile of columns
constexpr int max_inlined_cost = 512;
constexpr int unpacking_cost = 24;                     // of what is unpacked wherever it is read
constexpr size_t max_values = 256, max_operands = 24;  // of one item: compile time grows with both
// Of one access. Each reshape that is folded into another may repeat the whole map of it once a dimension, and every
// node is code for each element: where the map of a chain of views would grow beyond this, one view is copied instead.
constexpr size_t max_index_nodes = 128;

// One load of a tensor, in the body of a def.
struct Use {
  uint32_t def;
  enum class Where : uint8_t { body, a, b, begin } where;
  const Access *access;
  bool searches;  // a row of it, which therefore has memory
};

class Inliner {
 public:
  Inliner(const Program &program, const FuseOptions &options) : program_(program), options_(options) {
    const size_t n = program.tensors.size();
    maker_.assign(n, UINT32_MAX);
    inlined_.assign(n, false);
    readers_.assign(n, 0);
    for (uint32_t d = 0; d < program.defs.size(); ++d) {
      for (uint32_t tensor : program.defs[d].results) maker_[tensor] = d;
    }
    count_readers();
    find_constant();
    find_summed();
  }

  std::vector<Item> run() {
    std::vector<Item> kept;
    items_.resize(program_.defs.size());
    for (uint32_t d = 0; d < program_.defs.size(); ++d) {
      items_[d] = make(program_.defs[d]);
      for (uint32_t tensor : items_[d].results) inlined_[tensor] = decide(items_[d], tensor);
    }
    // What no output needs is dropped.
    std::vector<bool> live(program_.tensors.size());
    for (size_t d = items_.size(); d-- > 0;) {
      keep_results(items_[d], [&](uint32_t tensor) { return live[tensor] || program_.tensors[tensor].is_output; });
      if (items_[d].results.empty()) continue;
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
      uint32_t weight = 1;
      if (def.compute.view)
        weight = std::max(1u, readers_[def.results[0]] + program_.tensors[def.results[0]].is_output);
      for (auto operand = def.operands.begin(); operand != def.operands.end(); ++operand) {
        if (std::find(def.operands.begin(), operand, *operand) == operand) readers_[*operand] += weight;
      }
      const auto collect = [&](const Body &body, Use::Where where) {
        for (const Value &v : body.values) {
          if (reads_memory(v.op))
            uses_[def.operands[v.access.buffer]].push_back(
                {static_cast<uint32_t>(d), where, &v.access, v.op == Core::search});
        }
      };
      collect(def.compute.body, Use::Where::body);
      if (def.compute.contract) {
        collect(def.compute.contract->a, Use::Where::a);
        collect(def.compute.contract->b, Use::Where::b);
      }
      if (def.compute.scatter) collect(def.compute.scatter->begin, Use::Where::begin);
    }
  }

  // A reader is asked about before it is made: whether it will depend on parameters alone, as far as its def tells.
  void find_constant() {
    constant_.reserve(program_.tensors.size());
    for (const Tensor &tensor : program_.tensors) constant_.push_back(tensor.prepared);
    for (const Program::Def &def : program_.defs) {
      const bool folds_away = !def.operands.empty() || is_free(def.compute.body);
      const bool is_constant = std::ranges::all_of(def.operands, [&](uint32_t t) { return constant_[t]; }) &&
                               folds_away && may_be_prepared(def.results) && !has_symbols(def.compute);
      for (uint32_t tensor : def.results) constant_[tensor] = is_constant;
    }
  }

  // Which tensors are read only where elements are summed over or picked by an index, be it through views and maps that
  // cost next to nothing.
  void find_summed() {
    summed_.resize(program_.tensors.size());
    for (size_t d = program_.defs.size(); d-- > 0;) {
      const Program::Def &def = program_.defs[d];
      for (const uint32_t operand : def.operands) summed_[operand] = true;
    }
    for (size_t d = program_.defs.size(); d-- > 0;) {
      const Program::Def &def = program_.defs[d];
      const bool sums = def.compute.contract || !def.compute.carriers.types.empty();
      const bool passes_on = std::ranges::all_of(def.results, [&](uint32_t t) { return summed_[t]; }) &&
                             !any_output(def.results) && def.compute.is_map() && is_free(def.compute.body);
      for (const uint32_t operand : def.operands) {
        const bool picks = std::ranges::all_of(uses_[operand], [&](const Use &use) {
          return use.def != d || std::ranges::any_of(use.access->index, &Expr::depends_on_value);
        });
        summed_[operand] = summed_[operand] && (sums || passes_on || picks);
      }
    }
  }

  Item make(const Program::Def &def) {
    Item item;
    item.results = def.results;
    item.compute = def.compute;
    for (uint32_t d = 0; d < def.compute.dims.size(); ++d) {
      if (!def.compute.dims[d].is(1) && !def.compute.unrolls(d)) item.domain.push_back(d);
    }
    std::ranges::stable_partition(item.domain, [&](uint32_t d) { return item.may_be_row(d); });
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
        const uint32_t tensor = def.operands[load.access.buffer];
        return place_load(item, body, std::move(load), tensor);
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
    if (item.compute.scatter) item.compute.scatter->begin = inlined(def.compute.scatter->begin);
    if (item.sorts() && item.compute.reduce[0].is(1)) {  // what is in order already is a map
      item.compute.order = Compute::Order::none;
      item.compute.reduce.clear();
      item.compute.scan = -1;
    }
    drop_unused_operands(item);
    item.prepared = may_be_prepared(item.results) && !item.operands.empty() && !has_symbols(item.compute) &&
                    std::ranges::all_of(item.operands, [&](uint32_t t) { return prepared(t); });
    return item;
  }

  // A load of `tensor`: stays one, or becomes the body of the item that makes it.
  int place_load(Item &item, Body &body, Value load, uint32_t tensor) {
    if (inlined_[tensor]) {
      Item &producer = items_[maker_[tensor]];
      if (const std::optional<int> value = compose(item, body, load, producer, yield_of(producer, tensor)))
        return *value;
      inlined_[tensor] = false;  // from here on; what has it already keeps it
      producer.over_budget = true;
    }
    load.access.buffer = operand_number(item, tensor);
    return append(body, load);
  }

  static uint16_t operand_number(Item &item, uint32_t tensor) {
    const auto number = static_cast<size_t>(std::ranges::find(item.operands, tensor) - item.operands.begin());
    if (number == item.operands.size()) item.operands.push_back(tensor);
    return static_cast<uint16_t>(number);
  }

  // Which yield of a map is `tensor`.
  static size_t yield_of(const Item &item, uint32_t tensor) {
    const auto number = static_cast<size_t>(std::ranges::find(item.results, tensor) - item.results.begin());
    return static_cast<size_t>(item.compute.results[number].value);
  }

  // Drops the other results, and of a map or a sort what computes them.
  template <class Fn>
  static void keep_results(Item &item, Fn is_kept) {
    if (std::ranges::all_of(item.results, is_kept)) return;
    Compute &c = item.compute;
    const bool yields_them = item.is_map() || item.sorts();
    std::vector<uint32_t> results;
    std::vector<Compute::Output> outputs;
    std::vector<int32_t> yields;
    if (item.sorts()) yields.push_back(c.body.yields[0]);  // by which it sorts
    for (size_t r = 0; r < item.results.size(); ++r) {
      if (!is_kept(item.results[r])) continue;
      results.push_back(item.results[r]);
      outputs.push_back(c.results[r]);
      if (yields_them && !(item.sorts() && c.results[r].value == 0)) {
        yields.push_back(c.body.yields[static_cast<size_t>(c.results[r].value)]);
        outputs.back().value = static_cast<int32_t>(yields.size()) - 1;
      }
    }
    item.results = std::move(results);
    c.results = std::move(outputs);
    if (!yields_them || item.results.empty()) return;
    c.body.yields = std::move(yields);
    prune(c.body);
    drop_unused_operands(item);
  }

  // What `producer` computes at the index of `load`, at the end of `body`. Nullopt, with nothing changed: the item
  // would grow past a limit, more than by a load in the producer's place.
  static std::optional<int> compose(Item &item, Body &body, const Value &load, const Item &producer, size_t yield) {
    const size_t values = body.values.size(), operands = item.operands.size();
    const int guard = load.access.valid;
    const std::vector<Expr> &index = load.access.index;
    const std::vector<int> ids = copy_body(
        producer.compute.body, body, [&](uint32_t axis) -> std::optional<Expr> { return index[axis]; },
        [&](Body &to, Value inner) {
          inner.access.buffer = operand_number(item, producer.operands[inner.access.buffer]);
          if (guard >= 0 && inner.access.valid < 0) inner.access.valid = guard;
          if (guard >= 0 && inner.access.valid != guard) {
            inner.access.valid = append(to, make_value(Core::logical_and, DType::boolean, guard, inner.access.valid));
          }
          return append(to, inner);
        });
    const auto exceeds = [](size_t now, size_t before, size_t limit) { return now > limit && now > before + 1; };
    const size_t nodes = most_index_nodes(std::span(body.values).subspan(values));
    if (nodes > std::max({max_index_nodes, index_nodes(load), most_index_nodes(producer.compute.body.values)}) ||
        exceeds(body.values.size(), values, max_values) || exceeds(item.operands.size(), operands, max_operands)) {
      body.values.resize(values);
      item.operands.resize(operands);
      return {};
    }
    const int result = ids[static_cast<size_t>(producer.compute.body.yields[yield])];
    if (guard < 0) return result;
    Value fill = make_value(Core::constant, load.type, -1, -1);
    fill.immediate = load.access.fill;
    const int fill_id = append(body, fill);
    return append(body, make_value(Core::select, load.type, guard, result, fill_id));
  }

  static size_t index_nodes(const Value &value) {
    size_t nodes = value.op == Core::index ? value.expr.nodes() : 0;
    for (const Expr &e : value.access.index) nodes += e.nodes();
    return nodes;
  }
  static size_t most_index_nodes(std::span<const Value> values) {
    size_t most = 0;
    for (const Value &value : values) most = std::max(most, index_nodes(value));
    return most;
  }

  static Value make_value(Core op, DType type, int a, int b, int c = -1) {
    return {.op = op, .type = type, .args = {a, b, c}, .immediate = 0, .access = {}, .expr = {}};
  }

  bool may_be_prepared(std::span<const uint32_t> results) const {
    return std::ranges::all_of(
        results, [&](uint32_t t) { return !program_.tensors[t].is_output || program_.tensors[t].prepared; });
  }
  bool prepared(uint32_t tensor) const {
    return maker_[tensor] == UINT32_MAX ? program_.tensors[tensor].prepared : items_[maker_[tensor]].prepared;
  }

  // Whether result `tensor` of a map whose own producers are in its body by now is to be computed by its readers.
  bool decide(const Item &item, uint32_t tensor) const {
    if (!item.is_map() || program_.tensors[tensor].is_output || uses_[tensor].empty()) return false;
    if (std::ranges::any_of(uses_[tensor], &Use::searches)) return false;
    if (!item.compute.unrolled.empty()) return false;
    const auto unrolls = [&](const Use &use) { return !program_.defs[use.def].compute.unrolled.empty(); };
    if (std::ranges::any_of(uses_[tensor], unrolls) && !keeps_columns(item)) return false;
    if (!options_.fuse) return item.compute.view && item.compute.body.values.size() == 1;
    if (item.compute.body.values.size() > max_values / 2 || item.operands.size() > max_operands / 2) return false;
    const int cost = cost_of(item.compute.body);
    if (cost > max_inlined_cost) return false;
    const bool checks = has_checks(item.compute.body);
    if (summed_[tensor] && is_unpacking(item) && !checks) return true;
    for (const Use &use : uses_[tensor]) {
      // The error word must not hear of elements that a guard leaves out.
      if (use.access->valid >= 0 && checks) return false;
      const bool reader_prepared = constant_[program_.defs[use.def].results[0]];
      if (item.prepared && !reader_prepared && cost > 0) return false;  // computed once a binding, not at each call
    }
    const auto slides = [&](const Use &use) { return is_in_windows(use, program_.tensors[tensor]); };
    const bool in_windows = std::ranges::any_of(uses_[tensor], slides);
    if (in_windows && !reads_like_one(item)) return false;
    // What can end the kernel of a contraction (its epilogue) costs nothing there; before another it is done again and
    // again.
    const auto multiplies = [](const Use &use) { return use.where == Use::Where::a || use.where == Use::Where::b; };
    if (cost > 0 && (in_windows || std::ranges::any_of(uses_[tensor], multiplies)) && reads_contraction_in_step(item))
      return false;
    if (cost <= (item.operands.empty() ? index_cost : free_cost) && !checks) return true;
    if (in_windows || readers_[tensor] != 1 || !one_index(uses_[tensor])) return false;
    const Use &use = uses_[tensor].front();
    if (repeats(use)) return false;
    if (use.where == Use::Where::b) return false;
    if (use.where == Use::Where::a && cost > rows_operand_cost) return false;
    // What can end the kernel of a contraction (its epilogue) stays with it, rather than start the next kernel.
    if (reads_contraction_in_step(item) && !stays_in_step(item, use)) return false;
    return true;
  }

  // Whether a sum reads elements of `tensor` again and again, since its windows overlap: those of a convolution.
  bool is_in_windows(const Use &use, const Tensor &tensor) const {
    const Compute &reader = program_.defs[use.def].compute;
    const auto rank = static_cast<uint32_t>(reader.dims.size()),
               axes = rank + static_cast<uint32_t>(reader.reduce.size());
    const auto depends = [](const Expr &e, uint32_t from, uint32_t to) {
      for (uint32_t axis = from; axis < to; ++axis)
        if (e.depends_on_axis(axis)) return true;
      return false;
    };
    const auto slides = [&](const Expr &e) { return depends(e, 0, rank) && depends(e, rank, axes); };
    if (std::ranges::none_of(use.access->index, slides)) return false;
    Expr points = 1;
    for (uint32_t axis = 0; axis < axes; ++axis)
      if (std::ranges::any_of(use.access->index, [&](const Expr &e) { return e.depends_on_axis(axis); }))
        points *= axis < rank ? reader.dims[axis] : reader.reduce[axis - rank];
    constexpr int64_t unknown_size = 64;
    const auto count = [](const Expr &e) { return e.evaluate([](const std::string &) { return unknown_size; }); };
    return count(points) > few_windows * count(product_of(tensor.dims));
  }

  // Whether elements of the result are read as those of a tensor in memory would be: of one array, which lies along the
  // same axis.
  bool reads_like_one(const Item &item) const {
    const Compute &c = item.compute;
    bool reads = false;
    for (const Value &v : c.body.values) {
      if (!reads_memory(v.op)) continue;
      const Shape &dims = program_.tensors[item.operands[v.access.buffer]].dims;
      if (product_of(dims) != product_of(c.dims)) continue;  // what is the same for many elements
      const uint32_t last = item.domain.empty() ? 0 : item.domain.back();
      if (std::exchange(reads, true) || !walks(v.access, item.operands[v.access.buffer], last)) return false;
    }
    return true;
  }
  // Whether the access goes from element to element of the tensor's memory along `axis`.
  bool walks(const Access &access, uint32_t tensor, uint32_t axis) const {
    Expr at = 0;
    for (size_t d = 0; d < access.index.size(); ++d) at += access.index[d] * program_.tensors[tensor].strides[d];
    const std::optional<Expr> step = at.coefficient(axis);
    return step && step->is(1);
  }

  // Whether it is a view whose last axis is its operand's.
  bool keeps_columns(const Item &item) const {
    const Compute &c = item.compute;
    if (!c.view || c.body.values.size() != 1 || c.dims.empty()) return false;
    const auto last = static_cast<uint32_t>(c.dims.size()) - 1;
    const Access &access = c.body.values[0].access;
    const Shape &strides = program_.tensors[item.operands[access.buffer]].strides;
    return access.index.back() == Expr::axis(last, c.dims[last]) && strides.back().is(1);
  }

  // Whether memory holds the operands in fewer bytes than it would the result, which is made of them by a little exact
  // arithmetic: weights of few bits. They stay small where they are multiplied, for what unpacks them goes there.
  bool is_unpacking(const Item &item) const {
    const auto bytes = [&](uint32_t t) {
      const Tensor &tensor = program_.tensors[t];
      return product_of(tensor.dims) * static_cast<int64_t>(size_of(tensor.dtype));
    };
    Expr read = 0, written = 0;
    for (uint32_t operand : item.operands) read += bytes(operand);
    for (uint32_t result : item.results) written += bytes(result);
    return read.is_integer() && written.is_integer() && read.integer() < written.integer() && !item.operands.empty() &&
           cost_of(item.compute.body) <= unpacking_cost &&
           std::ranges::none_of(
               item.compute.body.values, [](auto &v) { return core_info(v.op).kind == CoreClass::function; });
  }

  static bool is_free(const Body &body) { return cost_of(body) <= free_cost && !has_checks(body); }
  static bool has_checks(const Body &body) { return has(body, Core::in_range) || has_integer_division(body); }
  static bool has_integer_division(const Body &body) {
    return std::ranges::any_of(body.values, [](const Value &v) {
      return (v.op == Core::div || v.op == Core::rem) && !dtype_info(v.type).is_float;
    });
  }

  static bool one_index(const std::vector<Use> &uses) {
    return std::ranges::all_of(uses, [&](const Use &u) {
      return u.def == uses[0].def && u.where == uses[0].where && u.access->index == uses[0].access->index;
    });
  }

  // Whether the reader runs over an axis that the load does not depend on, so that elements would be computed again.
  bool repeats(const Use &use) const {
    const Compute &reader = program_.defs[use.def].compute;
    const auto depends = [&](uint32_t axis) {
      return std::ranges::any_of(use.access->index, [&](const Expr &e) { return e.depends_on_axis(axis); });
    };
    for (uint32_t axis = 0; axis < reader.dims.size() + reader.reduce.size(); ++axis) {
      const bool result_axis = axis < reader.dims.size();
      const Expr &extent = result_axis ? reader.dims[axis] : reader.reduce[axis - reader.dims.size()];
      if (extent.is(1) || depends(axis)) continue;
      if (reader.order != Compute::Order::none && static_cast<int32_t>(axis) == reader.scan) continue;
      if (result_axis && use.where == Use::Where::a && reader.roles[axis] == ContractRole::n) continue;
      if (result_axis && use.where == Use::Where::b && reader.roles[axis] == ContractRole::m) continue;
      if (reader.scatter && result_axis == (use.where == Use::Where::body) && !(result_axis && reader.keeps(axis)))
        continue;
      return true;
    }
    return std::ranges::any_of(use.access->index, [](const Expr &e) { return e.depends_on_value(); });
  }

  bool any_output(std::span<const uint32_t> tensors) const {
    return std::ranges::any_of(tensors, [&](uint32_t t) { return program_.tensors[t].is_output; });
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
    const Compute &reader = program_.defs[use.def].compute;
    return reader.is_map() && reader.dims == item.compute.dims && identity(*use.access, item.compute.dims);
  }

  const Program &program_;
  const FuseOptions &options_;
  std::vector<Item> items_;             // by def
  std::vector<uint32_t> maker_;         // def, by tensor
  std::vector<bool> inlined_;           // by tensor
  std::vector<bool> constant_;          // by tensor: depends on parameters and constants alone
  std::vector<bool> summed_;            // by tensor
  std::vector<uint32_t> readers_;       // by tensor
  std::vector<std::vector<Use>> uses_;  // by tensor
};

}  // namespace

void drop_unused_operands(Item &item) {
  std::vector<int> renumbered(item.operands.size(), -1);
  std::vector<uint32_t> kept;
  const auto visit = [&](Body &body) {
    for (Value &v : body.values) {
      if (!reads_memory(v.op)) continue;
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
  if (item.compute.scatter) visit(item.compute.scatter->begin);
  item.operands = std::move(kept);
}

std::vector<Item> inline_producers(const Program &program, const FuseOptions &options) {
  return Inliner(program, options).run();
}

}  // namespace kiln::kernel
