// A parameter that was never bound.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, UnboundParameter) {
  compile(R"({"kiln": 1,
    "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n", 2]}}],
    "parameters": [{"name": "w", "type": {"dtype": "f32", "shape": [2]}}],
    "nodes": [{"name": "y", "op": "add", "inputs": ["x", "w"]}],
    "outputs": [{"name": "y", "value": "y"}]})");
  EXPECT_REFUSED(run({f32({3, 2})}), "INVALID_ARGUMENT", "run: parameter 'w' is not bound");
}

}  // namespace refused
