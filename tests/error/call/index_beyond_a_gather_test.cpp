// An index that the gathered dimension does not have.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, IndexBeyondAGather) {
  compile(R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": [3]}},
                                    {"name": "index", "type": {"dtype": "i64", "shape": [2]}}],
    "nodes": [{"name": "picked", "op": "gather", "inputs": ["x", "index"], "attrs": {"dim": 0}}],
    "outputs": [{"name": "picked", "value": "picked"}]})");
  EXPECT_REFUSED(run({f32({3}), i64({0, 3})}), "OUT_OF_RANGE",
                 by_backend("an index is out of range in node 'picked' [gather] (first in step 0, kernel 0)",
                            "node 'picked' (gather): index 3 is out of range: expected 0 <= index < 3"));
}

}  // namespace refused
