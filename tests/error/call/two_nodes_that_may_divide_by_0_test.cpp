// Of several nodes that may have done it, all are named.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, TwoNodesThatMayDivideBy0) {
  compile(R"({"kiln": 1, "inputs": [{"name": "a", "type": {"dtype": "i64", "shape": ["n"]}}],
    "nodes": [{"name": "q", "op": "div", "inputs": ["a", "a"]}, {"name": "r", "op": "remainder", "inputs": ["q", "a"]}],
    "outputs": [{"name": "r", "value": "r"}]})");
  EXPECT_REFUSED(
      run({i64({7, 0})}), "OUT_OF_RANGE",
      by_backend(
          "an integer is divided by zero in one of node 'q' [div], node 'r' [remainder] (first in step 0, kernel 0)",
          "node 'q' (div): integer division by zero: operand b holds 0"));
}

}  // namespace refused
