// No elements, and yet sizes whose strides would pass 63 bits.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, EmptyArrayBeyond63Bits) {
  compile(R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["a", "b", "c"]}}],
    "nodes": [{"name": "y", "op": "exp", "inputs": ["x"]}],
    "outputs": [{"name": "y", "value": "y"}]})");
  EXPECT_REFUSED(run({f32({0, int64_t{1} << 40, int64_t{1} << 40})}), "OUT_OF_MEMORY",
                 "input 'x': more bytes than can be addressed");
  EXPECT_EQ(run({f32({0, int64_t{1} << 40, 1 << 20})}), host::Error()) << "which has strides";
}

}  // namespace refused
