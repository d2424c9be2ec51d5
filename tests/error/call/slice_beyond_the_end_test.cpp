// A slice to a fixed end of fewer elements.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, SliceBeyondTheEnd) {
  compile(R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n"]}}],
    "nodes": [{"name": "head", "op": "slice", "inputs": ["x"], "attrs": {"dim": 0, "end": 4}}],
    "outputs": [{"name": "head", "value": "head"}]})");
  EXPECT_REFUSED(run({f32({3})}), "TYPE_MISMATCH",
                 "node 'head': [slice] expected end <= size, in dim 0; max(4, n) is 4, n is 3 (symbol 'n', bound by "
                 "input 'x' dim 0)");
}

}  // namespace refused
