// Taking an output that the host gave, one that was not computed, and an input.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, TakingWhatKilnDoesNotOwn) {
  compile_bound_sum();
  DLManagedTensorVersioned *taken = nullptr;
  EXPECT_REFUSED(host::take(kiln_call_take(call_.get(), 2, &taken)), "INVALID_ARGUMENT",
                 "output 'y' holds nothing that Kiln allocated: it was given, taken, or not computed");
  ASSERT_EQ(run({f32({1, 2}), f32({1, 2})}), host::Error());
  EXPECT_REFUSED(host::take(kiln_call_take(call_.get(), 2, &taken)), "INVALID_ARGUMENT",
                 "output 'y' holds nothing that Kiln allocated: it was given, taken, or not computed");
  EXPECT_REFUSED(host::take(kiln_call_take(call_.get(), 0, &taken)), "INVALID_ARGUMENT",
                 "slot 0 is not an output; outputs are 2 to 3, exclusive");
  EXPECT_EQ(taken, nullptr);
}

}  // namespace refused
