// An address that is no multiple of the element.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, MisalignedData) {
  compile_bound_sum();
  alignas(4) char bytes[64] = {};
  int64_t shape[] = {2, 2};
  const DLTensor x{bytes + 1, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, nullptr, 0};
  EXPECT_REFUSED(run({&x}), "INVALID_ARGUMENT", "input 'x': data is not aligned to its element of 4 bytes");
}

}  // namespace refused
