// An array in the memory of a device that this executable does not run on.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, ArrayOnAGpu) {
  compile(R"({"kiln": 1,
    "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n", 2]}}],
    "parameters": [{"name": "w", "type": {"dtype": "f32", "shape": [2]}}],
    "nodes": [{"name": "y", "op": "add", "inputs": ["x", "w"]}],
    "outputs": [{"name": "y", "value": "y"}]})");
  ASSERT_EQ(bind("w", f32({2})), host::Error());
  DLTensor x = *f32({2, 2});
  x.device = {kDLCUDA, 0};
  EXPECT_REFUSED(run({&x}), "NO_DEVICE", "input 'x': its tensor: its device type is 2; the CPU's is 1");
}

}  // namespace refused
