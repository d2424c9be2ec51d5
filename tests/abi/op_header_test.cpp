// kiln/op.hpp, by plugins/op_author.cpp: y = by * x + plus, with some elements more.
#include "host.h"
#include "tests/paths.h"

namespace {

class OpHeader : public testing::Test {
 protected:
  void SetUp() override {
    const std::string path = kiln::test::binary_dir + "/test_plugins/op_author.so";
    ASSERT_OK(kiln_plugin_load(context.get(), path.data(), path.size(), nullptr));
  }
  static std::string json(const std::string &attrs, const std::string &shape = R"(["n"])",
                          const std::string &inputs = R"(["x"])") {
    return R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": )" + shape +
           R"(}}, {"name": "z", "type": {"dtype": "f32", "shape": [3]}}],
        "nodes": [{"name": "y", "op": "author.extend", "inputs": )" +
           inputs + R"(, "attrs": {)" + attrs + R"(}}], "outputs": [{"name": "y", "value": "y"}]})";
  }
  host::Error parse(const std::string &text) const {
    kiln_graph *graph = nullptr;
    const host::Error error = host::take(kiln_graph_parse(context.get(), text.data(), text.size(), &graph));
    kiln_graph_destroy(graph);
    return error;
  }
  host::Call call_of(const std::string &attrs) const {
    const host::Graph graph = host::parse(context.get(), json(attrs));
    const host::Compiled compiled = host::compile(context.get(), graph.get());
    EXPECT_EQ(compiled.error, host::Error());
    kiln_call *call = nullptr;
    EXPECT_OK(kiln_call_create(compiled.executable.get(), &call));
    return host::Call(call);
  }
  static host::Error run(const host::Call &call, const host::Array &x, const host::Array &y) {
    const host::Array z({3}, {0, 0, 0});
    const DLTensor *args[] = {&x.tensor, &z.tensor, &y.tensor};
    return host::take(kiln_call_run(call.get(), args, 3, nullptr));
  }
  const host::Context context = host::make_context();
};

TEST_F(OpHeader, AnOpReadsItsAttributesAndTellsShapesByExpressions) {
  const host::Call call = call_of(R"("by": 2, "plus": 1, "more": 2)");
  for (const int64_t n : {1, 3}) {
    const host::Array x({n}, std::vector<float>(static_cast<size_t>(n), 4));
    const host::Array y({n + 2}, std::vector<float>(static_cast<size_t>(n) + 2));
    EXPECT_EQ(run(call, x, y), host::Error());
    std::vector<float> expected(static_cast<size_t>(n), 9);
    expected.insert(expected.end(), 2, 1);
    EXPECT_EQ(y.values, expected);
  }
}

TEST_F(OpHeader, AnObjectIsTheStateOfOneCall) {
  const host::Call one = call_of(R"("counts": true)"), two = call_of(R"("counts": true)");
  const host::Array x({1}, {0}), y({1}, {0});
  for (const host::Call *call : {&one, &one, &two}) EXPECT_EQ(run(*call, x, y), host::Error());
  EXPECT_EQ(y.values[0], 1);
  EXPECT_EQ(run(one, x, y), host::Error());
  EXPECT_EQ(y.values[0], 3);
}

TEST_F(OpHeader, WhatInferThrowsIsTheNodesErrorWithItsCode) {
  struct Failure {
    std::string json;
    uint32_t code;
    const char *message;
  };
  const std::string both = R"(["x", "z"])";
  for (const Failure &failure : {
           Failure{json(R"("fails": "infer")"), KILN_UNIMPLEMENTED, "no such luck in infer"},
           Failure{json("", R"(["n", 2])"), KILN_TYPE_MISMATCH, "x is [n, 2], expected [n]"},
           Failure{json("", "[]"), KILN_TYPE_MISMATCH, "x is [], expected [n]"},
           Failure{json("", "[2]", both), KILN_TYPE_MISMATCH, "x dim 0 and like dim 0 must be equal; they are 2 and 3"},
           Failure{json(R"("fails": "kind")"), KILN_TYPE_MISMATCH, "attribute 'by' is of another kind"},
           Failure{json(R"("fails": "name")"), KILN_UNKNOWN_NAME, "op 'author.extend' has no attribute 'tall'"},
           Failure{json(R"("fails": "operand")"), KILN_OUT_OF_RANGE, "kiln_op_call_dims: operand 7 of 1"},
       }) {
    const host::Error error = parse(failure.json);
    EXPECT_EQ(error.code, failure.code) << error;
    EXPECT_EQ(error.message, std::string("nodes[0]: node 'y': [author.extend] ") + failure.message);
    EXPECT_EQ(error.plugin, "op_author");
  }
}

TEST_F(OpHeader, WhatARunThrowsEndsItAndTheNextOneWorks) {
  const std::string before = "node 'y': [author.extend] ";
  const host::Array x({1}, {0}), y({1}, {0});
  for (const auto &[fails, code, message] : std::initializer_list<std::tuple<const char *, uint32_t, const char *>>{
           {"open", KILN_UNIMPLEMENTED, "no such luck in open"},
           {"run", KILN_OUT_OF_RANGE, "no such luck"},
           {"exception", KILN_PLUGIN_FAILED, "thrown"},
           {"int", KILN_PLUGIN_FAILED, "it threw what is no std::exception"},
           {"memory", KILN_OUT_OF_MEMORY, ""}}) {
    const host::Call call = call_of(std::string(R"("fails": ")") + fails + "\"");
    for (int i = 0; i < 2; i++) {
      const host::Error error = run(call, x, y);
      EXPECT_EQ(error.code, code) << error;
      EXPECT_NE(error.message.find(before + message), std::string::npos) << error;
    }
  }
  EXPECT_EQ(run(call_of(""), x, y), host::Error());
}

}  // namespace
