// An array in the memory of a device that this executable does not run on.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, ArrayOnAGpu) {
  compile_bound_sum();
  DLTensor x = *f32({2, 2});
  x.device = {kDLCUDA, 0};
  EXPECT_REFUSED(run({&x}), "NO_DEVICE", "input 'x': its tensor: its device type is 2; the CPU's is 1");
}

}  // namespace refused
