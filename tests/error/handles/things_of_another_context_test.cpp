// A graph and an expression of another context: ops and expressions have numbers of their own there.
#include "tests/error/expect.h"

namespace refused {

TEST(Handles, ThingsOfAnotherContext) {
  const host::Context context = host::make_context(), other = host::make_context();
  const host::Graph foreign = host::parse(other.get(), host::small_graph);
  EXPECT_REFUSED(host::compile(context.get(), foreign.get()).error, "INVALID_ARGUMENT",
                 "kiln_compile: graph is of another context; write it there and parse it here");
  kiln_edit *edit = nullptr;
  EXPECT_REFUSED(host::take(kiln_edit_begin(context.get(), foreign.get(), &edit)), "INVALID_ARGUMENT",
                 "kiln_edit_begin: from is of another context; write it there and parse it here");
  ASSERT_OK(kiln_edit_begin(context.get(), nullptr, &edit));
  const host::Edit owned(edit);
  kiln_op call = 0;
  ASSERT_OK(kiln_op_find(context.get(), "call", 4, &call));
  const kiln_graph *nested = foreign.get();
  const kiln_attr graph = host::attr("graph", KILN_ATTR_GRAPH, 1, &nested);
  kiln_node node = 0;
  EXPECT_REFUSED(host::take(kiln_edit_add(edit, call, nullptr, 0, nullptr, 0, &graph, 1, &node)), "INVALID_ARGUMENT",
                 "kiln_edit_add: a graph attribute is of another context; write it there and parse it here");

  kiln_dim here{}, there{};
  ASSERT_OK(kiln_dim_parse(context.get(), "n", 1, &here));
  ASSERT_OK(kiln_dim_parse(other.get(), "m", 1, &there));
  kiln_text text{};
  ASSERT_OK(kiln_dim_text(context.get(), &here, &text));
  EXPECT_EQ(host::text_of(text), "n");
  EXPECT_FAILS(kiln_dim_text(context.get(), &there, &text), KILN_INVALID_ARGUMENT, "no expression of this context has");
  kiln_type type{};
  type.struct_size = sizeof type;
  type.dtype = KILN_F32;
  type.rank = 1;
  type.dims = &there;
  kiln_value value = 0;
  EXPECT_FAILS(kiln_edit_input(edit, "x", 1, &type, &value), KILN_INVALID_ARGUMENT,
               "no expression of this context has");
}

}  // namespace refused
