// Accessors that return no error answer 0, and destroying NULL does nothing.
#include "tests/error/expect.h"

namespace refused {

TEST(Handles, NullForAccessors) {
  uint64_t size = 7;
  kiln_text text{"untouched", 9};
  EXPECT_EQ(kiln_node_kind(nullptr, 1), 0u);
  EXPECT_EQ(kiln_node_op(nullptr, 1), 0u);
  EXPECT_EQ(kiln_node_input_count(nullptr, 1), 0u);
  EXPECT_EQ(kiln_node_input(nullptr, 1, 0), 0u);
  EXPECT_EQ(kiln_node_output_count(nullptr, 1), 0u);
  EXPECT_EQ(kiln_value_use_count(nullptr, 1), 0u);
  EXPECT_EQ(kiln_value_view_of(nullptr, 1), 0u);
  EXPECT_EQ(kiln_edit_view(nullptr), nullptr);
  EXPECT_EQ(kiln_pass_edit(nullptr), nullptr);
  EXPECT_EQ(kiln_pass_context(nullptr), nullptr);
  EXPECT_EQ(kiln_op_count(nullptr), 0u);
  EXPECT_EQ(kiln_tensors_count(nullptr), 0u);
  EXPECT_EQ(kiln_blob_data(nullptr, &size), nullptr);
  EXPECT_EQ(size, 0u);
  EXPECT_EQ(kiln_error_code(nullptr), KILN_OK);
  kiln_error_message(nullptr, &text);
  EXPECT_EQ(text.size, 0u);
  kiln_error_message(nullptr, nullptr);
}

}  // namespace refused
