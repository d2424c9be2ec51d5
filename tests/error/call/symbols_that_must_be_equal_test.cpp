// Two symbols that an op compares have two sizes.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, SymbolsThatMustBeEqual) {
  compile_binary("add", "f32", "\"n\"", "\"m\"");
  EXPECT_REFUSED(run({f32({3}), f32({4})}), "TYPE_MISMATCH",
                 "node 'y': [add] shapes [n] and [m] do not broadcast: dims at -1 must be equal; m is 4, n is 3 "
                 "(symbol 'm', bound by input 'b' dim 0; symbol 'n', bound by input 'a' dim 0)");
}

}  // namespace refused
