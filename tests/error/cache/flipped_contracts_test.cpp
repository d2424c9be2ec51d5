// A bit of the contracts of a record is another.
#include "tests/error/cache/cache.h"

namespace refused {

TEST_F(CacheCase, FlippedContracts) { expect_compiled_again_when_flipped("contracts"); }

}  // namespace refused
