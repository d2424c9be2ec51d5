// An input of another shape.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, ShapeOfAnInput) {
  compile_bound_sum();
  EXPECT_REFUSED(run({f32({3, 4})}), "TYPE_MISMATCH", "input 'x': dim 1 is 4, expected 2");
}

}  // namespace refused
