// A parameter that was never bound.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, UnboundParameter) {
  compile_sum();
  EXPECT_REFUSED(run({f32({3, 2})}), "INVALID_ARGUMENT", "run: parameter 'w' is not bound");
}

}  // namespace refused
