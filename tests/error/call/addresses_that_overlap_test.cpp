// run_data with an output over an input.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, AddressesThatOverlap) {
  compile_bound_sum();
  ASSERT_EQ(run({f32({1, 2}), f32({1, 2})}), host::Error());
  float both[2] = {};
  void *data[] = {both, both};
  EXPECT_REFUSED(host::take(kiln_call_run_data(call_.get(), data, 2, nullptr)), "INVALID_ARGUMENT",
                 "output 'y' overlaps input 'x'; a run writes it");
}

}  // namespace refused
