// run_data with fewer addresses than slots.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, TooFewAddresses) {
  compile_bound_sum();
  ASSERT_EQ(run({f32({1, 2}), f32({1, 2})}), host::Error());
  float x[2] = {};
  void *data[] = {x};
  EXPECT_REFUSED(host::take(kiln_call_run_data(call_.get(), data, 1, nullptr)), "INVALID_ARGUMENT",
                 "run_data: 1 addresses given, expected 2: the inputs and outputs that are not bound");
}

}  // namespace refused
