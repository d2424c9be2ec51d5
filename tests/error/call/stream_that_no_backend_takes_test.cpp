// A stream, which no backend takes, and a flag that nothing knows.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, StreamThatNoBackendTakes) {
  compile_bound_sum();
  kiln_run_options options{};
  options.struct_size = sizeof options;
  options.stream = 5;
  EXPECT_REFUSED(host::take(kiln_call_run(call_.get(), nullptr, 0, &options)), "INVALID_ARGUMENT",
                 "kiln_call_run: options->stream is not 0: no backend takes a stream");
  options.stream = 0;
  options.flags = 1;
  EXPECT_REFUSED(host::take(kiln_call_run(call_.get(), nullptr, 0, &options)), "INVALID_ARGUMENT",
                 "kiln_call_run: options->flags has unknown bits: 1");
}

}  // namespace refused
