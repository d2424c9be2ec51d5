// A size below what was declared.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, SymbolBelowItsMinimum) {
  compile(R"({"kiln": 1, "symbols": {"n": {"min": 2, "max": 8, "divisor": 2}},
    "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n"]}}],
    "nodes": [{"name": "y", "op": "exp", "inputs": ["x"]}],
    "outputs": [{"name": "y", "value": "y"}]})");
  EXPECT_REFUSED(run({f32({0})}), "TYPE_MISMATCH", "input 'x': dim 0 is 0, expected at least 2 (symbol 'n')");
}

}  // namespace refused
