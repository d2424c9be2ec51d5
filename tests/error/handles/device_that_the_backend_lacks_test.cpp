// A graph whose input is on another device than the one that a backend has.
#include "tests/error/expect.h"

namespace refused {

TEST(Handles, DeviceThatTheBackendLacks) {
  const host::Context context = host::make_context();
  const host::Graph graph = host::parse(context.get(), R"({"kiln": 1,
    "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": [2], "device": 3}}],
    "nodes": [{"name": "y", "op": "neg", "inputs": ["x"]}], "outputs": [{"name": "y", "value": "y"}]})");
  EXPECT_REFUSED(host::compile(context.get(), graph.get()).error, "INVALID_ARGUMENT",
                 "input 'x' is on device 3; backend cpu has device 0 alone");
}

}  // namespace refused
