#include "host.h"

namespace {

TEST(Error, CarriesCodeMessageAndCause) {
  kiln_error *cause = kiln_error_create(KILN_IO, "disk", 4, nullptr);
  const host::Error error = host::take(kiln_error_create(KILN_PLUGIN_FAILED, "pass", 4, cause));
  EXPECT_EQ(error.code, KILN_PLUGIN_FAILED);
  EXPECT_EQ(error.message, "pass");
  EXPECT_EQ(error.cause, "disk");
}

TEST(Error, AChainOfCausesMayBeLong) {
  constexpr int length = 100000;
  kiln_error *error = nullptr;
  for (int i = 0; i < length; ++i) error = kiln_error_create(KILN_IO, "on", 2, error);
  int found = 0;
  for (const kiln_error *at = error; at; at = kiln_error_cause(at)) ++found;
  EXPECT_EQ(found, length);
  EXPECT_EQ(kiln_error_cause(error), kiln_error_cause(error));
  kiln_error_destroy(error);
}

TEST(Error, ACauseIsItsErrorsToDestroy) {
  kiln_error *error = kiln_error_create(KILN_IO, "a", 1, kiln_error_create(KILN_BUSY, "b", 1, nullptr));
  auto *cause = const_cast<kiln_error *>(kiln_error_cause(error));
  kiln_error_destroy(cause);
  EXPECT_EQ(kiln_error_code(cause), KILN_BUSY);
  const host::Error above = host::take(kiln_error_create(KILN_IO, "c", 1, cause));
  EXPECT_EQ(above.cause, "returned the cause of another error, which is that one's");
  EXPECT_EQ(host::take(error).cause, "b");
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
  text = {"untouched", 9};
  kiln_error_node(nullptr, &text);
  EXPECT_EQ(text.size, 0u);
  EXPECT_EQ(kiln_error_cause(nullptr), nullptr);
  EXPECT_EQ(kiln_error_report(nullptr), nullptr);
  kiln_error_destroy(nullptr);
}

// What x[i] is, in a graph of a call, of a branch, and by itself.
std::string picks(std::string_view node, std::string_view graphs = "") {
  return R"({"kiln": 1, "inputs": [{"name": "p", "type": {"dtype": "bool", "shape": []}},
      {"name": "x", "type": {"dtype": "f32", "shape": ["n"]}}, {"name": "i", "type": {"dtype": "i64", "shape": [1]}}],
    "nodes": [)" +
         std::string(node) + R"(], "outputs": [{"name": "y", "value": "a"}])" + std::string(graphs) + "}";
}
// A graph of x and i, by its one node.
std::string graph_of(std::string_view name, std::string_view node) {
  return '"' + std::string(name) + R"(": {"inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n"]}},
      {"name": "i", "type": {"dtype": "i64", "shape": [1]}}],
    "nodes": [{"name": "g", )" +
         std::string(node) + R"(}], "outputs": [{"name": "y", "value": "g"}]})";
}
const std::string picking = R"("op": "gather", "inputs": ["x", "i"], "attrs": {"dim": 0})",
                  pick = graph_of("pick", picking),
                  other = graph_of("other", R"("op": "convert", "inputs": ["i"], "attrs": {"dtype": "f32"})");
const std::string itself = picks(R"({"name": "a", )" + picking + "}"),
                  called = picks(R"({"name": "a", "op": "call", "inputs": ["x", "i"], "attrs": {"graph": "pick"}})",
                                 R"(, "graphs": {)" + pick + "}"),
                  branch = picks(R"({"name": "a", "op": "cond", "inputs": ["p", "x", "i"],
                                     "attrs": {"then_graph": "pick", "else_graph": "other"}})",
                                 R"(, "graphs": {)" + pick + ", " + other + "}");

class NodeOfAnError : public testing::TestWithParam<std::string> {
 protected:
  // Of a run of the graph with an index that is not there.
  host::Error run(std::string_view json) {
    const host::Context context = host::make_context();
    const host::Compiled compiled =
        host::compile(context.get(), host::parse(context.get(), json).get(), [](kiln_options *options) {
          EXPECT_OK(kiln_options_set_text(options, "backend", 7, GetParam().data(), GetParam().size()));
        });
    EXPECT_EQ(compiled.error, host::Error());
    kiln_call *call = nullptr;
    EXPECT_OK(kiln_call_create(compiled.executable.get(), &call));
    const host::Call owned(call);
    const host::Array x({2}, {1, 2}), y({1}, {0});
    host::Bool yes{1};
    int64_t index = 5, one = 1;
    const DLTensor i{&index, {kDLCPU, 0}, 1, {kDLInt, 64, 1}, &one, nullptr, 0};
    const DLTensor *args[] = {&yes.tensor, &x.tensor, &i, &y.tensor};
    return host::take(kiln_call_run(call, args, 4, nullptr));
  }
};
INSTANTIATE_TEST_SUITE_P(Backends, NodeOfAnError, testing::Values("cpu", "reference"),
                         [](const auto &instance) { return instance.param; });

TEST_P(NodeOfAnError, IsTheOneThatARunFailedAt) {
  EXPECT_EQ(run(itself).node, "a");
  EXPECT_EQ(run(called).node, "a.g");
  EXPECT_EQ(run(branch).node, "a.then_graph.g");
}

size_t count_of(std::string_view word, std::string_view text) {
  size_t count = 0;
  for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) ++count;
  return count;
}

// Nodes that are equal but for their operands run one graph.
TEST(Error, OfAReferenceKernelNamesTheNodeThatFailedOnce) {
  const host::Context context = host::make_context();
  const std::string_view json = R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": [2]}},
      {"name": "i", "type": {"dtype": "i64", "shape": [2]}}, {"name": "j", "type": {"dtype": "i64", "shape": [2]}}],
    "nodes": [{"name": "first", "op": "gather", "inputs": ["x", "i"], "attrs": {"dim": 0}},
              {"name": "second", "op": "gather", "inputs": ["first", "j"], "attrs": {"dim": 0}}],
    "outputs": [{"name": "y", "value": "second"}]})";
  const host::Compiled compiled =
      host::compile(context.get(), host::parse(context.get(), json).get(), [](kiln_options *options) {
        EXPECT_OK(kiln_options_set_text(options, "mode", 4, "none", 4));
        EXPECT_OK(kiln_options_set_text(options, "fallback", 8, "reference", 9));
      });
  ASSERT_EQ(compiled.error, host::Error());
  kiln_call *call = nullptr;
  ASSERT_OK(kiln_call_create(compiled.executable.get(), &call));
  const host::Call owned(call);
  const host::Array x({2}, {1, 2}), y({2}, {0, 0});
  int64_t right[] = {0, 1}, wrong[] = {0, 5}, two = 2;
  const auto indices = [&](int64_t *data) { return DLTensor{data, {kDLCPU, 0}, 1, {kDLInt, 64, 1}, &two, nullptr, 0}; };
  const DLTensor i = indices(right), j = indices(wrong);
  const DLTensor *second_fails[] = {&x.tensor, &i, &j, &y.tensor}, *first_fails[] = {&x.tensor, &j, &i, &y.tensor};
  for (const auto &[args, name] : {std::pair(second_fails, "second"), std::pair(first_fails, "first")}) {
    const host::Error error = host::take(kiln_call_run(call, args, 4, nullptr));
    EXPECT_EQ(error.code, KILN_OUT_OF_RANGE);
    EXPECT_EQ(error.node, name);
    EXPECT_EQ(error.message.find("node '" + std::string(name) + "': [gather] "), 0u) << error.message;
    EXPECT_EQ(count_of("node '", error.message), 1u) << error.message;
    EXPECT_EQ(count_of("gather", error.message), 1u) << error.message;
  }
}

TEST(Error, TellsTheNodeThatAGraphIsWrongAt) {
  const host::Context context = host::make_context();
  const std::string wrong = picks(R"({"name": "a", "op": "gather", "inputs": ["x", "i"], "attrs": {"dim": 3}})");
  kiln_graph *graph = nullptr;
  EXPECT_EQ(host::take(kiln_graph_parse(context.get(), wrong.data(), wrong.size(), &graph)).node, "a");
  const std::string unknown = picks(R"({"name": "a", "op": "gahter", "inputs": ["x", "i"]})");
  EXPECT_EQ(host::take(kiln_graph_parse(context.get(), unknown.data(), unknown.size(), &graph)).node, "")
      << "which a JSON path tells";
}

}  // namespace
