#include "host.h"

namespace {

TEST(Error, CarriesCodeMessageAndCause) {
  kiln_error *cause = kiln_error_create(KILN_IO, "disk", 4, nullptr);
  const host::Error error = host::take(kiln_error_create(KILN_PLUGIN_FAILED, "pass", 4, cause));
  EXPECT_EQ(error.code, KILN_PLUGIN_FAILED);
  EXPECT_EQ(error.message, "pass");
  EXPECT_EQ(error.cause, "disk");
}

TEST(Error, CodeZeroIsInternal) { EXPECT_EQ(host::take(kiln_error_create(0, "", 0, nullptr)).code, KILN_INTERNAL); }

TEST(Error, CodesOfLaterVersionsPassThrough) {
  EXPECT_EQ(host::take(kiln_error_create(999, "later", 5, nullptr)).code, 999u);
}

TEST(Error, NullIsNoError) {
  kiln_text text{"untouched", 9};
  EXPECT_EQ(kiln_error_code(nullptr), KILN_OK);
  kiln_error_message(nullptr, &text);
  EXPECT_EQ(text.size, 0u);
  EXPECT_EQ(kiln_error_cause(nullptr), nullptr);
  EXPECT_EQ(kiln_error_report(nullptr), nullptr);
  kiln_error_destroy(nullptr);
}

}  // namespace
