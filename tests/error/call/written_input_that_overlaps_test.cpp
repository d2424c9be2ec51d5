// An input that a copy_ writes lies over another one.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, WrittenInputThatOverlaps) {
  compile(R"({"kiln": 1, "inputs": [{"name": "state", "type": {"dtype": "f32", "shape": ["n"]}},
                                    {"name": "x", "type": {"dtype": "f32", "shape": ["n"]}}],
    "nodes": [{"name": "y", "op": "add", "inputs": ["state", "x"]},
              {"name": "next", "op": "copy_", "inputs": ["state", "y"]}],
    "outputs": [{"name": "next", "value": "next"}]})");
  const DLTensor *both = f32({3});
  EXPECT_REFUSED(run({both, both}), "INVALID_ARGUMENT", "input 'state' overlaps input 'x'; a run writes it");
}

}  // namespace refused
