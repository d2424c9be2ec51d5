// Strides that lead beyond the last of fewer elements.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, AsStridedBeyondTheLast) {
  compile(R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n"]}}],
    "nodes": [{"name": "rows", "op": "as_strided", "inputs": ["x"], "attrs": {"shape": [2, 3], "strides": [3, 1]}}],
    "outputs": [{"name": "rows", "value": "rows"}]})");
  EXPECT_REFUSED(run({f32({5})}), "TYPE_MISMATCH",
                 "node 'rows': [as_strided] expected elements up to the last by offset, shape and strides <= x's; "
                 "max(6, n) is 6, n is "
                 "5 (symbol 'n', bound by input 'x' dim 0)");
}

}  // namespace refused
