// Asking for the shape of what has not run.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, DimsBeforeARun) {
  compile(R"({"kiln": 1,
    "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n", 2]}}],
    "parameters": [{"name": "w", "type": {"dtype": "f32", "shape": [2]}}],
    "nodes": [{"name": "y", "op": "add", "inputs": ["x", "w"]}],
    "outputs": [{"name": "y", "value": "y"}]})");
  ASSERT_EQ(bind("w", f32({2})), host::Error());
  uint64_t rank = 9;
  EXPECT_REFUSED(host::take(kiln_call_dims(call_.get(), 0, nullptr, 0, &rank)), "INVALID_ARGUMENT",
                 "dims of input 'x': there was no run yet");
  EXPECT_EQ(rank, 9u);
}

}  // namespace refused
