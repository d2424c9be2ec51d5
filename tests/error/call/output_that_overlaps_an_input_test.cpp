// An output that lies over an input, by a part.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, OutputThatOverlapsAnInput) {
  compile_bound_sum();
  float values[8] = {};
  int64_t shape[] = {2, 2};
  const DLTensor x{values, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, nullptr, 0};
  const DLTensor y{values + 2, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, nullptr, 0};
  EXPECT_REFUSED(run({&x, &y}), "INVALID_ARGUMENT", "output 'y' overlaps input 'x'; a run writes it");
}

}  // namespace refused
