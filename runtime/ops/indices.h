// What the ops share that read or write where operands hold indices.
#pragma once
#include "runtime/ops/composer.h"
#include "runtime/ops/family.h"

namespace kiln::ops {

// A value of the body as an index into a dim of `size`, and whether it is one: what an access is guarded by.
struct Picked {
  Expr index;
  int valid;
};
Picked picked_index(kernel::BodyBuilder &body, int loaded, const Expr &size);

// Several index tensors stand for as many dims of x, from `dim` on. They are broadcast together to `shape`, which takes
// the place of these dims.
struct Picking {
  size_t dim, count;
  Shape shape;
};
// Of the operands from number `first` on.
Result<Picking> checked_picking(InferContext &c, size_t first);
Picking picking_of(const AttrMap &attrs, std::span<const TensorType> inputs, size_t first);
Shape picked_shape(const Shape &x, const Picking &picking);
// The index of an element of a tensor of `dims` that is broadcast to where `axes` count.
std::vector<Expr> broadcast_index(const Shape &dims, std::span<const Expr> axes);

// Operand `operand`, [..., k], has a row of indices for the first k dims of x: the shape of what they pick.
Status infer_rows_of_indices(InferContext &c, size_t operand, Shape &shape);
std::vector<ValueId> columns_of(const DecomposeContext &c, Composer &g, ValueId indices);
Result<std::vector<int64_t>> places_of_rows(const RefTensor &x, const RefTensor &indices);

// For reference kernels: what is picked, and where each element of it lies in x.
struct PickedPlaces {
  std::vector<int64_t> shape, places;
};
Result<PickedPlaces> picked_places(ReferenceContext &c, size_t first);

// The result is operand 0 and then, for each k in order, element from[k] of `source` put to element to[k], or combined
// with it. Not `include_self`: the first that comes to an element takes its place. `mean`: what was added up is divided
// by how many there were.
struct Writing {
  kernel::Store::Mode mode;
  bool include_self = true, mean = false;
};
Status write_all(ReferenceContext &c, const Writing &how, const RefTensor &source, std::span<const int64_t> to,
                 std::span<const int64_t> from);

// Operands `index` and `source` of what writes at one index along the dim "dim": the places and elements of a point.
struct Moves {
  std::vector<int64_t> to, from;
};
Result<Moves> moves_along(const RefTensor &x, const RefTensor &index, const RefTensor &source, size_t dim);
Status infer_scatter(InferContext &c);

}  // namespace kiln::ops
