// A size at which an output has more bytes than there are.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, OutputLargerThanMemory) {
  compile(R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n"]}}],
    "nodes": [{"name": "y", "op": "expand", "inputs": ["x"], "attrs": {"shape": ["1099511627776 * n", "n"]}}],
    "outputs": [{"name": "y", "value": "y"}]})");
  EXPECT_REFUSED(run({f32({64})}), "OUT_OF_MEMORY",
                 "output 'y': cannot allocate 18014398509481984 bytes for the output");
}

}  // namespace refused
