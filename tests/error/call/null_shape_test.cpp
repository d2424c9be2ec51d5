// A descriptor of rank 2 without a shape.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, NullShape) {
  compile_bound_sum();
  float values[4] = {};
  const DLTensor x{values, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, nullptr, nullptr, 0};
  EXPECT_REFUSED(run({&x}), "INVALID_ARGUMENT", "input 'x': its tensor: shape is NULL, ndim is 2");
}

}  // namespace refused
