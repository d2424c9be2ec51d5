// A reshape whose unknown dimension has no whole size.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, ReshapeThatDoesNotDivide) {
  compile(R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n", 3]}}],
    "nodes": [{"name": "y", "op": "reshape", "inputs": ["x"], "attrs": {"shape": [-1, "2*n"]}}],
    "outputs": [{"name": "y", "value": "y"}]})");
  EXPECT_REFUSED(run({f32({2, 3})}), "TYPE_MISMATCH",
                 "node 'y': [reshape] the number of elements of f32[n, 3] and of shape [1, 2*n] must be equal; 2*n is "
                 "4, 3*n is 6 (symbol 'n', bound by input 'x' dim 0)");
}

}  // namespace refused
