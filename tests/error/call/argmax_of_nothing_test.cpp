// The largest of no element.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, ArgmaxOfNothing) {
  compile(R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n"]}}],
    "nodes": [{"name": "y", "op": "argmax", "inputs": ["x"]}],
    "outputs": [{"name": "y", "value": "y"}]})");
  EXPECT_REFUSED(run({f32({0})}), "TYPE_MISMATCH",
                 "node 'y': [argmax] expected at least one element along dim 0; max(1, n) is 1, n is 0 (symbol 'n', "
                 "bound by input 'x' dim 0)");
}

}  // namespace refused
