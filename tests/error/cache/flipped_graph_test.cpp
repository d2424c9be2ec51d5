// A bit of the graph of a record is another.
#include "tests/error/cache/cache.h"

namespace refused {

TEST_F(CacheCase, FlippedGraph) { expect_compiled_again_when_flipped("graph", "reference"); }

}  // namespace refused
