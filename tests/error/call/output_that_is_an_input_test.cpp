// An output in the very memory of an input.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, OutputThatIsAnInput) {
  compile(R"({"kiln": 1,
    "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n", 2]}}],
    "parameters": [{"name": "w", "type": {"dtype": "f32", "shape": [2]}}],
    "nodes": [{"name": "y", "op": "add", "inputs": ["x", "w"]}],
    "outputs": [{"name": "y", "value": "y"}]})");
  ASSERT_EQ(bind("w", f32({2})), host::Error());
  const DLTensor *x = f32({2, 2});
  EXPECT_REFUSED(run({x, x}), "INVALID_ARGUMENT", "output 'y' overlaps input 'x'; a run writes it");
}

}  // namespace refused
