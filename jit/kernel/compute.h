// A compute says what one tensor is, or several of the same dimensions: an SSA body over the axes of the result (and
// reduce axes), whose loads address other tensors by one index expression per dimension. It is what an op lowers to,
// and what fusion takes: inlining a producer is substituting its axes. The style of description is that of tensor
// expressions (Halide, TVM).
#pragma once
#include <algorithm>
#include <span>
#include <vector>

#include "jit/kernel/kernel.h"

namespace kiln::kernel {

// What an axis of a contraction's result counts: separate products, rows of a, or columns of b.
enum class ContractRole : uint8_t { batch, m, n };

// Of a compute that begins as a map and is then written to. Its points are those of the result axes that stand at their
// own place in `index`, which no two points share, and of the reduce axes, in row-major order. What the body's first
// yield is at a point goes to the element at `index` (one expression a dimension, over axes and, as Expr::value, the
// body's yields), if yield `valid` holds.
struct Scatter {
  Body begin;  // over the result axes: what the elements are before
  std::vector<Expr> index;
  int32_t valid = -1;
  Store::Mode mode = Store::Mode::plain;
};

// Axis ids: result dimension d is axis d; reduce axes follow. Access::buffer is the number of an operand of the
// compute.
struct Compute {
  struct Output {
    DType dtype = DType::f32;
    int32_t value = 0;  // which yield (map, sort) or carrier (reduction, scan); a contraction has one output
  };
  std::vector<Output> results{{}};
  Shape dims;                // of each result
  std::vector<Expr> reduce;  // extents of the reduce axes
  int32_t scan = -1;         // a scan, a sort: the result axis that it goes along
  Body body;                 // map, sort: what results name. Reduction, scan: the carriers' inputs. Contraction: unused
  Carriers carriers;
  // A sort: the elements along the one reduce axis, ordered by the body's first yield (kernel::Sort), of which the
  // result has the first dims[scan], at most all. The body does not read the axis `scan`.
  enum class Order : uint8_t { none, ascending, descending } order = Order::none;
  std::optional<Contract> contract;  // bodies a and b over result axes and one reduce axis (k)
  // Contraction: one for each result axis, in any order. Axes of one role are flattened, in their order, into one
  // index. `a` reads batch, m and the reduce axis alone; `b` batch, n and the reduce axis.
  std::vector<ContractRole> roles;
  std::optional<Scatter> scatter;
  bool view = false;  // body is one load: costs nothing to inline
  // A map of one result whose points are many of its elements: along these axes, of known extents, which the body does
  // not read, in row-major order one for each yield. What it reads lies in memory, side by side along the last axis.
  std::vector<uint32_t> unrolled;

  bool is_map() const { return !contract && carriers.types.empty() && !scatter && order == Order::none; }
  // Whether result axis d is one of a scatter's points.
  bool keeps(size_t d) const { return scatter->index[d] == Expr::axis(static_cast<uint32_t>(d), dims[d]); }
  bool unrolls(uint32_t d) const { return std::ranges::find(unrolled, d) != unrolled.end(); }
};

// Builds a body value by value. Types are inferred and asserted: a mistake here is a bug in an op's lowering.
class BodyBuilder {
 public:
  explicit BodyBuilder(Body &body) : body_(body) {}
  int constant(DType type, double value);  // exact integers for integer types
  int constant_bits(DType type, uint64_t immediate);
  int index(Expr expr);  // i64
  int load(uint16_t operand, DType type, std::vector<Expr> index, int valid = -1, uint64_t fill = 0);
  int convert(int value, DType to);
  int carrier(DType type, uint32_t which);
  // `index`: of the first element of a row, which goes along the last dimension; flags: of SearchFlags.
  int search(int value, uint16_t operand, std::vector<Expr> index, Expr count, uint64_t flags, int valid = -1,
             uint64_t fill = 0);
  int op(Core core, int a, int b = -1, int c = -1);  // type of the result: from the operands
  void yield(int value) { body_.yields.push_back(value); }
  DType type(int value) const { return body_.values[static_cast<size_t>(value)].type; }

 private:
  int push(Value value);
  Body &body_;
};

uint64_t immediate_of(DType type, double value);  // Core::constant's encoding
Carriers carriers_of(Core combine, DType type);   // add, mul, min, max with their identities
// (value, i64 index) of the largest or smallest: of equals the one with the first index; NaN wins.
Carriers argmax_carriers(DType value_type, bool largest = true);

}  // namespace kiln::kernel
