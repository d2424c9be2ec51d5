// No error: an array of no elements needs no address, given or bound.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, NullDataOfNoElements) {
  compile(R"({"kiln": 1,
    "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n"]}}],
    "parameters": [{"name": "w", "type": {"dtype": "f32", "shape": ["n"]}}],
    "nodes": [{"name": "y", "op": "add", "inputs": ["x", "w"]}],
    "outputs": [{"name": "y", "value": "y"}]})");
  int64_t shape[] = {0};
  const DLTensor none{nullptr, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, nullptr, 0};
  EXPECT_EQ(bind("w", &none), host::Error());
  EXPECT_EQ(run({&none}), host::Error());
  EXPECT_EQ(run({&none, &none}), host::Error());
  EXPECT_EQ(bind("x", &none), host::Error());
  EXPECT_EQ(run({}), host::Error());
}

}  // namespace refused
