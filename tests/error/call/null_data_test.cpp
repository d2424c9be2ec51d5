// A descriptor of elements without their address: as an input, as an output, and bound.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, NullData) {
  compile_bound_sum();
  int64_t shape[] = {2, 2};
  const DLTensor none{nullptr, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, nullptr, 0};
  EXPECT_REFUSED(run({&none}), "INVALID_ARGUMENT", "input 'x': its tensor: data is NULL");
  EXPECT_REFUSED(run({f32({2, 2}), &none}), "INVALID_ARGUMENT", "output 'y': its tensor: data is NULL");
  EXPECT_REFUSED(bind("w", &none), "INVALID_ARGUMENT", "tensor: data is NULL");
}

}  // namespace refused
