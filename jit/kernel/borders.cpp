// Borders of images. A contraction whose rows are windows of its left operand, and meet elements beyond that one's
// ends, gets it with the border around it: a copy, in which every element of a window is in memory. Then a row is read
// where it lies, by one address for each step of k (InPlace in jit/llvm/contraction.cpp): windows overlap, and panels
// of them would hold each element as often as there are points in a window (a quarter of the time of 3 x 3 of 256
// channels).
#include <algorithm>

#include "jit/kernel/body.h"
#include "jit/kernel/fuse_steps.h"

namespace kiln::kernel {
namespace {

constexpr int64_t few_products = 1 << 18;  // of all: for fewer a launch does not pay

// How far a dim reaches beyond its ends.
struct Border {
  int64_t before = 0, after = 0;
  bool any() const { return before > 0 || after > 0; }
};

int64_t with_sizes_of_1(const Expr &e) {
  return e.evaluate([](const std::string &) { return int64_t{1}; });
}

// The comparisons that `valid` is the conjunction of.
void collect_conjuncts(const Body &body, int32_t valid, std::vector<const Value *> &out) {
  const Value &value = body.values[static_cast<size_t>(valid)];
  if (value.op != Core::logical_and) return out.push_back(&value);
  collect_conjuncts(body, value.args[0], out);
  collect_conjuncts(body, value.args[1], out);
}

// The borders of a tensor that `load` reads within its ends, and takes Access::fill for what is beyond. Nullopt: what
// guards it says something else, or sizes are not known.
std::optional<std::vector<Border>> borders_of(const Body &body, const Value &load, const Shape &dims) {
  std::vector<const Value *> conjuncts;
  collect_conjuncts(body, load.access.valid, conjuncts);
  std::vector<bool> from_0(dims.size()), to_end(dims.size());
  for (const Value *value : conjuncts) {
    if (value->op != Core::ge && value->op != Core::lt) return {};
    const Value &x = body.values[static_cast<size_t>(value->args[0])],
                &y = body.values[static_cast<size_t>(value->args[1])];
    if (x.op != Core::index || y.op != Core::index) return {};
    const auto d = static_cast<size_t>(std::ranges::find(load.access.index, x.expr) - load.access.index.begin());
    if (d == dims.size() || y.expr != (value->op == Core::ge ? Expr(0) : dims[d])) return {};
    (value->op == Core::ge ? from_0 : to_end)[d] = true;
  }
  std::vector<Border> borders(dims.size());
  for (size_t d = 0; d < dims.size(); ++d) {
    if (!from_0[d] && !to_end[d]) continue;
    const std::optional<int64_t> first = load.access.index[d].lower_bound(), last = load.access.index[d].upper_bound();
    if (!dims[d].is_integer() || !first || !last) return {};
    borders[d] = {std::max<int64_t>(0, -*first), std::max<int64_t>(0, *last - dims[d].integer() + 1)};
    if ((borders[d].before > 0 && !from_0[d]) || (borders[d].after > 0 && !to_end[d])) return {};
  }
  return borders;
}

// The load that is all of operand a, if its rows are windows, and enough of them.
const Value *load_of_windows(const Item &item, const std::vector<Tensor> &tensors) {
  const Compute &c = item.compute;
  const Body &a = c.contract->a;
  const Value &load = a.values[static_cast<size_t>(a.yields[0])];
  if (load.op != Core::load || load.access.valid < 0 || load.type != c.contract->accumulator) return nullptr;
  int64_t points = with_sizes_of_1(c.reduce[0]), columns = 1;
  for (size_t d = 0; d < c.dims.size(); ++d)
    (c.roles[d] == ContractRole::n ? columns : points) *= with_sizes_of_1(c.dims[d]);
  const int64_t elements = with_sizes_of_1(product_of(tensors[item.operands[load.access.buffer]].dims));
  return points > few_windows * elements && points * columns >= few_products ? &load : nullptr;
}

Expr rows_of(const Compute &c) {
  Expr rows = 1;
  for (size_t d = 0; d < c.dims.size(); ++d)
    if (c.roles[d] == ContractRole::m) rows *= c.dims[d];
  return rows;
}

// The item that copies the operand into `borders`; rewrites a to read the copy.
Item add_borders(Item &item, const Value &load, const std::vector<Border> &borders, std::vector<Tensor> &tensors) {
  Contract &contract = *item.compute.contract;
  const uint32_t source = item.operands[load.access.buffer];
  const Shape dims = tensors[source].dims;
  Item copy;
  copy.results = {static_cast<uint32_t>(tensors.size())};
  copy.operands = {source};
  Compute &c = copy.compute;
  c.results = {{load.type}};
  BodyBuilder body(c.body);
  std::vector<Expr> from, at;
  int inside = -1;
  for (uint32_t d = 0; d < dims.size(); ++d) {
    const Border &border = borders[d];
    c.dims.push_back(dims[d] + border.before + border.after);
    if (!c.dims[d].is(1)) copy.domain.push_back(d);
    from.push_back((c.dims[d].is(1) ? Expr(0) : Expr::axis(d, c.dims[d])) - border.before);
    at.push_back(load.access.index[d] + border.before);
    const auto require = [&](Core comparison, const Expr &bound) {
      const int holds = body.op(comparison, body.index(from[d]), body.index(bound));
      inside = inside < 0 ? holds : body.op(Core::logical_and, inside, holds);
    };
    if (border.before > 0) require(Core::ge, 0);
    if (border.after > 0) require(Core::lt, dims[d]);
  }
  body.yield(body.load(0, load.type, from, inside, load.access.fill));
  tensors.push_back(
      {.dtype = load.type, .dims = c.dims, .strides = row_major_strides(c.dims), .part_of = item.results[0]});

  Body read;
  BodyBuilder reader(read);
  item.operands.push_back(copy.results[0]);
  reader.yield(reader.load(static_cast<uint16_t>(item.operands.size() - 1), load.type, std::move(at)));
  contract.a = std::move(read);
  drop_unused_operands(item);
  return copy;
}

}  // namespace

std::vector<Item> split_borders(std::vector<Item> items, std::vector<Tensor> &tensors, const Target &target,
                                const FuseOptions &options) {
  if (!options.fuse || target.on_device()) return items;
  std::vector<Item> out;
  for (Item &item : items) {
    if (item.compute.contract && !item.prepared) {
      const Value *load = load_of_windows(item, tensors);
      std::optional<std::vector<Border>> borders;
      if (load && may_read_rows_in_place(choose_microkernel(rows_of(item.compute), load->type, target).mr))
        borders = borders_of(item.compute.contract->a, *load, tensors[item.operands[load->access.buffer]].dims);
      if (borders && std::ranges::any_of(*borders, &Border::any)) {
        const Value copied = *load;
        out.push_back(add_borders(item, copied, *borders, tensors));
      }
    }
    out.push_back(std::move(item));
  }
  return out;
}

}  // namespace kiln::kernel
