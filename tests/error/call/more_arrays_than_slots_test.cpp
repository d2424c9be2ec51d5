// More arrays than there are slots to fill.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, MoreArraysThanSlots) {
  compile_bound_sum();
  const DLTensor *x = f32({3, 2}), *y = f32({3, 2});
  EXPECT_REFUSED(run({x, y, y}), "INVALID_ARGUMENT",
                 "run: 3 arrays given, expected at most 2: the inputs and outputs that are not bound");
}

}  // namespace refused
