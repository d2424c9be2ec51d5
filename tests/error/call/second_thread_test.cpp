// A second thread on a call that runs: refused, while the first one goes on.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, SecondThread) {
  compile(R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n", 256]}}],
    "nodes": [{"name": "y", "op": "matmul", "inputs": ["x", "x"], "attrs": {"transpose_b": true}}],
    "outputs": [{"name": "y", "value": "y"}]})");
  const DLTensor *x = f32({64, 256});
  std::atomic<bool> refused = false;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);  // of what takes milliseconds
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; i++) {
    threads.emplace_back([&] {
      while (!refused && std::chrono::steady_clock::now() < deadline) {
        const host::Error error = run({x});
        if (error.code == KILN_OK) continue;
        EXPECT_REFUSED(
            error, "BUSY",
            "the call is in use, on another thread or by the run that asks; a clone made before runs beside it");
        refused = true;
      }
    });
  }
  for (std::thread &thread : threads) thread.join();
  EXPECT_TRUE(refused);
  EXPECT_EQ(run({x}), host::Error());
}

}  // namespace refused
