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

// ---- reference kernels: where element k of what is picked lies in x, or that an index is out of range
class RowPlaces {
 public:
  RowPlaces(const RefTensor &x, const RefTensor &indices);
  Result<int64_t> at(int64_t k) const;

 private:
  std::vector<int64_t> shape_, strides_;
  int64_t width_, row_;  // of indices, and of what each picks
  ReadElements<int64_t> indices_;
};
class PickedPlaces {
 public:
  PickedPlaces(const ReferenceContext &c, size_t first);
  const std::vector<int64_t> &shape() const { return shape_; }
  Result<int64_t> at(int64_t k) const;

 private:
  struct Index {
    ReadElements<int64_t> elements;
    std::vector<int64_t> strides;  // at the dims that the indices are broadcast to
    int64_t size, step;            // of the dim of x
  };
  std::vector<int64_t> shape_, own_, strides_;  // strides of x, 0 at the dims of indices
  size_t dim_, picked_;                         // these dims
  std::vector<Index> indices_;
};

// The result is operand 0 and then, for each k of `count` in order, an element of `source` put to one of it, or
// combined with it. Not `include_self`: the first that comes to an element takes its place. `mean`: what was added up
// is divided by how many there were.
struct Writing {
  kernel::Store::Mode mode;
  bool include_self = true, mean = false;
};
struct Move {
  int64_t to, from;
};
Status write_all(const ReferenceContext &c, const Writing &how, const RefTensor &source, int64_t count,
                 const std::function<Result<Move>(int64_t k)> &move);
// Operand 1 has an index along the dim "dim" for each element of operand 2, or for those of its first elements along
// each dim. A vector: one for each along that dim.
Status write_along(const ReferenceContext &c, const Writing &how);
Status infer_scatter(InferContext &c);

}  // namespace kiln::ops
