// More arrays than there are slots to fill.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, MoreArraysThanSlots) {
  compile(R"({"kiln": 1,
    "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n", 2]}}],
    "parameters": [{"name": "w", "type": {"dtype": "f32", "shape": [2]}}],
    "nodes": [{"name": "y", "op": "add", "inputs": ["x", "w"]}],
    "outputs": [{"name": "y", "value": "y"}]})");
  ASSERT_EQ(bind("w", f32({2})), host::Error());
  const DLTensor *x = f32({3, 2}), *y = f32({3, 2});
  EXPECT_REFUSED(run({x, y, y}), "INVALID_ARGUMENT",
                 "run: 3 arrays given, expected at most 2: the inputs and outputs that are not bound");
}

}  // namespace refused
