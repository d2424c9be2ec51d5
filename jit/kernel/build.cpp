// From a group to its kernel: axes, stages, buffers, stores.
//
// A group of rows has the shared rows as parallel axes; each item is a stage over its other axes. Neighbouring maps
// over the same axes become one stage with a joint body, in which they pass values without memory. A sort is three
// stages: its columns are filled, sorted, and what comes first is stored. A group around a
// contraction has (batch.., m, n) as parallel axes, and the maps after it are its epilogue; in tiles of rows it is a
// stage as others are, with the same epilogue.
#include <algorithm>
#include <map>
#include <span>

#include "jit/kernel/body.h"
#include "jit/kernel/fuse_steps.h"

namespace kiln::kernel {
namespace {

class Builder {
 public:
  Builder(const Group &group, const std::vector<Item> &items, const std::vector<Tensor> &tensors,
          const std::vector<bool> &needed)
      : group_(group), items_(items), tensors_(tensors), needed_(needed) {
    for (uint32_t i : group.items) {
      for (uint32_t tensor : items[i].results) makers_[tensor] = &items[i];
    }
  }

  Built run() {
    launch_.prepared = items_[group_.items.front()].prepared;
    if (group_.contraction) {
      assign_buffers({});
      build_contraction();
    } else {
      build_rows();
    }
    return {std::move(kernel_), std::move(launch_)};
  }

 private:
  struct StagePlan {
    std::vector<const Item *> items;  // one that is no map, or maps with one set of loop axes; a contraction and maps
    std::vector<Expr> loops;
  };

  // ---- rows
  void build_rows() {
    const Item &first = items_[group_.items.front()];
    for (size_t d = 0; d < group_.rows; ++d) {
      kernel_.parallel.push_back({first.compute.dims[first.domain[d]], Axis::Role::parallel});
    }
    std::vector<StagePlan> plans = plan_stages();
    assign_buffers(plans);
    for (const StagePlan &plan : plans) {
      const Item &alone = *plan.items.front();
      if (alone.compute.scatter)
        build_scatter(alone);
      else if (alone.sorts())
        build_sort(alone);
      else if (alone.compute.contract)
        kernel_.stages.push_back(build_product(plan));
      else
        kernel_.stages.push_back(build_stage(plan));
    }
  }

  std::vector<StagePlan> plan_stages() const {
    std::vector<StagePlan> plans;
    for (uint32_t i : group_.items) {
      const Item &item = items_[i];
      std::vector<Expr> loops;
      for (size_t d = group_.rows; d < item.row_axes(); ++d) loops.push_back(item.compute.dims[item.domain[d]]);
      if (plans.empty() || !item.is_map() || !takes_maps(*plans.back().items.front(), item) ||
          plans.back().loops != loops || !in_step(item, plans.back())) {
        plans.push_back({{}, std::move(loops)});
      }
      plans.back().items.push_back(&item);
    }
    return plans;
  }

  // Whether a stage that begins with `first` may go on with a map.
  bool takes_maps(const Item &first, const Item &map) const {
    return first.is_map() || (group_.row_tiles && first.compute.contract && first.compute.dims == map.compute.dims);
  }

  // Whether what `item` reads of the stage's other items is the very point that it computes.
  bool in_step(const Item &item, const StagePlan &plan) const {
    const std::vector<Expr> axes = domain_axes(item);
    return std::ranges::all_of(item.compute.body.values, [&](const Value &v) {
      if (!reads_memory(v.op)) return true;
      const auto maker = makers_.find(item.operands[v.access.buffer]);
      if (maker == makers_.end() || std::ranges::find(plan.items, maker->second) == plan.items.end()) return true;
      return v.op == Core::load && reads_in_step(v.access, maker->second->domain, axes, axes.size());
    });
  }

  // An axis of an item, as the kernel numbers it: rows first, then the stage's loop axes, then its reduce axes.
  AxisMap kernel_axes(const Item &item) const {
    return [&item](uint32_t axis) -> std::optional<Expr> {
      const size_t rank = item.compute.dims.size();
      if (axis >= rank)
        return Expr::axis(static_cast<uint32_t>(item.row_axes() + reduce_number(item, axis - rank)),
                          item.compute.reduce[axis - rank]);
      const auto at = std::ranges::find(item.domain, axis);
      return Expr::axis(static_cast<uint32_t>(at - item.domain.begin()), item.compute.dims[axis]);
    };
  }
  static size_t reduce_number(const Item &item, size_t reduce) {  // reduce axes of extent 1 are gone
    size_t number = 0;
    for (size_t r = 0; r < reduce; ++r) number += !item.compute.reduce[r].is(1);
    return number;
  }

  Stage build_stage(const StagePlan &plan) {
    Stage stage;
    for (const Expr &loop : plan.loops) stage.axes.push_back({loop, Axis::Role::loop});
    std::map<uint32_t, int> made;  // tensor -> value, of this stage's maps
    for (const Item *item : plan.items) {
      const std::vector<int> ids = copy_into(stage.body, item->compute.body, *item, kernel_axes(*item), made);
      std::vector<int32_t> yields;
      for (int32_t y : item->compute.body.yields) yields.push_back(ids[static_cast<size_t>(y)]);
      if (!item->compute.unrolled.empty()) {
        store_unrolled(stage, *item, yields);
        continue;
      }
      if (item->is_map()) {
        for (size_t r = 0; r < item->results.size(); ++r) {
          const int32_t value = yields[static_cast<size_t>(item->compute.results[r].value)];
          made[item->results[r]] = value;
          store_yield(stage, *item, item->results[r], value, kernel_axes(*item));
        }
        continue;
      }
      for (const Expr &extent : item->compute.reduce) {
        if (!extent.is(1)) stage.axes.push_back({extent, Axis::Role::reduce});
      }
      if (item->compute.scan >= 0) {
        stage.axes.push_back({item->compute.dims[static_cast<size_t>(item->compute.scan)], Axis::Role::scan});
      }
      if (stage.axes.size() == plan.loops.size()) stage.axes.push_back({1, Axis::Role::reduce});  // over one element
      stage.body.yields = std::move(yields);
      stage.carriers = item->compute.carriers;
      if (std::optional<Expr> &until = stage.carriers.until) until = translate(*until, kernel_axes(*item), {});
      for (size_t r = 0; r < item->results.size(); ++r) {
        if (buffer_of_.contains(item->results[r]))
          stage.stores.push_back(
              {store_access(*item, item->results[r], kernel_axes(*item)), item->compute.results[r].value});
      }
    }
    prune(stage.body);
    return stage;
  }

  // A map of what the elements are at first, unless they lie there, and one over the points, which scatters.
  void build_scatter(const Item &item) {
    const Compute &c = item.compute;
    const Scatter &scatter = *c.scatter;
    const uint32_t tensor = item.results[0];
    std::map<uint32_t, int> none;
    Stage begin, points;
    for (size_t d = item.row_axes(); d < item.domain.size(); ++d)
      begin.axes.push_back({c.dims[item.domain[d]], Axis::Role::loop});
    if (item.base) {
      launch_.bases.push_back({buffer_of_.at(tensor), *item.base});
    } else {
      const std::vector<int> first = copy_into(begin.body, scatter.begin, item, kernel_axes(item), none);
      store_yield(begin, item, tensor, first[static_cast<size_t>(scatter.begin.yields[0])], kernel_axes(item));
      prune(begin.body);
    }

    for (const Expr &extent : c.reduce)
      if (!extent.is(1)) points.axes.push_back({extent, Axis::Role::loop});
    const AxisMap axes = [&](uint32_t axis) -> std::optional<Expr> {
      if (axis < c.dims.size()) return c.dims[axis].is(1) ? Expr(0) : *kernel_axes(item)(axis);
      const size_t r = axis - c.dims.size();
      if (c.reduce[r].is(1)) return Expr(0);
      return Expr::axis(static_cast<uint32_t>(item.row_axes() + reduce_number(item, r)), c.reduce[r]);
    };
    const std::vector<int> ids = copy_into(points.body, c.body, item, axes, none);
    std::vector<int> yields;  // which the index names by number, here as there
    for (int32_t y : c.body.yields) {
      yields.push_back(static_cast<int>(yields.size()));
      points.body.yields.push_back(ids[static_cast<size_t>(y)]);
    }
    std::vector<Expr> index;
    for (const Expr &e : scatter.index) index.push_back(translate(e, axes, yields));
    points.stores.push_back(
        {{.buffer = buffer_of_.at(tensor), .index = {offset_of(tensor, index)}, .valid = scatter.valid, .fill = 0},
         0,
         scatter.mode});
    prune(points.body);
    if (!item.base) kernel_.stages.push_back(std::move(begin));
    kernel_.stages.push_back(std::move(points));
  }

  void build_sort(const Item &item) {
    const Compute &c = item.compute;
    const uint32_t id = static_cast<uint32_t>(group_.rows), first = columns_of_.at(&item);
    const Expr &count = c.reduce[0], &wanted = c.dims[static_cast<size_t>(c.scan)];
    const auto column = [&](int32_t yield) { return static_cast<uint16_t>(first + 2 * yield); };
    Stage fill, sort, take;
    fill.axes = {{count, Axis::Role::loop}};
    const std::vector<int> ids = copy_into(fill.body, c.body, item, kernel_axes(item), {});
    sort.axes = {{count, Axis::Role::scan}};
    sort.sort = {.columns = {}, .descending = c.order == Compute::Order::descending, .runs = 1, .wanted = {}};
    if (wanted != count) sort.sort->wanted = wanted;
    for (int32_t y = 0; y < static_cast<int32_t>(c.body.yields.size()); ++y) {
      fill.body.yields.push_back(ids[static_cast<size_t>(c.body.yields[static_cast<size_t>(y)])]);
      fill.stores.push_back(
          {{.buffer = column(y), .index = {Expr::axis(id, count)}, .valid = -1, .fill = 0}, y, Store::Mode::plain});
      sort.sort->columns.push_back({column(y), static_cast<uint16_t>(column(y) + 1)});
    }
    prune(fill.body);
    if (!wanted.is(1)) take.axes = {{wanted, Axis::Role::loop}};
    BodyBuilder body(take.body);
    for (size_t r = 0; r < item.results.size(); ++r) {
      const int value =
          body.load(column(c.results[r].value), c.results[r].dtype, {wanted.is(1) ? Expr(0) : Expr::axis(id, wanted)});
      store_yield(take, item, item.results[r], value, kernel_axes(item));
    }
    prune(take.body);
    for (Stage *stage : {&fill, &sort, &take}) kernel_.stages.push_back(std::move(*stage));
  }

  // ---- contraction
  void build_contraction() {
    const Item &item = items_[group_.items.front()];
    const Compute &c = item.compute;
    // Several axes in one role are one flattened axis; batch axes stay apart (collapse_axes merges those that it can).
    std::map<uint32_t, Expr> axis_of;
    std::vector<uint32_t> m, n;
    for (uint32_t axis : item.domain) {
      if (c.roles[axis] == ContractRole::m) m.push_back(axis);
      if (c.roles[axis] == ContractRole::n) n.push_back(axis);
      if (c.roles[axis] != ContractRole::batch) continue;
      axis_of[axis] = Expr::axis(static_cast<uint32_t>(kernel_.parallel.size()), c.dims[axis]);
      kernel_.parallel.push_back({c.dims[axis], Axis::Role::parallel});
    }
    for (const std::vector<uint32_t> &role : {m, n}) {
      Expr extent = 1;
      for (uint32_t axis : role) extent *= c.dims[axis];
      const Expr flat = extent.is(1) ? Expr(0) : Expr::axis(static_cast<uint32_t>(kernel_.parallel.size()), extent);
      kernel_.parallel.push_back({extent, Axis::Role::parallel});
      Expr inner = 1;
      for (size_t i = role.size(); i-- > 0;) {
        const Expr outer = floor_div(flat, inner);
        axis_of[role[i]] = i == 0 ? outer : mod(outer, c.dims[role[i]]);
        inner *= c.dims[role[i]];
      }
    }
    const uint32_t k_axis = static_cast<uint32_t>(c.dims.size());
    const Expr k = Expr::axis(static_cast<uint32_t>(kernel_.parallel.size()), c.reduce[0]);
    const AxisMap axes = [&](uint32_t axis) -> std::optional<Expr> { return axis == k_axis ? k : axis_of.at(axis); };

    Stage stage;
    stage.axes.push_back({c.reduce[0], Axis::Role::reduce});
    std::map<uint32_t, int> made;
    made[item.results[0]] = add_sum(stage, item, axes);
    Contract &contract = *stage.contract;
    set_factors(contract, {c.contract->a_factor, c.contract->b_factor, c.contract->group});
    if (c.contract->panel) set_packed(contract, c.contract->panel);

    std::vector<const Item *> all;
    for (uint32_t i : group_.items) all.push_back(&items_[i]);
    add_epilogue(stage, all, axes, std::move(made));
    kernel_.stages.push_back(std::move(stage));
  }

  // The first of `items` is the stage's contraction, of which `made` has the result, the others are maps.
  void add_epilogue(Stage &stage, const std::vector<const Item *> &items, const AxisMap &axes,
                    std::map<uint32_t, int> made) {
    for (const Item *each : items) {
      if (each != items.front()) {
        const std::vector<int> ids = copy_into(stage.body, each->compute.body, *each, axes, made);
        for (size_t r = 0; r < each->results.size(); ++r) {
          const auto yield = static_cast<size_t>(each->compute.results[r].value);
          made[each->results[r]] = ids[static_cast<size_t>(each->compute.body.yields[yield])];
        }
      }
      for (uint32_t tensor : each->results) store_yield(stage, *each, tensor, made[tensor], axes);
    }
    prune(stage.body);
  }

  // Makes a contraction of the stage. Gives the value of its body that is the item's result.
  int add_sum(Stage &stage, const Item &item, const AxisMap &axes) {
    const Contract &given = *item.compute.contract;
    Contract &contract = stage.contract.emplace();
    contract.accumulator = given.accumulator;
    for (auto [from, to] : {std::pair{&given.a, &contract.a}, std::pair{&given.b, &contract.b}}) {
      const std::vector<int> ids = copy_into(*to, *from, item, axes, {});
      to->yields.push_back(BodyBuilder(*to).convert(ids[static_cast<size_t>(from->yields[0])], contract.accumulator));
      prune(*to);
    }
    Value accumulator{.op = Core::accumulator,
                      .type = contract.accumulator,
                      .args = {-1, -1, -1},
                      .immediate = 0,
                      .access = {},
                      .expr = {}};
    const int sum = append(stage.body, accumulator);
    return BodyBuilder(stage.body).convert(sum, item.compute.results[0].dtype);
  }

  // A contraction among other stages, whose loop axes end in m and n.
  Stage build_product(const StagePlan &plan) {
    const Item &item = *plan.items.front();
    const Compute &c = item.compute;
    const std::span<const uint32_t> rows = std::span(item.domain).first(group_.rows),
                                    loops = std::span(item.domain).subspan(group_.rows);
    Stage stage;
    std::map<uint32_t, Expr> axis_of;
    for (uint32_t axis : rows) axis_of[axis] = Expr::axis(static_cast<uint32_t>(axis_of.size()), c.dims[axis]);
    const auto add = [&](const Expr &extent, Axis::Role role) {
      stage.axes.push_back({extent, role});
      return Expr::axis(static_cast<uint32_t>(group_.rows + stage.axes.size() - 1), extent);
    };
    const auto add_loops = [&](ContractRole role) {
      const size_t before = stage.axes.size();
      for (uint32_t axis : loops)
        if (c.roles[axis] == role) axis_of[axis] = add(c.dims[axis], Axis::Role::loop);
      return stage.axes.size() > before;
    };
    add_loops(ContractRole::batch);
    for (ContractRole role : {ContractRole::m, ContractRole::n})
      if (!add_loops(role)) add(1, Axis::Role::loop);
    axis_of[static_cast<uint32_t>(c.dims.size())] = add(c.reduce[0], Axis::Role::reduce);
    const AxisMap axes = [&](uint32_t axis) -> std::optional<Expr> { return axis_of.at(axis); };
    const int result = add_sum(stage, item, axes);
    add_epilogue(stage, plan.items, axes, {{item.results[0], result}});
    return stage;
  }

  // Body b has one load, of the panels: its offset at n = 0 and k = 0 is where this batch's panels begin.
  void set_packed(Contract &contract, uint32_t panel) {
    const uint32_t n_axis = static_cast<uint32_t>(kernel_.parallel.size()) - 1, k_axis = n_axis + 1;
    const Value &load = *std::ranges::find(contract.b.values, Core::load, &Value::op);
    contract.panel = panel;
    contract.packed_buffer = load.access.buffer;
    contract.packed_offset = translate(load.access.index[0],
                                       [&](uint32_t axis) -> std::optional<Expr> {
                                         if (axis == n_axis || axis == k_axis) return Expr(0);
                                         return {};
                                       },
                                       {});
  }

  // ---- bodies, buffers, addresses
  // Loads of what this stage made become the values; others address the kernel's buffers by one offset.
  std::vector<int> copy_into(Body &to, const Body &from, const Item &item, const AxisMap &axes,
                             const std::map<uint32_t, int> &made) {
    return copy_body(from, to, axes, [&](Body &body, Value load) {
      const uint32_t tensor = item.operands[load.access.buffer];
      if (const auto value = made.find(tensor); value != made.end()) return value->second;
      load.access.buffer = buffer_of_.at(tensor);
      load.access.index = {offset_of(tensor, load.access.index)};
      if (load.op == Core::search)
        load.access.index.push_back(
            local(tensor) || tensors_[tensor].strides.empty() ? 1 : tensors_[tensor].strides.back());
      return append(body, load);
    });
  }

  // A map's result, if it has memory.
  void store_yield(Stage &stage, const Item &item, uint32_t tensor, int32_t value, const AxisMap &axes) const {
    if (!buffer_of_.contains(tensor)) return;
    stage.stores.push_back({store_access(item, tensor, axes), static_cast<int32_t>(stage.body.yields.size())});
    stage.body.yields.push_back(value);
  }

  // The elements that a point has along the unrolled axes.
  void store_unrolled(Stage &stage, const Item &item, const std::vector<int32_t> &values) const {
    const Compute &c = item.compute;
    for (size_t i = 0; i < values.size(); ++i) {
      const AxisMap axes = [&](uint32_t axis) -> std::optional<Expr> {
        if (!c.unrolls(axis)) return kernel_axes(item)(axis);
        auto left = static_cast<int64_t>(i);
        for (auto inner = c.unrolled.end(); *--inner != axis;) left /= c.dims[*inner].integer();
        return Expr(left % c.dims[axis].integer());
      };
      store_yield(stage, item, item.results[0], values[i], axes);
    }
  }

  Access store_access(const Item &item, uint32_t tensor, const AxisMap &axes) const {
    std::vector<Expr> index;
    for (uint32_t axis = 0; axis < item.compute.dims.size(); ++axis) {
      index.push_back(item.compute.dims[axis].is(1) ? Expr(0) : *axes(axis));
    }
    return {.buffer = buffer_of_.at(tensor), .index = {offset_of(tensor, index)}, .valid = -1, .fill = 0};
  }

  Expr offset_of(uint32_t tensor, const std::vector<Expr> &index) const {
    Expr offset = 0;
    if (local(tensor)) {  // one row of it: the axes behind the rows, row-major
      const Item &item = *makers_.at(tensor);
      for (size_t d = group_.rows; d < item.domain.size(); ++d)
        offset = offset * item.compute.dims[item.domain[d]] + index[item.domain[d]];
      return offset;
    }
    // Memory begins with the lowest element: of a dim that goes down the last.
    const Tensor &t = tensors_[tensor];
    for (size_t d = 0; d < index.size(); ++d)
      offset += index[d] * t.strides[d] - (t.dims[d] - 1) * min(t.strides[d], 0);
    return offset;
  }

  Expr span_of(uint32_t tensor) const { return span_elements(tensors_[tensor].dims, tensors_[tensor].strides); }

  bool local(uint32_t tensor) const { return makers_.contains(tensor) && !needed_[tensor]; }

  // Buffers in the order in, out, row_local. What a stage hands on inside itself alone has none.
  void assign_buffers(const std::vector<StagePlan> &plans) {
    const auto add = [&](uint32_t tensor, Buffer::Space space, Expr size) {
      buffer_of_[tensor] = static_cast<uint16_t>(kernel_.buffers.size());
      kernel_.buffers.push_back({tensors_[tensor].dtype, space, std::move(size)});
      if (space != Buffer::Space::row_local) launch_.buffers.push_back(tensor);
    };
    for (uint32_t i : group_.items) {
      for (uint32_t operand : items_[i].operands) {
        if (!makers_.contains(operand) && !buffer_of_.contains(operand))
          add(operand, Buffer::Space::in, span_of(operand));
      }
    }
    for (uint32_t i : group_.items) {
      for (uint32_t tensor : items_[i].results) {
        if (needed_[tensor]) add(tensor, Buffer::Space::out, span_of(tensor));
      }
    }
    for (const StagePlan &plan : plans) {
      for (const Item *item : plan.items) {
        Expr inner = 1;
        for (size_t d = group_.rows; d < item->domain.size(); ++d) inner *= item->compute.dims[item->domain[d]];
        for (uint32_t tensor : item->results) {
          if (needed_[tensor] || !crosses_stages(tensor, plan, plans)) continue;
          if (const std::optional<uint32_t> before = left_to(tensor, plan, plans))
            buffer_of_[tensor] = buffer_of_.at(*before);
          else
            add(tensor, Buffer::Space::row_local, inner);
        }
      }
    }
    assign_columns(plans);
  }

  // In tiles of rows, which are to be small: what lies in the buffer that a map's result may have, for the map alone
  // still reads it, and each point its own element.
  std::optional<uint32_t> left_to(uint32_t tensor, const StagePlan &plan, const std::vector<StagePlan> &plans) const {
    if (!group_.row_tiles || !plan.items.front()->is_map()) return {};
    const Item &item = *makers_.at(tensor);
    const auto is_free = [&](uint32_t other) {
      const auto found = buffer_of_.find(other);
      if (found == buffer_of_.end() || !local(other) || tensors_[other].dtype != tensors_[tensor].dtype) return false;
      if (makers_.at(other)->compute.dims != item.compute.dims ||
          std::ranges::find(plan.items, makers_.at(other)) != plan.items.end())
        return false;
      for (const auto &[taker, buffer] : buffer_of_)
        if (buffer == found->second && taker != other && makers_.contains(taker) &&
            std::ranges::find(plan.items, makers_.at(taker)) != plan.items.end())
          return false;
      for (const StagePlan *later = &plan + 1; later <= &plans.back(); ++later)
        if (reads(*later, other)) return false;
      return std::ranges::all_of(plan.items, [&](const Item *reader) {
        const std::vector<Expr> axes = domain_axes(*reader);
        return std::ranges::all_of(reader->compute.body.values, [&](const Value &v) {
          if (!reads_memory(v.op) || reader->operands[v.access.buffer] != other) return true;
          return v.op == Core::load && reads_in_step(v.access, makers_.at(other)->domain, axes, axes.size());
        });
      });
    };
    const auto found = std::ranges::find_if(item.operands, is_free);
    return found == item.operands.end() ? std::nullopt : std::optional(*found);
  }

  static bool reads(const StagePlan &plan, uint32_t tensor) {
    return std::ranges::any_of(plan.items, [&](const Item *item) {
      return std::ranges::find(item->operands, tensor) != item->operands.end();
    });
  }

  // Of each sort: its columns, a buffer and its spare one after the other.
  void assign_columns(const std::vector<StagePlan> &plans) {
    for (const StagePlan &plan : plans) {
      const Item &item = *plan.items.front();
      if (!item.sorts()) continue;
      columns_of_[&item] = static_cast<uint32_t>(kernel_.buffers.size());
      for (int32_t y : item.compute.body.yields) {
        const Buffer column{item.compute.body.values[static_cast<size_t>(y)].type, Buffer::Space::row_local,
                            item.compute.reduce[0]};
        kernel_.buffers.insert(kernel_.buffers.end(), {column, column});
      }
    }
  }

  static bool crosses_stages(uint32_t tensor, const StagePlan &own, const std::vector<StagePlan> &plans) {
    return std::ranges::any_of(plans, [&](const StagePlan &plan) { return &plan != &own && reads(plan, tensor); });
  }

  const Group &group_;
  const std::vector<Item> &items_;
  const std::vector<Tensor> &tensors_;
  const std::vector<bool> &needed_;
  std::map<uint32_t, const Item *> makers_;      // by tensor, of this group
  std::map<uint32_t, uint16_t> buffer_of_;       // by tensor
  std::map<const Item *, uint32_t> columns_of_;  // of a sort: its first column's buffer
  Kernel kernel_;
  Launch launch_;
};

}  // namespace

Built build_launch(const Group &group, const std::vector<Item> &items, const std::vector<Tensor> &tensors,
                   const std::vector<bool> &needed) {
  return Builder(group, items, tensors, needed).run();
}

}  // namespace kiln::kernel
