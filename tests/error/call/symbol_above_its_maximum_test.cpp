// A size above what was declared.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, SymbolAboveItsMaximum) {
  compile(R"({"kiln": 1, "symbols": {"n": {"min": 2, "max": 8, "divisor": 2}},
    "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n"]}}],
    "nodes": [{"name": "y", "op": "exp", "inputs": ["x"]}],
    "outputs": [{"name": "y", "value": "y"}]})");
  EXPECT_REFUSED(run({f32({10})}), "TYPE_MISMATCH", "input 'x': dim 0 is 10, expected at most 8 (symbol 'n')");
}

}  // namespace refused
