// A field that this version does not know: accepted while it is 0, else refused by its place.
#include "tests/error/expect.h"

namespace refused {

TEST(Handles, StructsOfALaterVersion) {
  const host::Context context = host::make_context();
  kiln_edit *made = nullptr;
  ASSERT_OK(kiln_edit_begin(context.get(), nullptr, &made));
  const host::Edit edit(made);
  struct Later {
    kiln_symbol symbol;
    uint64_t added;
  } later{};
  later.symbol.struct_size = sizeof later;
  EXPECT_OK(kiln_edit_symbol(edit.get(), "n", 1, &later.symbol));
  later.added = 1;
  EXPECT_REFUSED(host::take(kiln_edit_symbol(edit.get(), "n", 1, &later.symbol)), "INVALID_ARGUMENT",
                 "kiln_edit_symbol: symbol sets a field that this version does not know (byte 40 of 48)");
}

}  // namespace refused
