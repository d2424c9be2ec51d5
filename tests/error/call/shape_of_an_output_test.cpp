// An output of another shape.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, ShapeOfAnOutput) {
  compile_bound_sum();
  EXPECT_REFUSED(run({f32({3, 2}), f32({2, 2})}), "TYPE_MISMATCH",
                 "output 'y': dim 0 is 2, expected 3 (symbol 'n', bound by input 'x' dim 0)");
}

}  // namespace refused
