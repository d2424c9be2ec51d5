// One symbol of two inputs has two sizes.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, SymbolThatHasTwoSizes) {
  compile(R"({"kiln": 1, "inputs": [{"name": "a", "type": {"dtype": "f32", "shape": ["n"]}},
                                    {"name": "b", "type": {"dtype": "f32", "shape": ["n"]}}],
    "nodes": [{"name": "y", "op": "add", "inputs": ["a", "b"]}],
    "outputs": [{"name": "y", "value": "y"}]})");
  EXPECT_REFUSED(run({f32({3}), f32({4})}), "TYPE_MISMATCH",
                 "input 'b': dim 0 is 4, expected 3 (symbol 'n', bound by input 'a' dim 0)");
}

}  // namespace refused
