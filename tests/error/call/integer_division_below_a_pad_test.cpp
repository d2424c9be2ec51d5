// Elements that a pad makes up divide nothing, though one kernel computes both; those that it copies do.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, IntegerDivisionBelowAPad) {
  compile(R"({"kiln": 1, "inputs": [{"name": "a", "type": {"dtype": "i64", "shape": ["n"]}},
                                   {"name": "b", "type": {"dtype": "i64", "shape": ["n"]}}],
    "nodes": [{"name": "q", "op": "div", "inputs": ["a", "b"]},
              {"name": "y", "op": "pad", "inputs": ["q"], "attrs": {"low": [3], "high": [40]}}],
    "outputs": [{"name": "y", "value": "y"}]})");
  EXPECT_EQ(run({i64({6, 8}), i64({2, 4})}), host::Error());
  EXPECT_REFUSED(run({i64({6, 8}), i64({2, 0})}), "OUT_OF_RANGE",
                 by_backend("an integer is divided by zero in node 'q' [div] (first in step 0, kernel 0)",
                            "node 'q' (div): integer division by zero: operand b holds 0"));
}

}  // namespace refused
