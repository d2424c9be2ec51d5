// Elements of several lanes.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, VectorElements) {
  compile_bound_sum();
  DLTensor x = *f32({2, 2});
  x.dtype.lanes = 4;
  EXPECT_REFUSED(run({&x}), "TYPE_MISMATCH",
                 "input 'x': its tensor: Kiln has no dtype of DLPack code 2, 32 bits, 4 lanes");
}

}  // namespace refused
