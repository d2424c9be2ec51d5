// run_data with fewer addresses than slots.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, TooFewAddresses) {
  compile(R"({"kiln": 1,
    "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n", 2]}}],
    "parameters": [{"name": "w", "type": {"dtype": "f32", "shape": [2]}}],
    "nodes": [{"name": "y", "op": "add", "inputs": ["x", "w"]}],
    "outputs": [{"name": "y", "value": "y"}]})");
  ASSERT_EQ(bind("w", f32({2})), host::Error());
  ASSERT_EQ(run({f32({1, 2}), f32({1, 2})}), host::Error());
  float x[2] = {};
  void *data[] = {x};
  EXPECT_REFUSED(host::take(kiln_call_run_data(call_.get(), data, 1, nullptr)), "INVALID_ARGUMENT",
                 "run_data: 1 addresses given, expected 2: the inputs and outputs that are not bound");
}

}  // namespace refused
