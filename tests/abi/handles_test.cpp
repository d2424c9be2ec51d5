// NULL, handles of another type, views where owned handles are due, and the rules of struct_size.
#include "host.h"

namespace {

TEST(Handles, NullIsNamed) {
  kiln_report *report = nullptr;
  EXPECT_FAILS(kiln_context_report(nullptr, &report), KILN_INVALID_ARGUMENT, "kiln_context_report: context is NULL");
  const host::Context context = host::make_context();
  EXPECT_FAILS(kiln_context_report(context.get(), nullptr), KILN_INVALID_ARGUMENT, "out is NULL");
  kiln_graph *graph = nullptr;
  EXPECT_FAILS(kiln_graph_parse(context.get(), nullptr, 12, &graph), KILN_INVALID_ARGUMENT, "json is NULL");
  EXPECT_EQ(graph, nullptr);
}

TEST(Handles, AnotherTypeIsRefused) {
  const host::Context context = host::make_context();
  const host::Graph graph = host::parse(context.get(), host::small_graph);
  kiln_report *report = nullptr;
  auto *disguised = reinterpret_cast<kiln_context *>(graph.get());
  EXPECT_FAILS(kiln_context_report(disguised, &report), KILN_INVALID_ARGUMENT, "context is a handle of another type");
  EXPECT_EQ(kiln_node_kind(reinterpret_cast<kiln_graph *>(context.get()), 1), 0u);
}

TEST(Handles, DestroyTakesNull) {
  kiln_error_destroy(nullptr);
  kiln_options_destroy(nullptr);
  kiln_context_destroy(nullptr);
  kiln_graph_destroy(nullptr);
  kiln_edit_destroy(nullptr);
  kiln_executable_destroy(nullptr);
  kiln_call_destroy(nullptr);
  kiln_report_destroy(nullptr);
  kiln_tensors_destroy(nullptr);
  kiln_blob_destroy(nullptr);
}

TEST(Handles, ChildrenOutliveTheirContext) {
  host::Context context = host::make_context();
  host::Graph graph = host::parse(context.get(), host::small_graph);
  context.reset();
  EXPECT_NE(host::write(graph.get(), "text").find("neg"), std::string::npos);
}

TEST(Handles, LiveOnesAreCounted) {
  const host::Context context = host::make_context();
  EXPECT_EQ(host::i64(host::context_report(context.get()), "handles.live"), 0);
  host::Graph graph = host::parse(context.get(), host::small_graph);
  kiln_edit *edit = nullptr;
  ASSERT_OK(kiln_edit_begin(context.get(), graph.get(), &edit));
  EXPECT_EQ(host::i64(host::context_report(context.get()), "handles.graphs"), 1);
  EXPECT_EQ(host::i64(host::context_report(context.get()), "handles.live"), 2);
  graph.reset();
  kiln_edit_destroy(edit);
  EXPECT_EQ(host::i64(host::context_report(context.get()), "handles.live"), 0);
}

TEST(Handles, ClosedContextRefusesCompiles) {
  const host::Context context = host::make_context();
  const host::Graph graph = host::parse(context.get(), host::small_graph);
  EXPECT_OK(kiln_context_close(context.get()));
  EXPECT_OK(kiln_context_close(context.get()));
  EXPECT_NE(host::compile(context.get(), graph.get()).error.message.find("the context is closed"), std::string::npos);
}

class StructSize : public testing::Test {
 protected:
  StructSize() { EXPECT_OK(kiln_edit_begin(context.get(), nullptr, &edit)); }
  ~StructSize() override { kiln_edit_destroy(edit); }
  host::Context context = host::make_context();
  kiln_edit *edit = nullptr;
  kiln_dim dim{3, 0};
  kiln_value value = 0;
  // As a later version might have it: the same fields, and one more.
  struct Later {
    kiln_type type;
    uint64_t added;
  } later{};
};

TEST_F(StructSize, ZeroIsRefused) {
  kiln_type type{};
  type.dtype = KILN_F32;
  EXPECT_FAILS(kiln_edit_input(edit, "x", 1, &type, &value), KILN_INVALID_ARGUMENT, "type->struct_size is 0");
  EXPECT_EQ(value, 0u);
}

TEST_F(StructSize, UnknownTailOfZerosIsAccepted) {
  later.type = {sizeof later, KILN_F32, 1, KILN_LAYOUT_ROW_MAJOR, &dim, nullptr};
  EXPECT_OK(kiln_edit_input(edit, "x", 1, &later.type, &value));
  EXPECT_NE(value, 0u);
}

TEST_F(StructSize, UnknownTailWithContentIsRefused) {
  later.type = {sizeof later, KILN_F32, 1, KILN_LAYOUT_ROW_MAJOR, &dim, nullptr};
  later.added = 1;
  EXPECT_FAILS(kiln_edit_input(edit, "x", 1, &later.type, &value), KILN_INVALID_ARGUMENT,
               "sets a field that this version does not know");
}

TEST_F(StructSize, ShorterStructHasDefaultsAtItsEnd) {
  const uint32_t without_strides = offsetof(kiln_type, strides);
  kiln_type type{without_strides, KILN_F32, 1, KILN_LAYOUT_ROW_MAJOR, &dim, nullptr};
  std::memset(&type.strides, 0xff, sizeof type.strides);  // not part of the struct that this host knows
  EXPECT_OK(kiln_edit_input(edit, "x", 1, &type, &value));
}

TEST(Strings, MustBeUtf8) {
  const host::Context context = host::make_context();
  kiln_op op = 0;
  EXPECT_FAILS(kiln_op_find(context.get(), "\xc3\x28", 2, &op), KILN_INVALID_ARGUMENT, "name is not UTF-8");
  EXPECT_FAILS(kiln_op_find(context.get(), "a\0b", 3, &op), KILN_INVALID_ARGUMENT, "at byte 1");
}

}  // namespace
