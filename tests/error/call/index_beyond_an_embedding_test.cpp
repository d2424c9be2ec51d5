// An index that the table does not have: its size, the largest, below 0.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, IndexBeyondAnEmbedding) {
  compile(R"({"kiln": 1, "inputs": [{"name": "tokens", "type": {"dtype": "i64", "shape": ["n"]}}],
    "parameters": [{"name": "table", "type": {"dtype": "f32", "shape": [4, 2]}}],
    "nodes": [{"name": "rows", "op": "embedding", "inputs": ["table", "tokens"]}],
    "outputs": [{"name": "rows", "value": "rows"}]})");
  ASSERT_EQ(bind("table", f32({4, 2})), host::Error());
  for (int64_t index : {int64_t{4}, INT64_MAX, int64_t{-1}, INT64_MIN}) {
    const std::string on_reference =
        "node 'rows' (embedding): index " + std::to_string(index) + " is out of range: expected 0 <= index < 4";
    EXPECT_REFUSED(
        run({i64({0, index, 3})}), "OUT_OF_RANGE",
        by_backend("an index is out of range in node 'rows' [embedding] (first in step 0, kernel 0)", on_reference));
  }
  EXPECT_EQ(run({i64({0, 1, 3})}), host::Error()) << "and the call goes on";
}

}  // namespace refused
