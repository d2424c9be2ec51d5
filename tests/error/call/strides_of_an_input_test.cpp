// An input whose rows lie apart: the graph declares them dense.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, StridesOfAnInput) {
  compile_bound_sum();
  int64_t shape[] = {2, 2}, strides[] = {3, 1};
  float values[6] = {};
  const DLTensor x{values, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, strides, 0};
  EXPECT_REFUSED(run({&x}), "TYPE_MISMATCH",
                 "input 'x': stride of dim 0 is 3, expected 2 elements; make the array contiguous");
}

}  // namespace refused
