// A slice that goes down from beyond the end of fewer elements.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, SliceBackwardsBeyondTheEnd) {
  compile(R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n"]}}],
    "nodes": [{"name": "tail", "op": "slice", "inputs": ["x"], "attrs": {"dim": 0, "start": 3, "end": "-n - 1", "step": -1}}],
    "outputs": [{"name": "tail", "value": "tail"}]})");
  EXPECT_REFUSED(
      run({f32({3})}), "TYPE_MISMATCH",
      "node 'tail': [slice] expected start <= size - 1, in dim 0; max(3, n - 1) is 3, n - 1 is 2 (symbol 'n', "
      "bound by input 'x' dim 0)");
}

}  // namespace refused
