// An input whose size is an expression over a symbol.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, ExpressionThatDoesNotHold) {
  compile(R"({"kiln": 1, "inputs": [{"name": "a", "type": {"dtype": "f32", "shape": ["n"]}},
                                    {"name": "b", "type": {"dtype": "f32", "shape": ["2*n + 1"]}}],
    "nodes": [{"name": "y", "op": "exp", "inputs": ["b"]}],
    "outputs": [{"name": "y", "value": "y"}]})");
  EXPECT_REFUSED(run({f32({3}), f32({6})}), "TYPE_MISMATCH",
                 "input 'b': dim 0 is 6, expected 7 (2*n + 1; symbol 'n', bound by input 'a' dim 0)");
}

}  // namespace refused
