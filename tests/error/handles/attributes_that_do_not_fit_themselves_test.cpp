// An attribute whose kind, count, data or value is none.
#include "tests/error/expect.h"

namespace refused {

TEST(Handles, AttributesThatDoNotFitThemselves) {
  const host::Context context = host::make_context();
  kiln_edit *made = nullptr;
  ASSERT_OK(kiln_edit_begin(context.get(), nullptr, &made));
  const host::Edit edit(made);
  const int64_t numbers[2] = {1, 2};
  const uint8_t two = 2;
  const kiln_dtype no_dtype = 77, none = 0;
  const auto refused = [&](const kiln_attr &attr, const char *message) {
    EXPECT_REFUSED(host::take(kiln_edit_scope(edit.get(), &attr, 1)), "INVALID_ARGUMENT", message);
  };
  refused(host::attr("", KILN_ATTR_I64, 1, numbers), "kiln_edit_scope: an attribute has no name");
  refused(host::attr("a", 99, 1, numbers), "kiln_edit_scope: 'a': no kind of attribute has number 99");
  refused(host::attr("a", KILN_ATTR_I64, 2, numbers), "kiln_edit_scope: 'a': a scalar's count is 1, not 2");
  refused(host::attr("a", KILN_ATTR_I64, 1, nullptr), "kiln_edit_scope: 'a': data is NULL");
  refused(host::attr("a", KILN_ATTR_BOOL, 1, &two), "kiln_edit_scope: 'a': a boolean is 0 or 1, not 2");
  refused(host::attr("a", KILN_ATTR_DTYPE, 1, &no_dtype), "kiln_edit_scope: 'a': no dtype has number 77");
  refused(host::attr("a", KILN_ATTR_DTYPE, 1, &none), "kiln_edit_scope: 'a': no dtype has number 0");
  const kiln_attr twice[2] = {host::attr("a", KILN_ATTR_I64, 1, numbers), host::attr("a", KILN_ATTR_I64, 1, numbers)};
  EXPECT_REFUSED(host::take(kiln_edit_scope(edit.get(), twice, 2)), "INVALID_ARGUMENT",
                 "kiln_edit_scope: 'a' is given twice");
}

}  // namespace refused
