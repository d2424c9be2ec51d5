// A descriptor with a negative size.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, NegativeSize) {
  compile(R"({"kiln": 1,
    "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n", 2]}}],
    "parameters": [{"name": "w", "type": {"dtype": "f32", "shape": [2]}}],
    "nodes": [{"name": "y", "op": "add", "inputs": ["x", "w"]}],
    "outputs": [{"name": "y", "value": "y"}]})");
  ASSERT_EQ(bind("w", f32({2})), host::Error());
  int64_t shape[] = {-2, 2};
  float values[4] = {};
  const DLTensor x{values, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, nullptr, 0};
  EXPECT_REFUSED(run({&x}), "INVALID_ARGUMENT", "input 'x': its tensor: dim 0 is -2");
}

}  // namespace refused
