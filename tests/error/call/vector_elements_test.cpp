// Elements of several lanes.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, VectorElements) {
  compile(R"({"kiln": 1,
    "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n", 2]}}],
    "parameters": [{"name": "w", "type": {"dtype": "f32", "shape": [2]}}],
    "nodes": [{"name": "y", "op": "add", "inputs": ["x", "w"]}],
    "outputs": [{"name": "y", "value": "y"}]})");
  ASSERT_EQ(bind("w", f32({2})), host::Error());
  DLTensor x = *f32({2, 2});
  x.dtype.lanes = 4;
  EXPECT_REFUSED(run({&x}), "TYPE_MISMATCH",
                 "input 'x': its tensor: Kiln has no dtype of DLPack code 2, 32 bits, 4 lanes");
}

}  // namespace refused
