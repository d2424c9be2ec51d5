// An address that is no multiple of the element.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, MisalignedData) {
  compile(R"({"kiln": 1,
    "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n", 2]}}],
    "parameters": [{"name": "w", "type": {"dtype": "f32", "shape": [2]}}],
    "nodes": [{"name": "y", "op": "add", "inputs": ["x", "w"]}],
    "outputs": [{"name": "y", "value": "y"}]})");
  ASSERT_EQ(bind("w", f32({2})), host::Error());
  alignas(4) char bytes[64] = {};
  int64_t shape[] = {2, 2};
  const DLTensor x{bytes + 1, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, nullptr, 0};
  EXPECT_REFUSED(run({&x}), "INVALID_ARGUMENT", "input 'x': data is not aligned to its element of 4 bytes");
}

}  // namespace refused
