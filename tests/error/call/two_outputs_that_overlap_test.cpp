// Two outputs in one memory.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, TwoOutputsThatOverlap) {
  compile(R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n"]}}],
    "nodes": [{"name": "y", "op": "neg", "inputs": ["x"]}, {"name": "z", "op": "exp", "inputs": ["x"]}],
    "outputs": [{"name": "y", "value": "y"}, {"name": "z", "value": "z"}]})");
  const DLTensor *out = f32({3});
  EXPECT_REFUSED(run({f32({3}), out, out}), "INVALID_ARGUMENT", "output 'y' overlaps output 'z'; a run writes it");
}

}  // namespace refused
