// An input of another dtype.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, DtypeOfAnInput) {
  compile_bound_sum();
  DLTensor x = *f32({1, 2});
  x.dtype = {kDLInt, 32, 1};
  EXPECT_REFUSED(run({&x}), "TYPE_MISMATCH", "input 'x': dtype is i32, expected f32");
}

}  // namespace refused
