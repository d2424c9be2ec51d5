// A bit of the report of a record is another.
#include "tests/error/cache/cache.h"

namespace refused {

TEST_F(CacheCase, FlippedReport) { expect_compiled_again_when_flipped("report"); }

}  // namespace refused
