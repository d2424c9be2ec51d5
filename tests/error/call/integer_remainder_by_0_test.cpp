// remainder of integers by 0.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, IntegerRemainderBy0) { expect_integer_division_by_0("remainder"); }

}  // namespace refused
