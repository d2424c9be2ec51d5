// A parameter of another dtype: told when it is bound.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, DtypeOfAParameter) {
  compile(R"({"kiln": 1,
    "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n", 2]}}],
    "parameters": [{"name": "w", "type": {"dtype": "f32", "shape": [2]}}],
    "nodes": [{"name": "y", "op": "add", "inputs": ["x", "w"]}],
    "outputs": [{"name": "y", "value": "y"}]})");
  EXPECT_REFUSED(bind("w", i64({1, 2})), "TYPE_MISMATCH", "parameter 'w': dtype is i64, expected f32");
}

}  // namespace refused
