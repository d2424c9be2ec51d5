// A scalar where a dimension binds a symbol.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, Rank0ForASymbol) {
  compile(R"({"kiln": 1,
    "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n", 2]}}],
    "parameters": [{"name": "w", "type": {"dtype": "f32", "shape": [2]}}],
    "nodes": [{"name": "y", "op": "add", "inputs": ["x", "w"]}],
    "outputs": [{"name": "y", "value": "y"}]})");
  ASSERT_EQ(bind("w", f32({2})), host::Error());
  EXPECT_REFUSED(run({f32({})}), "TYPE_MISMATCH", "input 'x': rank is 0, expected 2");
}

}  // namespace refused
