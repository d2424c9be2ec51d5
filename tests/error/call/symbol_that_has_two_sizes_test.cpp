// One symbol of two inputs has two sizes.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, SymbolThatHasTwoSizes) {
  compile_binary("add", "f32", "\"n\"", "\"n\"");
  EXPECT_REFUSED(run({f32({3}), f32({4})}), "TYPE_MISMATCH",
                 "input 'b': dim 0 is 4, expected 3 (symbol 'n', bound by input 'a' dim 0)");
}

}  // namespace refused
