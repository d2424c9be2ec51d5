// Which groups become one kernel in tiles of rows: a contraction, what its rows go through, reductions among it, and
// the contraction that sums over its columns. So the scores of attention need no memory but a tile's of rows.
#include <algorithm>

#include "jit/kernel/fuse_steps.h"

namespace kiln::kernel {
namespace {

constexpr int max_cost = 2048;              // of all bodies: compile time grows with it
constexpr size_t max_groups = 8;            // that are looked through for one kernel
constexpr int64_t max_columns = 1 << 15;    // of a row that scratch keeps, for several rows of each thread
constexpr int64_t fewest_tasks = 4;         // with fewer the two products by themselves have more, along columns
constexpr int64_t task_products = 1 << 20;  // of one point of the rows that are few; with less one task is soon done

class Joiner {
 public:
  Joiner(std::vector<Group> &groups, const std::vector<Item> &items, const std::vector<Tensor> &tensors)
      : groups_(groups),
        items_(items),
        tensors_(tensors),
        item_of_(tensors.size(), UINT32_MAX),
        group_of_(tensors.size(), UINT32_MAX),
        readers_(tensors.size()) {
    for (uint32_t g = 0; g < groups.size(); ++g) {
      for (uint32_t i : groups[g].items) {
        for (uint32_t tensor : items[i].results) {
          item_of_[tensor] = i;
          group_of_[tensor] = g;
        }
        for (uint32_t operand : items[i].operands) readers_[operand].push_back(g);
      }
    }
  }

  void run() {
    for (uint32_t last = 0; last < groups_.size(); ++last) {
      if (!groups_[last].contraction || !has_rows(first_item(last))) continue;
      members_ = {last};
      rows_ = row_count(first_item(last));
      if (!find_members(last) || !suits()) continue;
      Group joined{.items = {}, .contraction = false, .row_tiles = true, .rows = rows_, .cost = 0};
      for (uint32_t g : members_) {
        joined.items.insert(joined.items.end(), groups_[g].items.begin(), groups_[g].items.end());
        joined.cost += groups_[g].cost;
        groups_[g].items.clear();
      }
      groups_[last] = std::move(joined);
    }
    std::erase_if(groups_, [](const Group &group) { return group.items.empty(); });
  }

 private:
  const Item &first_item(uint32_t group) const { return items_[groups_[group].items.front()]; }

  static size_t row_count(const Item &item) { return item.domain.size() - 1; }
  // Whether it is over rows, the last of which its right operand does not depend on, and columns along one axis.
  static bool has_rows(const Item &item) {
    const Compute &c = item.compute;
    if (item.domain.size() < 2 || item.prepared || c.contract->panel != 0 || c.contract->group != 1 ||
        !dtype_info(c.contract->accumulator).is_float)
      return false;
    const auto role = [&](size_t d) { return c.roles[item.domain[d]]; };
    const size_t rows = row_count(item);
    for (size_t d = 0; d < rows; ++d)
      if (role(d) == ContractRole::n) return false;
    return role(rows) == ContractRole::n && role(rows - 1) == ContractRole::m;
  }

  // The groups that lie between a first contraction and group `last`, in order; false: there is not one such
  // contraction.
  bool find_members(uint32_t last) {
    std::vector<uint32_t> seen, firsts;
    const std::function<bool(uint32_t)> leads = [&](uint32_t g) {
      if (std::ranges::find(members_, g) != members_.end()) return true;
      if (seen.size() >= max_groups || std::ranges::find(seen, g) != seen.end()) return false;
      seen.push_back(g);
      if (!may_be_between(g)) return false;
      bool found = groups_[g].contraction;
      if (found) firsts.push_back(g);
      for (uint32_t i : groups_[g].items)
        for (uint32_t operand : items_[i].operands)
          if (!groups_[g].contraction && group_of_[operand] != UINT32_MAX && group_of_[operand] != g)
            found |= leads(group_of_[operand]);
      if (found) members_.push_back(g);
      return found;
    };
    for (uint32_t i : groups_[last].items)
      for (uint32_t operand : items_[i].operands)
        if (group_of_[operand] != UINT32_MAX && group_of_[operand] != last) leads(group_of_[operand]);
    std::ranges::sort(members_);
    return firsts.size() == 1;
  }

  // Whether the group walks the same rows, in stages that a row may go through by itself.
  bool may_be_between(uint32_t g) const {
    const Group &group = groups_[g];
    if (group.items.empty() || group.row_tiles || first_item(g).prepared) return false;
    if (group.contraction && (!has_rows(first_item(g)) || row_count(first_item(g)) != rows_)) return false;
    const Item &whole = first_item(members_.front());
    return std::ranges::all_of(group.items, [&](uint32_t i) {
      const Item &item = items_[i];
      if (item.sorts() || item.compute.scatter || item.compute.scan >= 0 || item.row_axes() < rows_) return false;
      for (size_t d = 0; d < rows_; ++d)
        if (item.compute.dims[item.domain[d]] != whole.compute.dims[whole.domain[d]]) return false;
      return true;
    });
  }

  bool is_member(uint32_t group) const { return std::ranges::find(members_, group) != members_.end(); }

  bool suits() const {
    int cost = 0;
    bool reduces = false;
    for (uint32_t g : members_) {
      cost += groups_[g].cost;
      for (uint32_t i : groups_[g].items) {
        reduces |= !items_[i].compute.carriers.types.empty();
        if (!in_step(items_[i]) || !(g == members_.back() || stays_inside(items_[i]))) return false;
      }
    }
    const Contract &first = *first_item(members_.front()).compute.contract,
                   &second = *first_item(members_.back()).compute.contract;
    return reduces && cost <= max_cost && first.accumulator == second.accumulator && has_room();
  }

  // Whether a row of it reads of other members its own row alone; what right operands read is all rows'.
  bool in_step(const Item &item) const {
    const std::vector<Expr> axes = domain_axes(item);
    const auto reads = [&](const Body &body, bool inside) {
      return std::ranges::all_of(body.values, [&](const Value &v) {
        if (!reads_memory(v.op)) return true;
        const uint32_t operand = item.operands[v.access.buffer];
        if (group_of_[operand] == UINT32_MAX || !is_member(group_of_[operand])) return true;
        return inside && v.op == Core::load && reads_in_step(v.access, items_[item_of_[operand]].domain, axes, rows_);
      });
    };
    const auto &contract = item.compute.contract;
    return reads(item.compute.body, true) && (!contract || (reads(contract->a, true) && reads(contract->b, false)));
  }

  // Whether what has an element for each column is read by members alone, and nothing by who would come before them.
  bool stays_inside(const Item &item) const {
    return std::ranges::all_of(item.results, [&](uint32_t tensor) {
      if (item.domain.size() > rows_ && tensors_[tensor].is_output) return false;
      return std::ranges::all_of(readers_[tensor], [&](uint32_t g) {
        return is_member(g) || (item.domain.size() == rows_ && g > members_.back());
      });
    });
  }

  bool has_room() const {
    const Item &first = first_item(members_.front()), &second = first_item(members_.back());
    const Expr &columns = first.compute.dims[first.domain.back()];
    if (columns.is_integer() && columns.integer() > max_columns) return false;
    Expr rows = 1;
    for (size_t d = 0; d < rows_; ++d) rows *= second.compute.dims[second.domain[d]];
    const Expr products = columns * first.compute.reduce[0];
    const bool few = rows.is_integer() && rows.integer() < fewest_tasks * 4;
    return !few || (products.is_integer() && products.integer() <= task_products);
  }

  std::vector<Group> &groups_;
  const std::vector<Item> &items_;
  const std::vector<Tensor> &tensors_;
  std::vector<uint32_t> item_of_, group_of_;    // by tensor
  std::vector<std::vector<uint32_t>> readers_;  // groups, by tensor
  std::vector<uint32_t> members_;               // groups of the kernel at hand, in order
  size_t rows_ = 0;                             // of it: leading domain axes
};

}  // namespace

std::vector<Group> join_row_tiles(std::vector<Group> groups, const std::vector<Item> &items,
                                  const std::vector<Tensor> &tensors) {
  Joiner(groups, items, tensors).run();
  return groups;
}

}  // namespace kiln::kernel
