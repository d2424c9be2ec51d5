// What a graph's results should be, and how far a correct backend may be from that.
//
// The values are those of the reference kernels on the graph as given, in double. How far f32 may stray depends on the
// graph: a rounding error is harmless here, is blown up by a cancellation there, and decides a comparison elsewhere.
// That is measured by Monte Carlo arithmetic (Parker; CESTAC): the decomposed graph runs several times with values of
// its types between its ops, and each op that rounds has a random relative error, a part of the op's tolerance (in its
// samples), put on its results, and where it adds up, or converts what was computed to a smaller float, on each of its
// operands. Leaves, and ops that only choose or move values, get none: what is exact must be exact. The first run has
// no errors but f32's own, and the second rounds coarsely, so that what is near a tie or a whole number meets it; the
// others come in pairs of opposite errors, so that one of a pair falls on either side. The tolerance of an element is a
// multiple of the largest distance of a run from the reference; it is infinite where a run is not of the same kind
// (NaN, an infinity), or where it is another integer or boolean: there the graph itself does not say what is right.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/ops/op.h"

namespace kiln::testing {

struct Expected {
  // Outputs, then the inputs that copy_ writes, in order.
  std::vector<RefTensor> values;
  std::vector<std::vector<double>> tolerance;  // of each element; infinity: anything goes
  int64_t elements = 0, undetermined = 0;
};

// Whether some result of it is rounded, or may be.
bool rounds(const Op &op);

class Oracle {
 public:
  static Result<Oracle> of(GraphPtr graph);
  Result<Expected> expect(const std::vector<TensorData> &arguments) const;

 private:
  Oracle(GraphPtr graph, GraphPtr decomposed) : graph_(std::move(graph)), decomposed_(std::move(decomposed)) {}
  GraphPtr graph_, decomposed_;
};

// Where `got` (in the order of Expected::values) parts from what is expected, or "".
std::string difference(const std::vector<TensorData> &got, const Expected &expected);

}  // namespace kiln::testing
