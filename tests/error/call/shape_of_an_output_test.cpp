// An output of another shape.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, ShapeOfAnOutput) {
  compile(R"({"kiln": 1,
    "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n", 2]}}],
    "parameters": [{"name": "w", "type": {"dtype": "f32", "shape": [2]}}],
    "nodes": [{"name": "y", "op": "add", "inputs": ["x", "w"]}],
    "outputs": [{"name": "y", "value": "y"}]})");
  ASSERT_EQ(bind("w", f32({2})), host::Error());
  EXPECT_REFUSED(run({f32({3, 2}), f32({2, 2})}), "TYPE_MISMATCH",
                 "output 'y': dim 0 is 2, expected 3 (symbol 'n', bound by input 'x' dim 0)");
}

}  // namespace refused
