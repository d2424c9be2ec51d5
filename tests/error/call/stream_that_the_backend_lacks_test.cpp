// A stream, which the CPU does not have, and a flag that nothing knows.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, StreamThatTheBackendLacks) {
  compile_bound_sum();
  kiln_run_options options{};
  options.struct_size = sizeof options;
  options.stream = 5;
  const DLTensor *x = f32({2, 2});
  EXPECT_REFUSED(host::take(kiln_call_run(call_.get(), &x, 1, &options)), "INVALID_ARGUMENT",
                 std::string("run: stream is 5, and backend ") + GetParam() +
                     " has no streams; KILN_RUN_ASYNC has a run return early");
  options.stream = 0;
  options.flags = 4;
  EXPECT_REFUSED(host::take(kiln_call_run(call_.get(), &x, 1, &options)), "INVALID_ARGUMENT",
                 "kiln_call_run: options->flags has unknown bits: 4");
}

}  // namespace refused
