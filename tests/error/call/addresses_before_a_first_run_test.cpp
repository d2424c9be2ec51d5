// run_data before any run has told the shapes.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, AddressesBeforeAFirstRun) {
  compile_bound_sum();
  float x[2] = {}, y[2] = {};
  void *data[] = {x, y};
  EXPECT_REFUSED(host::take(kiln_call_run_data(call_.get(), data, 2, nullptr)), "INVALID_ARGUMENT",
                 "run_data: there was no run since the call was made or a parameter bound");
}

}  // namespace refused
