// Building, reading and writing graphs through the C interface.
#include "host.h"

namespace {

class GraphTest : public testing::Test {
 protected:
  GraphTest() {
    kiln_edit *begun = nullptr;
    EXPECT_OK(kiln_edit_begin(context.get(), nullptr, &begun));
    edit.reset(begun);
  }
  kiln_op op(std::string_view name) {
    kiln_op number = 0;
    EXPECT_OK(kiln_op_find(context.get(), name.data(), name.size(), &number));
    return number;
  }
  kiln_dim dim(std::string_view text) {
    kiln_dim made{};
    EXPECT_OK(kiln_dim_parse(context.get(), text.data(), text.size(), &made));
    return made;
  }
  kiln_value input(std::string_view name, std::vector<kiln_dim> dims, kiln_dtype dtype = KILN_F32) {
    const kiln_type type{sizeof type,           dtype,       static_cast<uint32_t>(dims.size()),
                         KILN_LAYOUT_ROW_MAJOR, dims.data(), nullptr};
    kiln_value value = 0;
    EXPECT_OK(kiln_edit_input(edit.get(), name.data(), name.size(), &type, &value));
    return value;
  }
  kiln_value add(std::string_view name, std::vector<kiln_value> inputs, std::vector<kiln_attr> attrs = {}) {
    kiln_node node = 0;
    EXPECT_OK(kiln_edit_add(edit.get(), op(name), nullptr, 0, inputs.data(), inputs.size(), attrs.data(), attrs.size(),
                            &node));
    return node << 32;
  }
  host::Graph finish(kiln_value output) {
    EXPECT_OK(kiln_edit_outputs(edit.get(), &output, nullptr, 1));
    kiln_graph *graph = nullptr;
    EXPECT_OK(kiln_edit_finish(edit.get(), &graph));
    return host::Graph(graph);
  }

  host::Context context = host::make_context();
  host::Edit edit;
};

TEST_F(GraphTest, AnnotationsAreSetAndTakenAway) {
  const kiln_value y = add("exp", {input("x", {{4, 0}})});
  const kiln_text head{"head", 4};
  const int64_t three = 3;
  const kiln_attr both[] = {host::attr("kiln.region", KILN_ATTR_TEXT, 1, &head),
                            host::attr("mine", KILN_ATTR_I64, 1, &three)};
  EXPECT_OK(kiln_edit_annotate(edit.get(), y >> 32, both, 2));
  const auto names = [&] {
    kiln_attr found[3];
    uint64_t count = 0;
    EXPECT_OK(kiln_node_annotations(kiln_edit_view(edit.get()), y >> 32, found, 3, &count));
    std::string text;
    for (uint64_t i = 0; i < count; i++) text += std::string(found[i].name, found[i].name_size) + " ";
    return text;
  };
  EXPECT_EQ(names(), "kiln.region mine ");
  const kiln_attr none = host::attr("mine", KILN_ATTR_NONE, 0, nullptr);
  EXPECT_OK(kiln_edit_annotate(edit.get(), y >> 32, &none, 1));
  EXPECT_EQ(names(), "kiln.region ");
  const kiln_attr with_a_value = host::attr("kiln.region", KILN_ATTR_NONE, 1, &three);
  EXPECT_FAILS(kiln_edit_annotate(edit.get(), y >> 32, &with_a_value, 1), KILN_INVALID_ARGUMENT,
               "'kiln.region' is taken away, but has a value");
  const kiln_attr unknown = host::attr("kiln.regoin", KILN_ATTR_NONE, 0, nullptr);
  EXPECT_FAILS(kiln_edit_annotate(edit.get(), y >> 32, &unknown, 1), KILN_UNKNOWN_NAME, "'kiln.regoin' is not known");
  EXPECT_EQ(names(), "kiln.region ");
}

TEST_F(GraphTest, BuiltGraphReadsBackFromItsJson) {
  const kiln_value x = input("x", {dim("n"), {4, 0}});
  const int64_t last = -1;
  const host::Graph graph = finish(add("softmax", {add("exp", {x})}, {host::attr("dim", KILN_ATTR_I64, 1, &last)}));
  const std::string json = host::write(graph.get(), "json");
  EXPECT_EQ(host::write(host::parse(context.get(), json).get(), "json"), json);
  EXPECT_NE(host::write(graph.get(), "dot").find("digraph"), std::string::npos);
}

// As `sum` tells its default to whoever copies a node.
TEST_F(GraphTest, ADtypeOfAnOpMayBeNone) {
  const kiln_value x = input("x", {{4, 0}}, KILN_U8);
  const kiln_dtype none = 0, wide = KILN_I32;
  const kiln_value kept = add("sum", {x}, {host::attr("dtype", KILN_ATTR_DTYPE, 1, &none)});
  const kiln_value widened = add("sum", {x}, {host::attr("dtype", KILN_ATTR_DTYPE, 1, &wide)});
  kiln_dtype of_kept = 0, of_widened = 0;
  const kiln_graph *view = kiln_edit_view(edit.get());
  EXPECT_OK(kiln_value_dtype(view, kept, &of_kept));
  EXPECT_OK(kiln_value_dtype(view, widened, &of_widened));
  EXPECT_EQ(of_kept, KILN_U8);
  EXPECT_EQ(of_widened, KILN_I32);
}

TEST_F(GraphTest, UnknownFormatIsNamed) {
  const host::Graph graph = host::parse(context.get(), host::small_graph);
  kiln_blob *blob = nullptr;
  EXPECT_FAILS(kiln_graph_write(graph.get(), "xml", 3, &blob), KILN_UNKNOWN_NAME, "'xml'; there are: json, text, dot");
}

TEST_F(GraphTest, MixedDtypesAreRefusedAtOnce) {
  const kiln_value inputs[] = {input("x", {{4, 0}}), input("i", {{4, 0}}, KILN_I64)};
  kiln_node node = 0;
  EXPECT_FAILS(kiln_edit_add(edit.get(), op("add"), nullptr, 0, inputs, 2, nullptr, 0, &node), KILN_TYPE_MISMATCH,
               "[add]");
  EXPECT_EQ(node, 0u);
}

TEST_F(GraphTest, UnknownAttributeIsRefused) {
  const kiln_value x = input("x", {{4, 0}});
  const int64_t one = 1;
  const kiln_attr attr = host::attr("axis", KILN_ATTR_I64, 1, &one);
  kiln_node node = 0;
  EXPECT_FAILS(kiln_edit_add(edit.get(), op("softmax"), nullptr, 0, &x, 1, &attr, 1, &node), KILN_UNKNOWN_NAME, "axis");
}

TEST_F(GraphTest, UnknownOpSuggestsTheNearest) {
  kiln_op number = 0;
  EXPECT_FAILS(kiln_op_find(context.get(), "sofmax", 6, &number), KILN_UNKNOWN_NAME, "softmax");
  EXPECT_EQ(number, 0u);
}

TEST_F(GraphTest, AttributesReadBackWithDefaults) {
  const kiln_value x = input("x", {{2, 0}, {4, 0}});
  const kiln_value y = add("softmax", {x});
  const kiln_graph *view = kiln_edit_view(edit.get());
  kiln_attr attr{};
  ASSERT_OK(kiln_node_attr(view, y >> 32, "dim", 3, &attr));
  EXPECT_EQ(attr.kind, KILN_ATTR_I64);
  EXPECT_EQ(*static_cast<const int64_t *>(attr.data), -1);
  uint64_t count = 9;
  EXPECT_OK(kiln_node_attrs(view, y >> 32, nullptr, 0, &count));
  EXPECT_EQ(count, 0u) << "attributes at their defaults are not listed";
}

TEST_F(GraphTest, AGraphThatIsLeftOutIsNone) {
  const kiln_value q = input("q", {{1, 0}, {1, 0}, {2, 0}, {4, 0}});
  const kiln_value y = add("attention", {q, q, q});
  kiln_attr attr{};
  ASSERT_OK(kiln_node_attr(kiln_edit_view(edit.get()), y >> 32, "mask_graph", 10, &attr));
  EXPECT_EQ(attr.kind, KILN_ATTR_GRAPH);
  EXPECT_EQ(attr.count, 0u);
  const kiln_value same = add("attention", {q, q, q}, {attr});
  ASSERT_OK(kiln_node_attr(kiln_edit_view(edit.get()), same >> 32, "mask_graph", 10, &attr));
  EXPECT_EQ(attr.count, 0u);
}

TEST_F(GraphTest, IntegersServeAsDims) {
  const kiln_value x = input("x", {{2, 0}, {4, 0}});
  const int64_t shape[] = {8};
  const kiln_value y = add("reshape", {x}, {host::attr("shape", KILN_ATTR_I64 | KILN_ATTR_LIST, 1, shape)});
  kiln_dim dims[2] = {};
  uint64_t rank = 0;
  ASSERT_OK(kiln_value_dims(kiln_edit_view(edit.get()), y, dims, 2, &rank));
  EXPECT_EQ(rank, 1u);
  EXPECT_EQ(dims[0].value, 8);
}

TEST_F(GraphTest, ConstantsReadBack) {
  const host::Array array({2}, {1.5f, -2.0f});
  kiln_value constant = 0;
  ASSERT_OK(kiln_edit_constant(edit.get(), "c", 1, &array.tensor, &constant));
  const kiln_graph *view = kiln_edit_view(edit.get());
  const DLTensor *tensor = nullptr;
  ASSERT_OK(kiln_node_constant(view, constant >> 32, &tensor));
  EXPECT_EQ(static_cast<const float *>(tensor->data)[1], -2.0f);
  EXPECT_EQ(kiln_node_kind(view, constant >> 32), KILN_NODE_CONSTANT);
}

TEST_F(GraphTest, UsersAndUseCountsAreTold) {
  const kiln_value x = input("x", {{4, 0}});
  const kiln_value square = add("mul", {x, x});
  const host::Graph graph = finish(square);
  EXPECT_EQ(kiln_value_use_count(graph.get(), x), 2u);
  EXPECT_EQ(kiln_value_use_count(graph.get(), square), 1u);
  kiln_node user = 0;
  uint64_t count = 0;
  ASSERT_OK(kiln_value_users(graph.get(), x, &user, 1, &count));
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(user, square >> 32);
}

TEST_F(GraphTest, AScopeAnnotatesWhatIsAddedInIt) {
  const kiln_value x = input("x", {{4, 0}});
  const kiln_text region{"hot", 3};
  const kiln_attr annotation = host::attr("kiln.region", KILN_ATTR_TEXT, 1, &region);
  ASSERT_OK(kiln_edit_scope(edit.get(), &annotation, 1));
  const kiln_value inside = add("exp", {x});
  ASSERT_OK(kiln_edit_scope(edit.get(), nullptr, 0));
  const kiln_value outside = add("exp", {inside});
  EXPECT_FAILS(kiln_edit_scope(edit.get(), nullptr, 0), KILN_INVALID_ARGUMENT, "scope");
  kiln_attr found{};
  uint64_t count = 0;
  ASSERT_OK(kiln_node_annotations(kiln_edit_view(edit.get()), inside >> 32, &found, 1, &count));
  ASSERT_EQ(count, 1u);
  EXPECT_EQ(host::text_of(*static_cast<const kiln_text *>(found.data)), "hot");
  ASSERT_OK(kiln_node_annotations(kiln_edit_view(edit.get()), outside >> 32, &found, 1, &count));
  EXPECT_EQ(count, 0u);
}

TEST_F(GraphTest, DimsAreTextsAndValues) {
  const kiln_dim twice = dim("2*n + 1");
  kiln_text text{};
  ASSERT_OK(kiln_dim_text(context.get(), &twice, &text));
  const kiln_dim again = dim(host::text_of(text));
  EXPECT_EQ(twice.expr, again.expr) << "equal expressions have one number";
  const kiln_text symbol{"n", 1};
  const int64_t five = 5;
  int64_t value = 0;
  EXPECT_OK(kiln_dim_evaluate(context.get(), &twice, &symbol, &five, 1, &value));
  EXPECT_EQ(value, 11);
  EXPECT_FAILS(kiln_dim_evaluate(context.get(), &twice, nullptr, nullptr, 0, &value), KILN_UNKNOWN_NAME, "symbol 'n'");
}

TEST_F(GraphTest, ADimOfAnotherContextIsRefused) {
  const kiln_dim stranger{0, 77};
  const kiln_type type{sizeof type, KILN_F32, 1, KILN_LAYOUT_ROW_MAJOR, &stranger, nullptr};
  kiln_value value = 0;
  EXPECT_FAILS(kiln_edit_input(edit.get(), "x", 1, &type, &value), KILN_INVALID_ARGUMENT, "number 77");
}

TEST_F(GraphTest, AFinishedGraphBeginsAnotherEdit) {
  const kiln_value x = input("x", {{4, 0}});
  const host::Graph before = finish(add("exp", {x}));
  kiln_edit *second = nullptr;
  ASSERT_OK(kiln_edit_begin(context.get(), before.get(), &second));
  edit.reset(second);
  kiln_value output = 0;
  uint64_t count = 0;
  ASSERT_OK(kiln_graph_signature(before.get(), KILN_SIDE_OUTPUTS, &output, 1, &count));
  const host::Graph after = finish(add("neg", {output}));
  EXPECT_EQ(host::write(before.get(), "text").find("neg"), std::string::npos) << "a graph never changes";
  EXPECT_NE(host::write(after.get(), "text").find("neg"), std::string::npos);
}

TEST_F(GraphTest, AGraphDescribesItself) {
  const host::Graph graph = host::parse(context.get(), host::small_graph);
  kiln_report *made = nullptr;
  ASSERT_OK(kiln_graph_describe(graph.get(), &made));
  const host::Report report(made);
  EXPECT_EQ(host::text(report, "inputs.0.name"), "x");
  EXPECT_EQ(host::text(report, "inputs.0.shape.0"), "n");
  EXPECT_EQ(host::i64(report, "inputs.0.shape.1"), 2);
  EXPECT_EQ(host::i64(report, "nodes"), 3);
}

TEST_F(GraphTest, DescribesAnyNumberOfInputsByTheirIndex) {
  std::string inputs;
  for (int i = 0; i < 200; ++i) {
    inputs += (i ? R"(, {"name": "x)" : R"({"name": "x)") + std::to_string(i) +
              R"(", "type": {"dtype": "f32", "shape": [2]}})";
  }
  const host::Graph graph =
      host::parse(context.get(), R"({"kiln": 1, "inputs": [)" + inputs +
                                     R"(], "nodes": [], "outputs": [{"name": "y", "value": "x7"}]})");
  kiln_report *made = nullptr;
  ASSERT_OK(kiln_graph_describe(graph.get(), &made));
  const host::Report report(made);
  uint64_t count = 0;
  ASSERT_OK(kiln_report_count(report.get(), "inputs", 6, &count));
  EXPECT_EQ(count, 200u);
  EXPECT_EQ(host::text(report, "inputs.0.name"), "x0");
  EXPECT_EQ(host::text(report, "inputs.199.name"), "x199");
  kiln_text none;
  EXPECT_FAILS(kiln_report_get_text(report.get(), "inputs.200.name", 15, &none), KILN_UNKNOWN_NAME, "inputs.200.name");
}

TEST(Ops, EveryOneDescribesItself) {
  const host::Context context = host::make_context();
  const uint64_t count = kiln_op_count(context.get());
  EXPECT_GE(count, 50u);
  std::string previous;
  for (uint64_t i = 0; i < count; i++) {
    kiln_op op = 0;
    kiln_text name{};
    ASSERT_OK(kiln_op_at(context.get(), i, &op));
    ASSERT_OK(kiln_op_name(context.get(), op, &name));
    EXPECT_LT(previous, host::text_of(name)) << "sorted by name";
    previous = host::text_of(name);
    kiln_op found = 0;
    EXPECT_OK(kiln_op_find(context.get(), name.data, name.size, &found));
    EXPECT_EQ(found, op);
    kiln_report *made = nullptr;
    ASSERT_OK(kiln_op_describe(context.get(), op, &made));
    const host::Report report(made);
    EXPECT_EQ(host::text(report, "name"), previous);
    EXPECT_NE(host::text(report, "doc"), "");
  }
  kiln_op op = 0;
  EXPECT_FAILS(kiln_op_at(context.get(), count, &op), KILN_OUT_OF_RANGE, "op");
}

}  // namespace
