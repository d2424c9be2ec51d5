// A slot by a name and by a number that the signature does not have.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, SlotThatIsNotThere) {
  compile_sum();
  uint32_t slot = 77;
  EXPECT_REFUSED(host::take(kiln_call_slot(call_.get(), "v", 1, &slot)), "UNKNOWN_NAME",
                 "no slot 'v'; the signature has input 'x', parameter 'w', output 'y'");
  EXPECT_EQ(slot, 77u);
  EXPECT_REFUSED(host::take(kiln_call_bind(call_.get(), 3, f32({2}))), "INVALID_ARGUMENT",
                 "there is no slot 3; the signature has 3");
}

}  // namespace refused
