// A bit of the images of a record is another.
#include "tests/error/cache/cache.h"

namespace refused {

TEST_F(CacheCase, FlippedImages) { expect_compiled_again_when_flipped("images"); }

}  // namespace refused
