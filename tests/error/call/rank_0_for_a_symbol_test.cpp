// A scalar where a dimension binds a symbol.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, Rank0ForASymbol) {
  compile_bound_sum();
  EXPECT_REFUSED(run({f32({})}), "TYPE_MISMATCH", "input 'x': rank is 0, expected 2");
}

}  // namespace refused
