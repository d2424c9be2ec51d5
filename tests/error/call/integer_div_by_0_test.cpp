// div of integers by 0.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, IntegerDivBy0) { expect_integer_division_by_0("div"); }

}  // namespace refused
