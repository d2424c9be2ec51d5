// run_data with NULL for an input.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, NullAddress) {
  compile(R"({"kiln": 1,
    "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n", 2]}}],
    "parameters": [{"name": "w", "type": {"dtype": "f32", "shape": [2]}}],
    "nodes": [{"name": "y", "op": "add", "inputs": ["x", "w"]}],
    "outputs": [{"name": "y", "value": "y"}]})");
  ASSERT_EQ(bind("w", f32({2})), host::Error());
  ASSERT_EQ(run({f32({1, 2}), f32({1, 2})}), host::Error());
  float y[2] = {};
  void *data[] = {nullptr, y};
  EXPECT_REFUSED(host::take(kiln_call_run_data(call_.get(), data, 2, nullptr)), "INVALID_ARGUMENT",
                 "input 'x': data is null");
}

}  // namespace refused
