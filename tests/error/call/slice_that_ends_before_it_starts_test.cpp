// A slice from 4 to n of fewer elements, whose result would have a negative size.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, SliceThatEndsBeforeItStarts) {
  compile(R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n"]}}],
    "nodes": [{"name": "rest", "op": "slice", "inputs": ["x"], "attrs": {"dim": 0, "start": 4, "end": "n"}}],
    "outputs": [{"name": "rest", "value": "rest"}]})");
  EXPECT_REFUSED(run({f32({3})}), "TYPE_MISMATCH",
                 "node 'rest': [slice] expected start <= end, in dim 0; max(4, n) is 4, n is 3 (symbol 'n', bound by "
                 "input 'x' dim 0)");
}

}  // namespace refused
