// A descriptor with a negative rank.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, NegativeRank) {
  compile_bound_sum();
  float values[4] = {};
  const DLTensor x{values, {kDLCPU, 0}, -1, {kDLFloat, 32, 1}, nullptr, nullptr, 0};
  EXPECT_REFUSED(run({&x}), "INVALID_ARGUMENT", "input 'x': its tensor: ndim is -1");
}

}  // namespace refused
