#include "jit/base/utf8.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

TEST(Utf8, AppendedCodePointsAreValidAndSurrogatesAreNot) {
  for (char32_t c = 1; c < 0x110000; ++c) {
    std::string text;
    append_utf8(text, c);
    bool surrogate = c >= 0xd800 && c <= 0xdfff;
    ASSERT_EQ(is_utf8(text), !surrogate) << static_cast<uint32_t>(c);
    ASSERT_FALSE(is_utf8(text.substr(0, text.size() - 1)) && text.size() > 1);
  }
}

TEST(Utf8, OverlongAndStrayBytesAreInvalid) {
  for (const char *text : {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80",
                           "\xf5\x80\x80\x80", "\xff", "a\xe4", "\xe4\xbd"})
    EXPECT_FALSE(is_utf8(text)) << text;
  EXPECT_TRUE(is_utf8(""));
}

}  // namespace
}  // namespace kiln
