// A size that is no multiple of what was declared.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, SymbolThatItsDivisorDoesNotDivide) {
  compile(R"({"kiln": 1, "symbols": {"n": {"min": 2, "max": 8, "divisor": 2}},
    "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n"]}}],
    "nodes": [{"name": "y", "op": "exp", "inputs": ["x"]}],
    "outputs": [{"name": "y", "value": "y"}]})");
  EXPECT_REFUSED(run({f32({5})}), "TYPE_MISMATCH", "input 'x': dim 0 is 5, expected a multiple of 2 (symbol 'n')");
}

}  // namespace refused
