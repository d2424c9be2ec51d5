// NULL where an input stands: only outputs may be left to Kiln.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, NullForAnInput) {
  compile_bound_sum();
  EXPECT_REFUSED(run({nullptr}), "INVALID_ARGUMENT", "run: input 'x' is neither bound nor given");
}

}  // namespace refused
