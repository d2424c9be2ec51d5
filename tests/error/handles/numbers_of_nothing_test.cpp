// An op, a dtype, a layout, a node, a value, a dimension, a side of which there is none by that number.
#include "tests/error/expect.h"

namespace refused {

TEST(Handles, NumbersOfNothing) {
  const host::Context context = host::make_context();
  const host::Graph graph = host::parse(context.get(), host::small_graph);
  kiln_edit *made = nullptr;
  ASSERT_OK(kiln_edit_begin(context.get(), graph.get(), &made));
  const host::Edit edit(made);
  kiln_text text{};
  kiln_node node = 0;
  kiln_value value = 0;
  kiln_dtype dtype = 0;
  uint64_t count = 0;
  const auto refused = [](kiln_error *error, const char *code, const std::string &message) {
    EXPECT_REFUSED(host::take(error), code, message);
  };
  const std::string ops = std::to_string(kiln_op_count(context.get()));
  refused(kiln_op_name(context.get(), 0, &text), "OUT_OF_RANGE", "no op has number 0; there are " + ops);
  refused(kiln_edit_add(edit.get(), 9999, nullptr, 0, nullptr, 0, nullptr, 0, &node), "OUT_OF_RANGE",
          "no op has number 9999; there are " + ops);
  refused(kiln_dtype_info(17, nullptr, nullptr, nullptr), "OUT_OF_RANGE", "no dtype has number 17");
  refused(kiln_node_name(graph.get(), 999, &text), "OUT_OF_RANGE", "the graph has no node 999");
  refused(kiln_value_dtype(graph.get(), uint64_t{1} << 32 | 5, &dtype), "OUT_OF_RANGE", "the graph has no value 1:5");
  refused(kiln_graph_signature(graph.get(), 4, nullptr, 0, &count), "INVALID_ARGUMENT",
          "kiln_graph_signature: no side of a signature has number 4");
  refused(kiln_graph_output_name(graph.get(), 1, &text), "OUT_OF_RANGE", "output 1 of 1");
  refused(kiln_graph_find(graph.get(), "none", 4, &node), "UNKNOWN_NAME", "no node is named 'none'");
  refused(kiln_edit_annotate(edit.get(), uint64_t{1} << 40, nullptr, 0), "INVALID_ARGUMENT",
          "kiln_edit_annotate: no node has number 1099511627776");
  const kiln_dim dim{0, 12345};
  const kiln_type type{sizeof type, KILN_F32, 1, KILN_LAYOUT_ROW_MAJOR, &dim, nullptr};
  refused(kiln_edit_input(edit.get(), "z", 1, &type, &value), "INVALID_ARGUMENT",
          "no expression of this context has number 12345 (kiln_dim_parse makes them)");
  const kiln_dim one{1, 0};
  const kiln_type layout{sizeof layout, KILN_F32, 1, 7, &one, nullptr};
  refused(kiln_edit_input(edit.get(), "z", 1, &layout, &value), "INVALID_ARGUMENT",
          "kiln_edit_input: type->layout: no layout has number 7");
  const kiln_type rank{sizeof rank, KILN_F32, 65, KILN_LAYOUT_ROW_MAJOR, &one, nullptr};
  refused(kiln_edit_input(edit.get(), "z", 1, &rank, &value), "INVALID_ARGUMENT",
          "kiln_edit_input: type->rank is 65, the most is 64");
  EXPECT_EQ(value, 0u);
}

}  // namespace refused
