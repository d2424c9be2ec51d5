// remainder of integers by 0.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, IntegerRemainderBy0) {
  compile(R"({"kiln": 1, "inputs": [{"name": "a", "type": {"dtype": "i64", "shape": [2]}},
                                    {"name": "b", "type": {"dtype": "i64", "shape": [2]}}],
    "nodes": [{"name": "q", "op": "remainder", "inputs": ["a", "b"]}],
    "outputs": [{"name": "q", "value": "q"}]})");
  EXPECT_REFUSED(run({i64({7, 7}), i64({1, 0})}), "OUT_OF_RANGE",
                 by_backend("an integer is divided by zero in node 'q' [remainder] (first in step 0, kernel 0)",
                            "node 'q' (remainder): integer division by zero: operand b holds 0"));
  EXPECT_EQ(run({i64({7, INT64_MIN}), i64({2, -1})}), host::Error()) << "the smallest by -1 wraps";
}

}  // namespace refused
