// A bit of the components of a record is another.
#include "tests/error/cache/cache.h"

namespace refused {

TEST_F(CacheCase, FlippedComponents) { expect_compiled_again_when_flipped("components"); }

}  // namespace refused
