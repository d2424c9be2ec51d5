// Which items share a kernel. One walk in topological order: an item joins the latest group that it reads from, when it
// walks that group's rows in step, and otherwise begins a group of its own. All that an item reads lies in its group or
// in earlier ones, so groups in order of creation are in order of execution, and never form a cycle. The turns of a
// scan are to be one group: there an item joins whatever it reads.
#include <algorithm>

#include "jit/kernel/body.h"
#include "jit/kernel/fuse_steps.h"

namespace kiln::kernel {

std::vector<Expr> domain_axes(const Item &item) {
  std::vector<Expr> axes;
  for (uint32_t axis : item.domain) axes.push_back(Expr::axis(axis, item.compute.dims[axis]));
  return axes;
}

bool reads_in_step(const Access &load, const std::vector<uint32_t> &domain, const std::vector<Expr> &axes,
                   size_t count) {
  if (domain.size() < count || axes.size() < count || load.valid >= 0) return false;
  for (size_t i = 0; i < count; ++i) {
    if (load.index[domain[i]] != axes[i]) return false;
  }
  return true;
}

namespace {

constexpr size_t max_items = 24;        // of one group: bounds code size, and keeps planning linear
constexpr int max_cost = 1024;          // of one group's bodies: compile time grows with it
constexpr int64_t max_inner = 1 << 16;  // elements of one row that a kernel may keep to itself
// Of a contraction that a point of the rows, or one task, does among other things. In panels and steps it costs more up
// to here (gates of rnn, gru and lstm of hidden 16 to 64 at batch 1: 2.3 to 3.5 times, at batch 4 1.3 times), and less
// beyond (0.95 from 65,536 on).
constexpr int64_t max_products = 1 << 15;

class Grouper {
 public:
  Grouper(const std::vector<Item> &items, const std::vector<Tensor> &tensors, const FuseOptions &options,
          Grouping grouping)
      : items_(items),
        options_(options),
        grouping_(grouping),
        item_of_(tensors.size(), UINT32_MAX),
        group_of_(tensors.size(), UINT32_MAX) {}

  std::vector<Group> run() {
    for (uint32_t i = 0; i < items_.size(); ++i) {
      const Item &item = items_[i];
      uint32_t latest = UINT32_MAX;
      for (uint32_t operand : item.operands) {
        if (group_of_[operand] != UINT32_MAX && (latest == UINT32_MAX || group_of_[operand] > latest))
          latest = group_of_[operand];
      }
      if (together() && !groups_.empty()) latest = 0;
      uint32_t g = latest;
      if (!options_.fuse || latest == UINT32_MAX || !join(groups_[latest], i)) {
        if (together() && !suits_rows(item, leading_rows(item))) return {};
        g = static_cast<uint32_t>(groups_.size());
        groups_.push_back({.items = {i},
                           .contraction = item.compute.contract && !together(),
                           .row_tiles = false,
                           .rows = leading_rows(item),
                           .cost = size_of_body(item)});
      }
      for (uint32_t tensor : item.results) {
        item_of_[tensor] = i;
        group_of_[tensor] = g;
      }
    }
    return std::move(groups_);
  }

 private:
  bool join(Group &group, uint32_t i) {
    const Item &item = items_[i], &first = items_[group.items.front()];
    if ((item.compute.contract && !together()) || group.items.size() >= max_items || item.prepared != first.prepared)
      return false;
    if (!item.compute.unrolled.empty() || !first.compute.unrolled.empty()) return false;
    const int cost = size_of_body(item);
    if (group.cost + cost > max_cost) return false;
    if (!fits(group, item)) return false;
    group.items.push_back(i);
    group.cost += cost;
    return true;
  }

  // Whether `item` walks the group's rows in step; the rows shrink to those that it shares.
  bool fits(Group &group, const Item &item) {
    const Item &first = items_[group.items.front()];
    const std::vector<Expr> axes = domain_axes(item);
    const auto member = [&](uint32_t operand) {
      const uint32_t at = item_of_[operand];
      return at != UINT32_MAX && &groups_[group_of_[operand]] == &group ? &items_[at] : nullptr;
    };
    if (group.contraction) {
      if (!item.is_map() || item.compute.dims != first.compute.dims) return false;
      return for_reads(item, [&](const Value &read) {
        const Item *m = member(item.operands[read.access.buffer]);
        return !m || (read.op == Core::load && reads_in_step(read.access, m->domain, axes, axes.size()));
      });
    }

    // One that begins as another leaves it lie where it is (scatters.cpp).
    if (item.compute.scatter) {
      const std::optional<uint32_t> base = begins_as(item);
      const Item *maker = base ? member(*base) : nullptr;
      if (maker && maker->compute.scatter) return false;
    }

    // The longest row prefix that every read of the group keeps in step.
    size_t rows = std::min(group.rows, leading_rows(item));
    const bool plain = for_reads(item, [&](const Value &read) {
      if (const Item *m = member(item.operands[read.access.buffer])) {
        while (rows > 0 && !reads_in_step(read.access, m->domain, axes, rows)) --rows;
        return !together() || (read.op == Core::load && read.access.valid < 0);
      }
      return true;
    });
    if (!plain || (rows == 0 && !together() && (group.rows != 0 || !item.domain.empty()))) return false;
    for (size_t d = 0; d < rows; ++d) {
      if (first.compute.dims[first.domain[d]] != item.compute.dims[item.domain[d]]) return false;
    }
    if (!suits_rows(item, rows)) return false;
    for (uint32_t m : group.items)
      if (!suits_rows(items_[m], rows)) return false;
    group.rows = rows;
    return true;
  }

  bool together() const { return grouping_ != Grouping::by_reads; }

  // How many leading domain axes may be rows.
  size_t leading_rows(const Item &item) const {
    if (grouping_ == Grouping::in_one_task) return 0;
    if (!item.compute.contract) return item.row_axes();
    const auto is_row = [&](uint32_t d) { return item.compute.roles[d] != ContractRole::n; };
    return static_cast<size_t>(std::ranges::find_if_not(item.domain, is_row) - item.domain.begin());
  }

  bool suits_rows(const Item &item, size_t rows) const {
    if (item.compute.contract) return is_small_contraction(item, rows);
    // Reductions, scans, sorts and scatters over other than the innermost axes run across columns, in a kernel of their
    // own.
    return (item.is_map() || item.row_axes() <= rows) && small_rows(item, rows);
  }

  // Whether it can be a stage at each point of the rows: its columns are one axis for lanes, or there are no others.
  static bool is_small_contraction(const Item &item, size_t rows) {
    const Compute &c = item.compute;
    if (c.contract->panel != 0 || c.contract->group != 1) return false;
    Expr products = c.reduce[0];
    size_t columns = 0;
    for (size_t d = rows; d < item.domain.size(); ++d) {
      products *= c.dims[item.domain[d]];
      columns += c.roles[item.domain[d]] == ContractRole::n;
    }
    return (columns == 1 || item.domain.size() == rows) && products.is_integer() && products.integer() <= max_products;
  }

  static int size_of_body(const Item &item) {
    return cost_of(item.compute.body) + static_cast<int>(item.compute.body.values.size());
  }

  template <class Fn>
  static bool for_reads(const Item &item, Fn fn) {
    const auto all_in = [&](const Body &body) {
      return std::ranges::all_of(body.values, [&](const Value &v) { return !reads_memory(v.op) || fn(v); });
    };
    const auto &contract = item.compute.contract;
    return all_in(item.compute.body) && (!contract || (all_in(contract->a) && all_in(contract->b))) &&
           (!item.compute.scatter || all_in(item.compute.scatter->begin));
  }

  // What one point of the rows holds: at most max_inner elements, as far as that is known.
  static bool small_rows(const Item &item, size_t rows) {
    Expr inner = 1;
    for (size_t d = rows; d < item.domain.size(); ++d) inner *= item.compute.dims[item.domain[d]];
    return !inner.is_integer() || inner.integer() <= max_inner;
  }

  const std::vector<Item> &items_;
  const FuseOptions &options_;
  const Grouping grouping_;
  std::vector<uint32_t> item_of_, group_of_;  // by tensor
  std::vector<Group> groups_;
};

}  // namespace

std::vector<Group> group_items(const std::vector<Item> &items, const std::vector<Tensor> &tensors,
                               const FuseOptions &options, Grouping grouping) {
  return Grouper(items, tensors, options, grouping).run();
}

}  // namespace kiln::kernel
