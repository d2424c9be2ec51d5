// struct_size 0, too small to hold itself, and garbage.
#include "tests/error/expect.h"

namespace refused {

TEST(Handles, StructsWithoutTheirSize) {
  const host::Context context = host::make_context();
  kiln_edit *made = nullptr;
  ASSERT_OK(kiln_edit_begin(context.get(), nullptr, &made));
  const host::Edit edit(made);
  kiln_type type{};
  type.dtype = KILN_F32;
  kiln_value value = 0;
  for (const uint32_t size : {0u, 4u, 0xffffffffu}) {
    type.struct_size = size;
    EXPECT_REFUSED(host::take(kiln_edit_input(edit.get(), "x", 1, &type, &value)), "INVALID_ARGUMENT",
                   "kiln_edit_input: type->struct_size is " + std::to_string(size) + "; set it to the struct's size, " +
                       std::to_string(sizeof(kiln_type)));
  }
  kiln_symbol symbol{};
  EXPECT_REFUSED(host::take(kiln_edit_symbol(edit.get(), "n", 1, &symbol)), "INVALID_ARGUMENT",
                 "kiln_edit_symbol: symbol->struct_size is 0; set it to the struct's size, " +
                     std::to_string(sizeof(kiln_symbol)));
  kiln_pass pass{};
  EXPECT_REFUSED(
      host::take(kiln_pass_register(context.get(), &pass, nullptr, nullptr)), "INVALID_ARGUMENT",
      "kiln_pass_register: pass->struct_size is 0; set it to the struct's size, " + std::to_string(sizeof(kiln_pass)));
  kiln_event_sink sink{};
  kiln_context *other = nullptr;
  EXPECT_REFUSED(host::take(kiln_context_create(nullptr, &sink, &other)), "INVALID_ARGUMENT",
                 "kiln_context_create: sink->struct_size is 0; set it to the struct's size, " +
                     std::to_string(sizeof(kiln_event_sink)));
  EXPECT_EQ(value, 0u);
}

}  // namespace refused
