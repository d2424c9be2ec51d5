// An element type that Kiln does not have.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, DtypeThatDlpackAloneKnows) {
  compile_bound_sum();
  DLTensor x = *f32({2, 2});
  x.dtype = {kDLComplex, 64, 1};
  EXPECT_REFUSED(run({&x}), "TYPE_MISMATCH",
                 "input 'x': its tensor: Kiln has no dtype of DLPack code 5, 64 bits, 1 lanes");
}

}  // namespace refused
