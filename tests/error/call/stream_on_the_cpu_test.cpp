// A stream, which the CPU does not have, and a flag that nothing knows.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, StreamOnTheCpu) {
  compile(R"({"kiln": 1,
    "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n", 2]}}],
    "parameters": [{"name": "w", "type": {"dtype": "f32", "shape": [2]}}],
    "nodes": [{"name": "y", "op": "add", "inputs": ["x", "w"]}],
    "outputs": [{"name": "y", "value": "y"}]})");
  ASSERT_EQ(bind("w", f32({2})), host::Error());
  kiln_run_options options{};
  options.struct_size = sizeof options;
  options.stream = 5;
  EXPECT_REFUSED(host::take(kiln_call_run(call_.get(), nullptr, 0, &options)), "INVALID_ARGUMENT",
                 "kiln_call_run: options->stream is not 0: the CPU has no streams");
  options.stream = 0;
  options.flags = 1;
  EXPECT_REFUSED(host::take(kiln_call_run(call_.get(), nullptr, 0, &options)), "INVALID_ARGUMENT",
                 "kiln_call_run: options->flags has unknown bits: 1");
}

}  // namespace refused
