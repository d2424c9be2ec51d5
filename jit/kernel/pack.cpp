// Packing of weights. A contraction whose right operand depends on parameters alone reads it from panels of nr columns,
//   packed[batch.., p, q, j, r] = b(batch.., k = q*group + r, n = p*nr + j), 0 beyond N and K,
// made by an ordinary map of its own, in the type of Contract::b_factor. Being made of parameters alone, that map runs
// in `prepare`, once per binding. The turns of a scan have theirs as one panel of all N columns, made before the turns.
#include <algorithm>

#include "jit/kernel/body.h"
#include "jit/kernel/fuse_steps.h"

namespace kiln::kernel {
namespace {

std::vector<uint32_t> axes_of_role(const Item &item, ContractRole role) {
  std::vector<uint32_t> axes;
  for (uint32_t axis : item.domain) {
    if (item.compute.roles[axis] == role) axes.push_back(axis);
  }
  return axes;
}

Expr extent_of(const Item &item, const std::vector<uint32_t> &axes) {
  Expr extent = 1;
  for (uint32_t axis : axes) extent *= item.compute.dims[axis];
  return extent;
}

bool reads_axis(const Body &body, uint32_t axis) {
  bool found = false;
  Body copy = body;
  for_each_expr(copy, [&](Expr &e) { found |= e.depends_on_axis(axis); });
  return found;
}

// Whether what operand b of the contraction is packed into, or what is put there, is another at other sizes.
bool changes_with_sizes(const Item &item, const Body &b) {
  const Compute &c = item.compute;
  const auto has_symbolic = [&](ContractRole role) {
    return std::ranges::any_of(axes_of_role(item, role), [&](uint32_t axis) {
      return c.dims[axis].depends_on_symbol() && (role == ContractRole::n || reads_axis(b, axis));
    });
  };
  return has_symbolic(ContractRole::n) || has_symbolic(ContractRole::batch) || c.reduce[0].depends_on_symbol() ||
         has_symbols(b);
}

// Whether lanes along n find what the body reads side by side, as it is.
bool has_columns(const Item &item, const Body &body, const std::vector<Tensor> &tensors) {
  const std::vector<uint32_t> n_axes = axes_of_role(item, ContractRole::n);
  const Value &load = body.values[0];
  if (n_axes.empty()) return true;
  if (body.values.size() > 1 || load.op != Core::load || n_axes.size() > 1) return false;
  Expr offset = 0;
  const Shape &strides = tensors[item.operands[load.access.buffer]].strides;
  for (size_t d = 0; d < strides.size(); ++d) offset += load.access.index[d] * strides[d];
  const std::optional<Expr> step = offset.coefficient(n_axes[0]);
  return step && step->is(1);
}

// The item that packs operand b of `item`; rewrites b to read what it packs.
Item pack(Item &item, std::vector<Tensor> &tensors, uint32_t panel, const Factors &factors) {
  Compute &c = item.compute;
  const Body b = std::move(c.contract->b);
  const Expr k_extent = c.reduce[0];
  const uint32_t k_axis = static_cast<uint32_t>(c.dims.size());
  const std::vector<uint32_t> n_axes = axes_of_role(item, ContractRole::n);
  std::vector<uint32_t> batch_axes = axes_of_role(item, ContractRole::batch);
  std::erase_if(batch_axes, [&](uint32_t axis) { return !reads_axis(b, axis); });
  const Expr n_extent = extent_of(item, n_axes), width = static_cast<int64_t>(panel),
             group = static_cast<int64_t>(factors.group);

  Item packing;
  packing.results = {static_cast<uint32_t>(tensors.size())};
  packing.operands = item.operands;
  packing.prepared = true;
  Compute &p = packing.compute;
  const DType dtype = factors.b == DType::none ? c.contract->accumulator : factors.b;
  p.results = {{dtype}};
  for (uint32_t axis : batch_axes) p.dims.push_back(c.dims[axis]);
  p.dims.insert(p.dims.end(), {ceil_div(n_extent, width), ceil_div(k_extent, group), width, group});
  for (uint32_t d = 0; d < p.dims.size(); ++d) {
    if (!p.dims[d].is(1)) packing.domain.push_back(d);
  }
  const size_t rank = p.dims.size();
  const auto packed_axis = [&](size_t d) {
    return p.dims[d].is(1) ? Expr(0) : Expr::axis(static_cast<uint32_t>(d), p.dims[d]);
  };
  const Expr n = packed_axis(rank - 4) * width + packed_axis(rank - 2),
             k = packed_axis(rank - 3) * group + packed_axis(rank - 1);
  BodyBuilder builder(p.body);
  int inside = builder.op(Core::lt, builder.index(n), builder.index(n_extent));
  if (!mod(k_extent, group).is(0)) {
    const int in_depth = builder.op(Core::lt, builder.index(k), builder.index(k_extent));
    inside = builder.op(Core::logical_and, inside, in_depth);
  }
  const AxisMap at_packed = [&](uint32_t axis) -> std::optional<Expr> {
    if (axis == k_axis) return k;
    if (const auto batch = std::ranges::find(batch_axes, axis); batch != batch_axes.end()) {
      return packed_axis(static_cast<size_t>(batch - batch_axes.begin()));
    }
    Expr inner = 1;  // of the flattened n: (n / inner) % extent
    for (size_t i = n_axes.size(); i-- > 0;) {
      if (n_axes[i] == axis) return i == 0 ? floor_div(n, inner) : mod(floor_div(n, inner), c.dims[axis]);
      inner *= c.dims[n_axes[i]];
    }
    return {};
  };
  const std::vector<int> ids = copy_body(b, p.body, at_packed, [&](Body &to, Value load) {
    if (load.access.valid >= 0)
      load.access.valid = BodyBuilder(to).op(Core::logical_and, inside, load.access.valid);
    else
      load.access.valid = inside;
    return append(to, load);
  });
  const Value &yield = b.values[static_cast<size_t>(b.yields[0])];
  const int32_t factor = factors.b == DType::none ? b.yields[0] : yield.args[0];
  const int value = builder.convert(ids[static_cast<size_t>(factor)], dtype);
  builder.yield(builder.op(Core::select, inside, value, builder.constant(dtype, 0)));
  prune(p.body);
  drop_unused_operands(packing);

  tensors.push_back(
      {.dtype = dtype, .dims = p.dims, .strides = row_major_strides(p.dims), .is_output = false, .prepared = true});

  // The contraction reads the panels: flattened n as the axes say it.
  Expr flat = 0;
  for (uint32_t axis : n_axes) flat = flat * c.dims[axis] + Expr::axis(axis, c.dims[axis]);
  std::vector<Expr> index;
  for (uint32_t axis : batch_axes) index.push_back(Expr::axis(axis, c.dims[axis]));
  const Expr at_k = k_extent.is(1) ? Expr(0) : Expr::axis(k_axis, k_extent);
  index.insert(index.end(), {floor_div(flat, width), floor_div(at_k, group), mod(flat, width), mod(at_k, group)});
  Body read;
  BodyBuilder reader(read);
  item.operands.push_back(packing.results[0]);
  const int packed = reader.load(static_cast<uint16_t>(item.operands.size() - 1), dtype, std::move(index));
  reader.yield(reader.convert(packed, c.contract->accumulator));
  c.contract->b = std::move(read);
  c.contract->panel = panel;
  set_factors(*c.contract, factors);
  drop_unused_operands(item);
  return packing;
}

}  // namespace

std::vector<Item> split_packing(std::vector<Item> items, std::vector<Tensor> &tensors, const Target &target) {
  if (target.on_device()) return items;  // panels are for a microkernel's vectors
  std::vector<bool> prepared(tensors.size());
  for (size_t t = 0; t < tensors.size(); ++t) prepared[t] = tensors[t].prepared;
  std::vector<Item> all;
  for (Item &item : items) {
    for (uint32_t tensor : item.results) prepared[tensor] = item.prepared;
    if (item.compute.contract && !item.prepared) {
      const Body &b = item.compute.contract->b;
      bool packable = has(b, Core::load);
      for (const Value &v : b.values) packable &= v.op != Core::load || prepared[item.operands[v.access.buffer]];
      if (packable && !changes_with_sizes(item, b)) {
        const Microkernel micro = choose_microkernel(extent_of(item, axes_of_role(item, ContractRole::m)),
                                                     item.compute.contract->accumulator, target);
        all.push_back(pack(item, tensors, micro.nr, choose_factors(*item.compute.contract, target)));
      }
    }
    all.push_back(std::move(item));
  }
  return all;
}

std::vector<Item> split_columns(std::vector<Item> &items, std::vector<Tensor> &tensors, const Turns &turns) {
  const size_t given = tensors.size();
  std::vector<bool> changes(given);
  for (const Turns::Carried &carried : turns.carried) changes[carried.before] = true;
  for (const Turns::Sequence &sequence : turns.read) changes[sequence.element] = true;
  for (const Item &item : items)
    for (uint32_t tensor : item.results) changes[tensor] = true;
  std::vector<Item> columns;
  for (Item &item : items) {
    if (!item.compute.contract || item.compute.reduce[0].depends_on_symbol() ||
        extent_of(item, axes_of_role(item, ContractRole::n)).depends_on_symbol())
      continue;
    Contract &contract = *item.compute.contract;
    const auto stays = [&](const Body &body) {
      return std::ranges::all_of(body.values, [&](const Value &v) {
        return !reads_memory(v.op) ||
               (item.operands[v.access.buffer] < given && !changes[item.operands[v.access.buffer]]);
      });
    };
    const auto is_n = [&](uint32_t axis) { return item.compute.roles[axis] == ContractRole::n; };
    if (std::ranges::none_of(item.domain, is_n) && stays(contract.a)) {  // its rows may as well be the columns
      std::swap(contract.a, contract.b);
      for (ContractRole &role : item.compute.roles)
        if (role == ContractRole::m) role = ContractRole::n;
    }
    if (!stays(contract.b) || !has(contract.b, Core::load) || has_columns(item, contract.b, tensors)) continue;
    const Expr n = extent_of(item, axes_of_role(item, ContractRole::n));
    Item &made = columns.emplace_back(pack(item, tensors, static_cast<uint32_t>(n.integer()), {}));
    contract.panel = 0;
    const auto is_prepared = [&](uint32_t t) { return std::ranges::find(turns.prepared, t) != turns.prepared.end(); };
    made.prepared = tensors.back().prepared =
        std::ranges::all_of(made.operands, is_prepared) && !has_symbols(made.compute);
  }
  return columns;
}

}  // namespace kiln::kernel
