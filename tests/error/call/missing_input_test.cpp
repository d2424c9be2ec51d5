// An input that is neither bound nor given.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, MissingInput) {
  compile_bound_sum();
  EXPECT_REFUSED(run({}), "INVALID_ARGUMENT", "run: input 'x' is neither bound nor given");
}

}  // namespace refused
