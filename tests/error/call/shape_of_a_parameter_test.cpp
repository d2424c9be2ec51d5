// A parameter of another shape: told when shapes meet, at the run.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, ShapeOfAParameter) {
  compile_sum();
  ASSERT_EQ(bind("w", f32({3})), host::Error());
  EXPECT_REFUSED(run({f32({3, 2})}), "TYPE_MISMATCH", "parameter 'w': dim 0 is 3, expected 2");
}

}  // namespace refused
