// A parameter of another dtype: told when it is bound.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, DtypeOfAParameter) {
  compile_sum();
  EXPECT_REFUSED(bind("w", i64({1, 2})), "TYPE_MISMATCH", "parameter 'w': dtype is i64, expected f32");
}

}  // namespace refused
