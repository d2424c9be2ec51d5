// An input that is neither bound nor given.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, MissingInput) {
  compile(R"({"kiln": 1,
    "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n", 2]}}],
    "parameters": [{"name": "w", "type": {"dtype": "f32", "shape": [2]}}],
    "nodes": [{"name": "y", "op": "add", "inputs": ["x", "w"]}],
    "outputs": [{"name": "y", "value": "y"}]})");
  ASSERT_EQ(bind("w", f32({2})), host::Error());
  EXPECT_REFUSED(run({}), "INVALID_ARGUMENT", "run: input 'x' is neither bound nor given");
}

}  // namespace refused
