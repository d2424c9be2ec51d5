#include "jit/base/hash.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

TEST(Hash, IsBlake2bAndXxh3) {
  EXPECT_EQ(digest_of("abc").hex(), "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
  EXPECT_EQ(digest_of("").hex(), "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8");
  EXPECT_EQ(checksum_of({}), 0x2d06800538d394c2u);
}

}  // namespace
}  // namespace kiln
