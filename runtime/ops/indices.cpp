#include "runtime/ops/indices.h"

namespace kiln::ops {

using kernel::Core;
using Mode = kernel::Store::Mode;

Picked picked_index(kernel::BodyBuilder &body, int loaded, const Expr &size) {
  loaded = body.convert(loaded, DType::i64);
  return {Expr::value(static_cast<uint32_t>(loaded)), body.op(Core::in_range, loaded, body.index(size))};
}

Result<Picking> checked_picking(InferContext &c, size_t first) {
  const size_t rank = c.inputs[0].rank(), count = c.inputs.size() - first;
  if (count == 0) return c.fail("no indices; expected at least one");
  KILN_ASSIGN(const int64_t dim, c.axis(c.attr("dim").i64(), rank, "dim"));
  if (static_cast<size_t>(dim) + count > rank)
    return c.fail(count, " indices from dim ", dim, " on, but x is ", c.inputs[0].text());
  Shape shape = c.inputs[first].dims;
  for (const TensorType &index : c.inputs.subspan(first + 1)) {
    KILN_ASSIGN(shape, c.broadcast(shape, index.dims));
  }
  return Picking{static_cast<size_t>(dim), count, std::move(shape)};
}

Picking picking_of(const AttrMap &attrs, std::span<const TensorType> inputs, size_t first) {
  Picking picking{normal_axis(attrs.find("dim")->second.i64(), inputs[0].rank()), inputs.size() - first, {}};
  for (const TensorType &index : inputs.subspan(first)) picking.shape = broadcast_shape(picking.shape, index.dims);
  return picking;
}

Shape picked_shape(const Shape &x, const Picking &picking) {
  Shape shape(x.begin(), x.begin() + static_cast<ptrdiff_t>(picking.dim));
  shape.insert(shape.end(), picking.shape.begin(), picking.shape.end());
  shape.insert(shape.end(), x.begin() + static_cast<ptrdiff_t>(picking.dim + picking.count), x.end());
  return shape;
}

std::vector<Expr> broadcast_index(const Shape &dims, std::span<const Expr> axes) {
  std::vector<Expr> index;
  for (size_t d = 0; d < dims.size(); ++d)
    index.push_back(dims[d].is(1) ? Expr(0) : axes[axes.size() - dims.size() + d]);
  return index;
}

Result<PickedPlaces> picked_places(ReferenceContext &c, size_t first) {
  const RefTensor &x = *c.inputs[0];
  std::vector<TensorType> types;
  for (const RefTensor *input : c.inputs)
    types.push_back(make_type(input->dtype, {input->shape.begin(), input->shape.end()}));
  const Picking picking = picking_of(c.attrs, types, first);
  PickedPlaces picked;
  for (const Dim &dim : picked_shape(types[0].dims, picking)) picked.shape.push_back(dim.integer());
  const size_t end = picking.dim + picking.shape.size();
  const std::vector<int64_t> shape(picked.shape.begin() + static_cast<ptrdiff_t>(picking.dim),
                                   picked.shape.begin() + static_cast<ptrdiff_t>(end));
  const std::vector<int64_t> strides = dense_strides(x.shape), own = dense_strides(picked.shape);
  for (int64_t k = 0; k < count_of(picked.shape); ++k) {
    int64_t place = 0;
    for (size_t d = 0; d < picked.shape.size(); ++d)
      if (d < picking.dim || d >= end)
        place += k / own[d] % picked.shape[d] * strides[d < picking.dim ? d : d - picking.shape.size() + picking.count];
    for (size_t i = 0; i < picking.count; ++i) {
      const RefTensor &index = *c.inputs[first + i];
      const std::vector<int64_t> in_index = broadcast_strides(index.shape, shape);
      int64_t at = 0;
      for (size_t d = 0; d < shape.size(); ++d) at += k / own[picking.dim + d] % shape[d] * in_index[d];
      const int64_t value = index.i[static_cast<size_t>(at)], size = x.shape[picking.dim + i];
      if (value < 0 || value >= size) return out_of_range(value, size);
      place += value * strides[picking.dim + i];
    }
    picked.places.push_back(place);
  }
  return picked;
}

Status write_all(ReferenceContext &c, const Writing &how, const RefTensor &source, std::span<const int64_t> to,
                 std::span<const int64_t> from) {
  std::vector<int64_t> counts(static_cast<size_t>(c.inputs[0]->size()), how.include_self ? 1 : 0);
  return dispatch_wide(*c.inputs[0], [&](auto zero, auto wide) -> Status {
    using T = decltype(zero);
    using Wide = decltype(wide);
    const std::span<const T> x = elements<T>(*c.inputs[0]);
    std::vector<Wide> all(x.begin(), x.end());
    for (size_t k = 0; k < to.size(); ++k) {
      Wide &at = all[static_cast<size_t>(to[k])];
      const Wide value = elements<T>(source)[static_cast<size_t>(from[k])];
      const bool first = counts[static_cast<size_t>(to[k])]++ == 0;
      switch (first ? Mode::plain : how.mode) {
        case Mode::add:
          at = add(at, value);
          break;
        case Mode::mul:
          at = mul(at, value);
          break;
        case Mode::min:
          at = smaller(at, value);
          break;
        case Mode::max:
          at = larger(at, value);
          break;
        default:
          at = value;
      }
    }
    for (size_t k = 0; how.mean && k < all.size(); ++k)
      all[k] = all[k] / static_cast<Wide>(std::max<int64_t>(counts[k], 1));
    std::ranges::transform(all, elements<T>(c.results[0]).begin(), [](Wide value) { return static_cast<T>(value); });
    return {};
  });
}

std::vector<ValueId> columns_of(const DecomposeContext &c, Composer &g, ValueId indices) {
  std::vector<ValueId> columns;
  const int64_t k = c.type(indices).dims.back().integer();
  for (int64_t i = 0; i < k; ++i) {
    const ValueId column = g("slice", {indices}, {{"dim", -1}, {"start", Dim(i)}, {"end", Dim(i + 1)}});
    columns.push_back(g("squeeze", {column}, {{"dims", ints({-1})}}));
  }
  return columns;
}

Status infer_rows_of_indices(InferContext &c, size_t operand, Shape &shape) {
  const TensorType &x = c.inputs[0], &indices = c.inputs[operand];
  if (indices.rank() == 0 || !indices.dims.back().is_integer())
    return c.fail("indices is ", indices.text(), ", expected [..., k] with a known k");
  const int64_t k = indices.dims.back().integer();
  if (k < 1 || k > static_cast<int64_t>(x.rank()))
    return c.fail("indices is ", indices.text(), ", x is ", x.text(), "; expected 1 to ", x.rank(),
                  " indices in a row");
  shape.assign(indices.dims.begin(), indices.dims.end() - 1);
  shape.insert(shape.end(), x.dims.begin() + k, x.dims.end());
  return {};
}

Result<std::vector<int64_t>> places_of_rows(const RefTensor &x, const RefTensor &indices) {
  const int64_t k = indices.shape.back();
  const std::vector<int64_t> strides = dense_strides(x.shape);
  const int64_t row = count_of(std::span(x.shape).subspan(static_cast<size_t>(k)));
  std::vector<int64_t> places;
  for (int64_t n = 0; row > 0 && n < indices.size(); n += k) {
    int64_t place = 0;
    for (int64_t i = 0; i < k; ++i) {
      const int64_t value = indices.i[static_cast<size_t>(n + i)], size = x.shape[static_cast<size_t>(i)];
      if (value < 0 || value >= size) return out_of_range(value, size);
      place += value * strides[static_cast<size_t>(i)];
    }
    for (int64_t j = 0; j < row; ++j) places.push_back(place + j);
  }
  return places;
}

Status infer_scatter(InferContext &c) {
  const TensorType &x = c.inputs[0], &index = c.inputs[1], &source = c.inputs[2];
  KILN_TRY(require_rank(c, 1, x.rank()));
  KILN_TRY(require_rank(c, 2, x.rank()));
  KILN_ASSIGN(int64_t dim, c.axis(c.attr("dim").i64(), x.rank(), "dim"));
  for (size_t d = 0; d < x.rank(); ++d) {
    KILN_TRY(
        require_at_most(c, index.dims[d], source.dims[d], str_cat("dim ", d, " of index <= dim ", d, " of source")));
    if (d != static_cast<size_t>(dim))
      KILN_TRY(require_at_most(c, index.dims[d], x.dims[d], str_cat("dim ", d, " of index <= dim ", d, " of x")));
  }
  return infer_same(c);
}

Result<Moves> moves_along(const RefTensor &x, const RefTensor &index, const RefTensor &source, size_t dim) {
  std::vector<int64_t> to = dense_strides(x.shape);
  const int64_t step = to[dim];
  to[dim] = 0;
  for (int64_t i : index.i)
    if (i < 0 || i >= x.shape[dim]) return out_of_range(i, x.shape[dim]);
  Moves moves;
  walk<2>(index.shape, {to, dense_strides(source.shape)}, [&](auto at) {
    moves.to.push_back(at[0] + index.i[moves.to.size()] * step);
    moves.from.push_back(at[1]);
  });
  return moves;
}

}  // namespace kiln::ops
