// A bit of the constants of a record is another.
#include "tests/error/cache/cache.h"

namespace refused {

TEST_F(CacheCase, FlippedConstants) { expect_compiled_again_when_flipped("constants"); }

}  // namespace refused
