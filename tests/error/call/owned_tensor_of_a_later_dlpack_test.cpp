// An owned tensor of another major version of DLPack; it stays the host's.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, OwnedTensorOfALaterDlpack) {
  compile_sum();
  static int deleted;
  deleted = 0;
  DLManagedTensorVersioned managed{};
  managed.version = {DLPACK_MAJOR_VERSION + 1, 0};
  managed.dl_tensor = *f32({2});
  managed.deleter = [](DLManagedTensorVersioned *) { deleted++; };
  EXPECT_REFUSED(host::take(kiln_call_bind_owned(call_.get(), 1, &managed)), "INCOMPATIBLE",
                 "tensor is of DLPack version 2, not 1");
  EXPECT_EQ(deleted, 0);
}

}  // namespace refused
