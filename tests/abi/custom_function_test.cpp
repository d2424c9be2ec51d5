// Functions with a gradient of their author's: what runs is the one graph, what is keyed is both, and the other is
// there for whoever differentiates.

#include "host.h"
#include "tests/temporary_folder.h"

namespace {

// The sign of x, whose gradient is the tangent wherever |x| is at most w ("straight through"): y = sign(x) + w.
std::string straight_through(std::string_view gradient = "masked", std::string_view names = "f",
                             std::string_view mark = "") {
  const std::string forward(names), backward = forward + "_back";
  return R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n"]}},
                                   {"name": "w", "type": {"dtype": "f32", "shape": ["n"]}}],
    "nodes": [{"name": "s", "op": "custom_function", "inputs": ["x", "w"],
               "attrs": {"forward_graph": ")" +
         forward + R"(", "backward_graph": ")" + backward + R"(", "gradients": [0]})" + std::string(mark) +
         R"(}, {"name": "y", "op": "mul", "inputs": ["s", "s"]}],
    "outputs": [{"name": "y", "value": "y"}],
    "graphs": {")" +
         forward + R"(": {
        "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["k"]}}, {"name": "w", "type": {"dtype": "f32", "shape": ["k"]}}],
        "nodes": [{"name": "sign", "op": "sign", "inputs": ["x"]}, {"name": "moved", "op": "add", "inputs": ["sign", "w"]},
                  {"name": "size", "op": "abs", "inputs": ["x"]}, {"name": "near", "op": "le", "inputs": ["size", "w"]}],
        "outputs": [{"name": "moved", "value": "moved"}, {"name": "near", "value": "near"}]}, ")" +
         backward + R"(": {
        "inputs": [{"name": "near", "type": {"dtype": "bool", "shape": ["k"]}}, {"name": "t", "type": {"dtype": "f32", "shape": ["k"]}}],
        "nodes": [{"name": "none", "op": "sub", "inputs": ["t", "t"]}, {"name": "masked", "op": "where", "inputs": ["near", "t", "none"]}],
        "outputs": [{"name": "g", "value": ")" +
         std::string(gradient) + R"("}]}}})";
}

std::vector<float> run_executable(kiln_executable *executable, const std::vector<const DLTensor *> &inputs,
                                  int64_t size) {
  kiln_call *made = nullptr;
  EXPECT_OK(kiln_call_create(executable, &made));
  const host::Call call(made);
  const host::Array y({size}, std::vector<float>(static_cast<size_t>(size)));
  std::vector<const DLTensor *> args = inputs;
  args.push_back(&y.tensor);
  EXPECT_OK(kiln_call_run(made, args.data(), args.size(), nullptr));
  return y.values;
}

class CustomFunction : public testing::Test {
 protected:
  host::Compiled compile(const host::Context &context, const std::string &json,
                         std::vector<std::pair<std::string_view, std::string_view>> options = {}) {
    const host::Graph graph = host::parse(context.get(), json);
    return host::compile(context.get(), graph.get(), [&](kiln_options *out) {
      for (const auto &[name, value] : options)
        EXPECT_OK(kiln_options_set_text(out, name.data(), name.size(), value.data(), value.size()));
    });
  }
  std::string lookup(const std::string &json) {
    const host::Context context = host::make_context(folder_.path());
    const host::Compiled compiled = compile(context, json);
    EXPECT_EQ(compiled.error, host::Error());
    EXPECT_OK(kiln_context_close(context.get()));
    return host::text(compiled.report, "lookup");
  }
  const kiln::test::TemporaryFolder folder_;
  const host::Array x_{{3}, {2, -0.5f, -3}}, w_{{3}, {1, 1, 4}};
};

TEST_F(CustomFunction, RunsItsForwardGraphInEveryModeAndOnTheReference) {
  const host::Context context = host::make_context("off");
  const std::string mark = R"(, "annotations": {"kiln.region": {"text": "r"}})";
  for (const auto &options : std::vector<std::vector<std::pair<std::string_view, std::string_view>>>{
           {},
           {{"mode", "marked"}},
           {{"mode", "none"}},
           {{"mode", "none"}, {"fallback", "reference"}},
           {{"backend", "reference"}}}) {
    const host::Compiled compiled = compile(context, straight_through("masked", "f", mark), options);
    ASSERT_EQ(compiled.error, host::Error());
    EXPECT_EQ(run_executable(compiled.executable.get(), {&x_.tensor, &w_.tensor}, 3), (std::vector<float>{4, 0, 9}));
  }
}

TEST_F(CustomFunction, WhatIsSavedCostsNothingWhereNobodyDifferentiates) {
  const host::Context context = host::make_context("off");
  const host::Compiled compiled = compile(context, straight_through());
  ASSERT_EQ(compiled.error, host::Error());
  EXPECT_EQ(host::i64(compiled.report, "kernels_distinct"), 1);
  const auto computes_abs = [](const host::Compiled &of) {
    kiln_blob *kernels = nullptr;
    EXPECT_OK(kiln_executable_text(of.executable.get(), "kernels", 7, &kernels));
    return host::bytes_of(kernels).find("abs") != std::string::npos;
  };
  EXPECT_FALSE(computes_abs(compiled));
  std::string all = straight_through();
  const std::string one = R"("outputs": [{"name": "moved", "value": "moved"})";
  all.replace(all.find(one), one.size(), R"("outputs": [{"name": "moved", "value": "size"})");
  EXPECT_TRUE(computes_abs(compile(context, all)));
}

TEST_F(CustomFunction, AMarkOwnsIt) {
  const host::Context context = host::make_context("off");
  const host::Compiled compiled =
      compile(context, straight_through("masked", "f", R"(, "annotations": {"kiln.region": {"text": "r"}})"),
              {{"mode", "marked"}});
  ASSERT_EQ(compiled.error, host::Error());
  const host::Report told = host::describe(compiled.executable.get());
  EXPECT_EQ(host::text(told, "compile.partition.regions.0.name"), "r");
  EXPECT_EQ(host::text(told, "compile.partition.fallbacks.0.node"), "y");
}

TEST_F(CustomFunction, ItsContentIsItsIdentityAndItsBackwardIsPartOfIt) {
  EXPECT_EQ(lookup(straight_through()), "MISS");
  EXPECT_EQ(lookup(straight_through()), "HIT");
  EXPECT_EQ(lookup(straight_through("masked", "another_name")), "HIT");
  EXPECT_EQ(lookup(straight_through("t")), "MISS");
}

TEST_F(CustomFunction, ItsBackwardGraphIsReadFromTheNodeAndRuns) {
  const host::Context context = host::make_context("off");
  const host::Graph graph = host::parse(context.get(), straight_through());
  kiln_node node = 0;
  ASSERT_OK(kiln_graph_find(graph.get(), "s", 1, &node));
  kiln_attr attr{};
  ASSERT_OK(kiln_node_attr(graph.get(), node, "backward_graph", 14, &attr));
  ASSERT_EQ(attr.kind, KILN_ATTR_GRAPH);
  const kiln_graph *backward = *static_cast<const kiln_graph *const *>(attr.data);
  const host::Compiled compiled = host::compile(context.get(), backward);
  ASSERT_EQ(compiled.error, host::Error());
  uint8_t near[] = {0, 1, 1};
  int64_t dims[] = {3};
  DLTensor saved{};
  saved.data = near;
  saved.device = {kDLCPU, 0};
  saved.ndim = 1;
  saved.dtype = {kDLBool, 8, 1};
  saved.shape = dims;
  const host::Array tangent({3}, {5, 6, 7});
  EXPECT_EQ(run_executable(compiled.executable.get(), {&saved, &tangent.tensor}, 3), (std::vector<float>{0, 6, 7}));
}

TEST_F(CustomFunction, IsSpecialised) {
  const host::Context context = host::make_context("off");
  const host::Graph graph = host::parse(context.get(), straight_through());
  const host::Compiled compiled = host::compile(context.get(), graph.get(), [](kiln_options *options) {
    const kiln_text sizes{"n=3", 3};
    const kiln_attr attr = host::attr("specialize", KILN_ATTR_TEXT | KILN_ATTR_LIST, 1, &sizes);
    EXPECT_OK(kiln_options_set(options, &attr));
  });
  ASSERT_EQ(compiled.error, host::Error());
  EXPECT_EQ(run_executable(compiled.executable.get(), {&x_.tensor, &w_.tensor}, 3), (std::vector<float>{4, 0, 9}));
}

}  // namespace
