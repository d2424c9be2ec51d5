// Asking for the shape of what has not run.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, DimsBeforeARun) {
  compile_bound_sum();
  uint64_t rank = 9;
  EXPECT_REFUSED(host::take(kiln_call_dims(call_.get(), 0, nullptr, 0, &rank)), "INVALID_ARGUMENT",
                 "dims of input 'x': there was no run yet");
  EXPECT_EQ(rank, 9u);
}

}  // namespace refused
