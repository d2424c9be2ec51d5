// A part of a graph, by an annotation, as a graph of its own.
#include "host.h"

namespace {

// "a b": the names of a graph's side, of *out_map or of kiln_graph_describe.
std::string names(const host::Report &report, const std::string &side, const char *member = "name") {
  std::string all;
  uint64_t count = 0;
  EXPECT_OK(kiln_report_count(report.get(), side.data(), side.size(), &count));
  for (uint64_t i = 0; i < count; ++i)
    all += (i ? " " : "") + host::text(report, side + "." + std::to_string(i) + "." + member);
  return all;
}

struct Part {
  host::Error error;
  host::Graph graph;
  host::Report map;
};
Part extract(kiln_context *context, const kiln_graph *graph, std::string_view key, std::string_view value) {
  kiln_graph *made = nullptr;
  kiln_report *map = nullptr;
  host::Error error =
      host::take(kiln_graph_extract(context, graph, key.data(), key.size(), value.data(), value.size(), &made, &map));
  return {std::move(error), host::Graph(made), host::Report(map)};
}

// y = tanh(exp(sin(x))) * w in two stages and an output between.
constexpr std::string_view two_stages = R"({"kiln": 1,
    "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n"]}}],
    "parameters": [{"name": "w", "type": {"dtype": "f32", "shape": [1]}}],
    "nodes": [
      {"name": "a", "op": "sin", "inputs": ["x"], "annotations": {"kiln.stage": {"text": "first"}}},
      {"name": "b", "op": "exp", "inputs": ["a"], "annotations": {"kiln.stage": {"text": "first"}, "mine": {"i64": 3}}},
      {"name": "c", "op": "tanh", "inputs": ["b"], "annotations": {"kiln.stage": {"text": "second"}}},
      {"name": "d", "op": "mul", "inputs": ["c", "w"], "annotations": {"kiln.stage": {"text": "second"}}},
      {"name": "e", "op": "add", "inputs": ["d", "a"]}],
    "outputs": [{"name": "y", "value": "e"}, {"name": "h", "value": "b"}]})";

// Runs a graph whose signature the arrays fill, inputs, parameters, then outputs.
void run(kiln_context *context, const kiln_graph *graph, const std::vector<const host::Array *> &arrays) {
  const host::Compiled compiled = host::compile(context, graph);
  ASSERT_EQ(compiled.error.code, KILN_OK) << compiled.error.message;
  kiln_call *made = nullptr;
  ASSERT_OK(kiln_call_create(compiled.executable.get(), &made));
  const host::Call call(made);
  for (uint32_t slot = 0; slot < arrays.size(); ++slot) ASSERT_OK(kiln_call_bind(made, slot, &arrays[slot]->tensor));
  ASSERT_OK(kiln_call_run(made, nullptr, 0, nullptr));
}

TEST(Extract, StagesThatRunOneAfterAnotherGiveWhatTheWholeGives) {
  const host::Context context = host::make_context();
  const host::Graph whole = host::parse(context.get(), two_stages);
  const Part first = extract(context.get(), whole.get(), "kiln.stage", "first");
  ASSERT_EQ(first.error, host::Error());
  EXPECT_EQ(names(first.map, "inputs"), "x");
  EXPECT_EQ(names(first.map, "outputs"), "a b");
  EXPECT_EQ(names(first.map, "outputs", "from"), "a b");
  const Part second = extract(context.get(), whole.get(), "kiln.stage", "second");
  ASSERT_EQ(second.error, host::Error());
  EXPECT_EQ(names(second.map, "inputs"), "b");
  EXPECT_EQ(names(second.map, "parameters"), "w");
  EXPECT_EQ(names(second.map, "outputs"), "d");
  EXPECT_NE(host::write(first.graph.get(), "text").find("mine=3"), std::string::npos) << "annotations stay";

  const std::vector<float> zeros(3);
  const host::Array x({3}, {-1, 0.5f, 2}), w({1}, {3}), a({3}, zeros), b({3}, zeros), d({3}, zeros), y({3}, zeros),
      h({3}, zeros);
  run(context.get(), whole.get(), {&x, &w, &y, &h});
  run(context.get(), first.graph.get(), {&x, &a, &b});
  run(context.get(), second.graph.get(), {&b, &w, &d});
  EXPECT_EQ(b.values, h.values);
  for (size_t k = 0; k < 3; ++k) EXPECT_EQ(d.values[k] + a.values[k], y.values[k]);
}

TEST(Extract, ASizeThatNoInputTellsComesByOneThatNothingReads) {
  const host::Context context = host::make_context();
  const host::Graph whole = host::parse(context.get(), R"({"kiln": 1,
      "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n"]}}],
      "nodes": [{"name": "s", "op": "sum", "inputs": ["x"], "attrs": {"dims": [0]}},
                {"name": "wide", "op": "expand", "inputs": ["s"], "attrs": {"shape": ["n"]},
                 "annotations": {"kiln.stage": {"text": "p"}}}],
      "outputs": [{"name": "y", "value": "wide"}]})");
  const Part part = extract(context.get(), whole.get(), "kiln.stage", "p");
  ASSERT_EQ(part.error, host::Error());
  EXPECT_EQ(names(part.map, "inputs"), "s size.n");
  EXPECT_EQ(host::text(part.map, "inputs.0.from"), "s");
  EXPECT_EQ(host::text(part.map, "inputs.1.size"), "n");

  const host::Array s({}, {5}), y({3}, std::vector<float>(3));
  host::Array size({3}, {0});
  size.tensor.dtype = {kDLBool, 8, 1};
  run(context.get(), part.graph.get(), {&s, &size, &y});
  EXPECT_EQ(y.values, (std::vector<float>{5, 5, 5}));
}

// A stage that writes a cache, with `outside` behind it in no stage.
std::string writing_stage(const std::string &outside) {
  return R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": [2]}},
                                   {"name": "k", "type": {"dtype": "f32", "shape": [2]}}],
    "nodes": [{"name": "a", "op": "sin", "inputs": ["x"], "annotations": {"kiln.stage": {"text": "s"}}},
      {"name": "c", )" +
         outside + R"(},
      {"name": "w", "op": "copy_", "inputs": ["k", "a"], "annotations": {"kiln.stage": {"text": "s"}}}],
    "outputs": [{"name": "c", "value": "c"}]})";
}

TEST(Extract, AStageThatWritesAnInputWaitsForNoneButItsReaders) {
  const host::Context context = host::make_context();
  const host::Graph whole = host::parse(context.get(), writing_stage(R"("op": "cos", "inputs": ["a"])"));
  const Part stage = extract(context.get(), whole.get(), "kiln.stage", "s");
  ASSERT_EQ(stage.error, host::Error());
  EXPECT_EQ(names(stage.map, "outputs"), "a");
  const host::Array x({2}, {0, 1}), k({2}, {7, 7}), a({2}, {9, 9});
  run(context.get(), stage.graph.get(), {&x, &k, &a});
  EXPECT_EQ(k.values, a.values);
  EXPECT_NEAR(k.values[1], 0.841471f, 1e-6);

  const host::Graph reads = host::parse(context.get(), writing_stage(R"("op": "add", "inputs": ["a", "k"])"));
  EXPECT_EQ(
      extract(context.get(), reads.get(), "kiln.stage", "s").error.message,
      "the part 's' (annotation 'kiln.stage') is no graph of its own: a path leaves it and comes back, 'a', 'c', 'w'");
}

TEST(Extract, WhatHasNoGraphOfItsOwnIsRefusedAndSaysWhy) {
  const host::Context context = host::make_context();
  const host::Graph whole = host::parse(context.get(), R"({"kiln": 1,
      "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n"]}}],
      "nodes": [{"name": "a", "op": "sin", "inputs": ["x"], "annotations": {"mine": {"text": "p"}}},
                {"name": "b", "op": "exp", "inputs": ["a"]},
                {"name": "c", "op": "neg", "inputs": ["b"]},
                {"name": "d", "op": "tanh", "inputs": ["c"], "annotations": {"mine": {"text": "p"}}}],
      "outputs": [{"name": "y", "value": "d"}]})");
  const Part around = extract(context.get(), whole.get(), "mine", "p");
  EXPECT_EQ(around.error.code, KILN_INVALID_ARGUMENT);
  EXPECT_NE(around.error.message.find("a path leaves it and comes back, 'a', 'b', 'c', 'd'"), std::string::npos)
      << around.error.message;
  const Part absent = extract(context.get(), whole.get(), "mine", "q");
  EXPECT_EQ(absent.error.code, KILN_UNKNOWN_NAME);
  EXPECT_NE(absent.error.message.find("no node has 'q' as annotation 'mine'; there are 'p'"), std::string::npos)
      << absent.error.message;
  const host::Context other = host::make_context();
  EXPECT_EQ(extract(other.get(), whole.get(), "mine", "p").error.code, KILN_INVALID_ARGUMENT);
}

}  // namespace
