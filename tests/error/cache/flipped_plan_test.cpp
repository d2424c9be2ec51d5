// A bit of the plan of a record is another.
#include "tests/error/cache/cache.h"

namespace refused {

TEST_F(CacheCase, FlippedPlan) { expect_compiled_again_when_flipped("plan"); }

}  // namespace refused
