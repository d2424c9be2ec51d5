// A bit of the source of a record is another.
#include "tests/error/cache/cache.h"

namespace refused {

TEST_F(CacheCase, FlippedSource) { expect_compiled_again_when_flipped("source"); }

}  // namespace refused
