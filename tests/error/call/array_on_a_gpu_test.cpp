// An array in the memory of a device that this executable does not run on.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, ArrayOnAGpu) {
  compile_bound_sum();
  DLTensor x = *f32({2, 2}), w = *f32({2});
  x.device = {kDLCUDA, 0};
  w.device = {kDLMetal, 1};
  EXPECT_REFUSED(run({&x}), "NO_DEVICE",
                 std::string("input 'x' is on cuda:0, expected the host's memory, for backend ") + GetParam());
  EXPECT_REFUSED(bind("w", &w), "NO_DEVICE",
                 std::string("parameter 'w' is on metal:1, expected the host's memory, for backend ") + GetParam());
  EXPECT_EQ(run({f32({2, 2})}), host::Error());
}

}  // namespace refused
