// A reserved field with content: from a later version, or not set to 0.
#include "tests/error/expect.h"

namespace refused {

TEST(Handles, ReservedFieldsThatAreNot0) {
  const host::Context context = host::make_context();
  kiln_edit *made = nullptr;
  ASSERT_OK(kiln_edit_begin(context.get(), nullptr, &made));
  const host::Edit edit(made);
  kiln_symbol symbol{};
  symbol.struct_size = sizeof symbol;
  symbol.reserved0 = 1;
  EXPECT_REFUSED(host::take(kiln_edit_symbol(edit.get(), "n", 1, &symbol)), "INVALID_ARGUMENT",
                 "kiln_edit_symbol: symbol->reserved0 is not 0");
  const int64_t one = 1;
  kiln_attr attr = host::attr("a", KILN_ATTR_I64, 1, &one);
  attr.reserved0 = 1;
  EXPECT_REFUSED(host::take(kiln_edit_scope(edit.get(), &attr, 1)), "INVALID_ARGUMENT",
                 "kiln_edit_scope: 'a': reserved0 is not 0");
}

}  // namespace refused
