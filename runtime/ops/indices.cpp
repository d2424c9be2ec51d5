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

PickedPlaces::PickedPlaces(const ReferenceContext &c, size_t first) {
  const RefTensor &x = *c.inputs[0];
  std::vector<TensorType> types;
  for (const RefTensor *input : c.inputs)
    types.push_back(make_type(input->dtype, {input->shape.begin(), input->shape.end()}));
  const Picking picking = picking_of(c.attrs, types, first);
  dim_ = picking.dim;
  picked_ = picking.shape.size();
  for (const Dim &dim : picked_shape(types[0].dims, picking)) shape_.push_back(dim.integer());
  own_ = dense_strides(shape_);
  const std::vector<int64_t> strides = dense_strides(x.shape);
  strides_ = strides;
  strides_.erase(strides_.begin() + static_cast<ptrdiff_t>(dim_),
                 strides_.begin() + static_cast<ptrdiff_t>(dim_ + picking.count));
  strides_.insert(strides_.begin() + static_cast<ptrdiff_t>(dim_), picked_, 0);
  for (size_t i = 0; i < picking.count; ++i) {
    const RefTensor &index = *c.inputs[first + i];
    indices_.push_back({ReadElements<int64_t>(index),
                        broadcast_strides(index.shape, std::span(shape_).subspan(dim_, picked_)), x.shape[dim_ + i],
                        strides[dim_ + i]});
  }
}

Result<int64_t> PickedPlaces::at(int64_t k) const {
  int64_t place = 0;
  for (size_t d = 0; d < shape_.size(); ++d) place += k / own_[d] % shape_[d] * strides_[d];
  for (const Index &index : indices_) {
    int64_t at = 0;
    for (size_t d = 0; d < picked_; ++d) at += k / own_[dim_ + d] % shape_[dim_ + d] * index.strides[d];
    const int64_t value = index.elements[static_cast<size_t>(at)];
    if (value < 0 || value >= index.size) return out_of_range(value, index.size);
    place += value * index.step;
  }
  return place;
}

RowPlaces::RowPlaces(const RefTensor &x, const RefTensor &indices)
    : shape_(x.shape),
      strides_(dense_strides(x.shape)),
      width_(indices.shape.back()),
      row_(count_of(std::span(x.shape).subspan(static_cast<size_t>(width_)))),
      indices_(indices) {}

Result<int64_t> RowPlaces::at(int64_t k) const {
  int64_t place = k % row_;
  for (int64_t i = 0; i < width_; ++i) {
    const int64_t value = indices_[static_cast<size_t>(k / row_ * width_ + i)], size = shape_[static_cast<size_t>(i)];
    if (value < 0 || value >= size) return out_of_range(value, size);
    place += value * strides_[static_cast<size_t>(i)];
  }
  return place;
}

Status write_all(const ReferenceContext &c, const Writing &how, const RefTensor &source, int64_t count,
                 const std::function<Result<Move>(int64_t k)> &move) {
  const RefTensor &x = *c.inputs[0];
  std::vector<int64_t> counts(static_cast<size_t>(x.size()), how.include_self ? 1 : 0);
  return dispatch_wide(x, [&](auto zero, auto wide) -> Status {
    using T = decltype(zero);
    using Wide = decltype(wide);
    const ReadElements<T> in(x), moved(source);
    std::vector<Wide> all(counts.size());
    for (size_t k = 0; k < all.size(); ++k) all[k] = in[k];
    for (int64_t k = 0; k < count; ++k) {
      KILN_ASSIGN(const Move to_make, move(k));
      const auto to = static_cast<size_t>(to_make.to);
      Wide &at = all[to];
      const Wide value = moved[static_cast<size_t>(to_make.from)];
      const bool first = counts[to]++ == 0;
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
    give_all(c.results[0], all);
    return {};
  });
}

Status write_along(const ReferenceContext &c, const Writing &how) {
  const RefTensor &x = *c.inputs[0], &index = *c.inputs[1], &source = *c.inputs[2];
  const size_t dim = dim_of(c, x.shape.size());
  const bool is_vector = index.shape.size() != source.shape.size();
  const std::vector<int64_t> &shape = is_vector ? source.shape : index.shape;
  const std::vector<int64_t> own = dense_strides(shape), from = dense_strides(source.shape);
  std::vector<int64_t> to = dense_strides(x.shape);
  const int64_t step = to[dim];
  to[dim] = 0;
  const ReadElements<int64_t> indices(index);
  return write_all(c, how, source, count_of(shape), [&](int64_t k) -> Result<Move> {
    Move move{0, 0};
    for (size_t d = 0; d < shape.size(); ++d) {
      const int64_t at = k / own[d] % shape[d];
      move.to += at * to[d];
      move.from += at * from[d];
    }
    const int64_t i = indices[static_cast<size_t>(is_vector ? k / own[dim] % shape[dim] : k)];
    if (i < 0 || i >= x.shape[dim]) return out_of_range(i, x.shape[dim]);
    move.to += i * step;
    return move;
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

}  // namespace kiln::ops
