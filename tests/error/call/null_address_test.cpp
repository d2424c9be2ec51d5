// run_data with NULL for an input.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, NullAddress) {
  compile_bound_sum();
  ASSERT_EQ(run({f32({1, 2}), f32({1, 2})}), host::Error());
  float y[2] = {};
  void *data[] = {nullptr, y};
  EXPECT_REFUSED(host::take(kiln_call_run_data(call_.get(), data, 2, nullptr)), "INVALID_ARGUMENT",
                 "input 'x': data is null");
}

}  // namespace refused
