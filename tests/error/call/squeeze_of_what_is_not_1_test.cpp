// A dimension to be removed is not 1.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, SqueezeOfWhatIsNot1) {
  compile(R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n", 3]}}],
    "nodes": [{"name": "y", "op": "squeeze", "inputs": ["x"], "attrs": {"dims": [0]}}],
    "outputs": [{"name": "y", "value": "y"}]})");
  EXPECT_REFUSED(run({f32({2, 3})}), "TYPE_MISMATCH",
                 "node 'y': [squeeze] x dim 0, which dims names, and 1 must be equal; n is 2 (symbol 'n', bound by "
                 "input 'x' dim 0)");
}

}  // namespace refused
