// A descriptor with a negative size.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, NegativeSize) {
  compile_bound_sum();
  int64_t shape[] = {-2, 2};
  float values[4] = {};
  const DLTensor x{values, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, nullptr, 0};
  EXPECT_REFUSED(run({&x}), "INVALID_ARGUMENT", "input 'x': its tensor: dim 0 is -2");
}

}  // namespace refused
