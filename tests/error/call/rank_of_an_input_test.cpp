// An input of another rank.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, RankOfAnInput) {
  compile_bound_sum();
  EXPECT_REFUSED(run({f32({6})}), "TYPE_MISMATCH", "input 'x': rank is 1, expected 2");
}

}  // namespace refused
