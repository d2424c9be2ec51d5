// A slice from n - 2 on of fewer than two elements.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, SliceThatStartsBelow0) {
  compile(R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n", 3]}}],
    "nodes": [{"name": "tail", "op": "slice", "inputs": ["x"], "attrs": {"dim": 0, "start": "n - 2", "end": "n"}}],
    "outputs": [{"name": "tail", "value": "tail"}]})");
  EXPECT_REFUSED(run({f32({1, 3})}), "TYPE_MISMATCH",
                 "node 'tail': [slice] expected 0 <= start, in dim 0; max(0, n - 2) is 0, n - 2 is -1 (symbol 'n', "
                 "bound by input 'x' dim 0)");
}

}  // namespace refused
