#include "runtime/exec/reference_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/ops/op.h"
#include "tests/unit/runtime/exec/example_call.h"

namespace kiln {
namespace {

using example::Floats;
using example::run;
using testing::ElementsAre;

// z = x - w, and x = z, all f32[n, 2]; `column_major` outputs have strides (1, n).
Artifact subtract(bool column_major) {
  using Kind = Plan::Slot::Kind;
  const Expr n = Expr::symbol("n");
  Plan p;
  p.inputs = {example::argument("x", {n, 2})};
  p.parameters = {example::argument("w", {2})};
  p.outputs = {example::argument("z", {n, 2})};
  if (column_major) p.outputs[0].strides = {1, n};
  p.written_inputs = {0};
  p.symbols = {{.name = "n", .input = 0, .dim = 0}};
  p.slots = {{Kind::input, 0, 8 * n}, {Kind::parameter, 0, 8}, {Kind::output, 0, 8 * n}};
  Plan::Step step;
  step.kind = Plan::Step::Kind::reference;
  step.slots = {0, 1, 2};
  p.steps = {step};
  Artifact a = example::artifact_of(std::move(p), {}, {});
  a.backend = "reference";
  a.graphs = {R"({"kiln": 1,
    "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n", 2]}}],
    "parameters": [{"name": "w", "type": {"dtype": "f32", "shape": [2]}}],
    "nodes": [{"name": "d", "op": "sub", "inputs": ["x", "w"]}, {"name": "c", "op": "copy_", "inputs": ["x", "d"]}],
    "outputs": [{"name": "z", "value": "d"}]})"};
  return a;
}

std::unique_ptr<Call> call_of(Artifact artifact) {
  auto executable = Executable::load(std::make_shared<const Artifact>(std::move(artifact)), builtin_ops(),
                                     std::make_shared<ThreadPool>(1), example::build);
  EXPECT_TRUE(executable.ok()) << executable.status().message();
  return std::move(Call::create(std::move(executable).value())).value();
}

TEST(ReferenceStep, ReadsArraysAndWritesOutputsAndInputs) {
  auto call = call_of(subtract(false));
  Floats x({2, 2}, 10), w({2}), z({2, 2});
  ASSERT_TRUE(call->bind(1, w, nullptr).ok());
  const Status status = run(*call, x, z);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_THAT(z.values, ElementsAre(10, 10, 12, 12));
  EXPECT_THAT(x.values, ElementsAre(10, 10, 12, 12));
}

TEST(ReferenceStep, WritesTheDeclaredLayout) {
  auto call = call_of(subtract(true));
  Floats x({2, 2}, 10), w({2});
  ASSERT_TRUE(call->bind(1, w, nullptr).ok());
  const Status status = run(*call, x);
  ASSERT_TRUE(status.ok()) << status.message();
  const auto taken = call->take(2);
  EXPECT_THAT(taken->strides, ElementsAre(1, 2));
  const auto *z = static_cast<const float *>(taken->data);
  EXPECT_THAT(std::vector<float>(z, z + 4), ElementsAre(10, 12, 10, 12));
  Floats row_major({2, 2});
  EXPECT_THAT(
      run(*call, x, row_major).message(),
      testing::HasSubstr("output 'z': stride of dim 0 is 2, expected 1 elements; copy it to the declared layout"));
}

// A symbol's range and a check are in the plan alone: the graph's kernels rely on them without asking.
TEST(ReferenceStep, AGraphOfAnotherSignatureDoesNotLoad) {
  const auto message_after = [](auto change) {
    Artifact a = subtract(false);
    change(a);
    return Executable::load(std::make_shared<const Artifact>(std::move(a)), builtin_ops(),
                            std::make_shared<ThreadPool>(1), example::build)
        .status()
        .message();
  };
  const auto replaced = [](Artifact &a, std::string_view from, std::string_view to) {
    a.graphs[0].replace(a.graphs[0].find(from), from.size(), to);
  };
  EXPECT_EQ(message_after([](Artifact &) {}), "");
  const std::string refused = "the artifact's graph and its plan have different signatures";
  EXPECT_EQ(message_after([](Artifact &a) {
              a.plan.outputs.push_back(a.plan.outputs[0]);
              a.plan.steps[0].slots.push_back(2);
            }),
            refused);
  EXPECT_EQ(message_after([](Artifact &a) { a.plan.inputs[0].dtype = DType::i32; }), refused);
  EXPECT_EQ(message_after([](Artifact &a) { a.plan.parameters[0].dims = {1}; }), refused);
  EXPECT_EQ(message_after([](Artifact &a) { a.plan.outputs[0].dims = {2, Expr::symbol("n")}; }), refused);
  EXPECT_EQ(message_after([](Artifact &a) { a.plan.symbols[0].max = 5; }), refused);
  EXPECT_EQ(message_after([](Artifact &a) { a.plan.written_inputs.clear(); }), refused);
  const auto with_check = [&](bool is_in_plan) {  // m = 2
    return message_after([&](Artifact &a) {
      a.plan.symbols.insert(a.plan.symbols.begin(), {.name = "m", .input = 0, .dim = 1});
      a.plan.inputs[0].dims[1] = Expr::symbol("m");
      replaced(a, R"(["n", 2])", R"(["n", "m"])");
      if (is_in_plan) a.plan.checks.push_back({.left = Expr::symbol("m"), .right = 2, .what = "m and 2"});
    });
  };
  EXPECT_EQ(with_check(true), "");
  EXPECT_EQ(with_check(false), refused);
}

// z = -(x + x), by way of the arena: two nested plans, whose one step runs a graph of its own.
Artifact calls() {
  using Kind = Plan::Slot::Kind;
  const Expr n = Expr::symbol("n"), k = Expr::symbol("k");
  Plan inner;
  inner.inputs = {example::argument("u", {k})};
  inner.outputs = {example::argument("v", {k})};
  inner.symbols = {{.name = "k", .input = 0, .dim = 0}};
  inner.slots = {{Kind::input, 0, 4 * k}, {Kind::output, 0, 4 * k}};
  inner.steps = {{.kind = Plan::Step::Kind::reference, .slots = {0, 1}}};
  Plan twice = inner;
  twice.steps[0].graph = 1;
  Plan p;
  p.inputs = {example::argument("x", {n})};
  p.outputs = {example::argument("z", {n})};
  p.symbols = {{.name = "n", .input = 0, .dim = 0}};
  p.slots = {{Kind::input, 0, 4 * n}, {Kind::arena, 0, 4 * n}, {Kind::output, 0, 4 * n}};
  p.arena = {{4 * n}};
  p.nested = {inner, twice};
  p.steps = {{.kind = Plan::Step::Kind::call, .slots = {0, 1}, .nested = {{1, {n}}}},
             {.kind = Plan::Step::Kind::call, .slots = {1, 2}, .nested = {{0, {n}}}}};
  Artifact a = example::artifact_of(std::move(p), {}, {});
  const auto graph = [](std::string_view node) {
    return str_cat(R"({"kiln":1,"inputs":[{"name":"u","type":{"dtype":"f32","shape":["k"]}}],"nodes":[)", node,
                   R"(],"outputs":[{"name":"v","value":"r"}]})");
  };
  a.graphs = {graph(R"({"name":"r","op":"neg","inputs":["u"]})"),
              graph(R"({"name":"r","op":"add","inputs":["u","u"]})")};
  return a;
}

TEST(ReferenceStep, RunsAGraphOnSlotsOfThePlanThatCallsIt) {
  const Result<Artifact> read = read_artifact(write_artifact(calls()));
  ASSERT_TRUE(read.ok()) << read.status().message();
  auto call = call_of(*read);
  for (const int64_t n : {3, 1, 4}) {
    Floats x({n}, 1), z({n});
    const Status status = run(*call, x, z);
    ASSERT_TRUE(status.ok()) << status.message();
    for (size_t i = 0; i < z.values.size(); ++i) EXPECT_EQ(z.values[i], -2 * x.values[i]);
  }
}

TEST(ReferenceStep, GraphsOfNestedPlansAreHeldToTheirSignatures) {
  const auto message_after = [](auto change) {
    Artifact a = calls();
    change(a);
    return Executable::load(std::make_shared<const Artifact>(std::move(a)), builtin_ops(),
                            std::make_shared<ThreadPool>(1), example::build)
        .status()
        .message();
  };
  EXPECT_EQ(message_after([](Artifact &a) { a.plan.nested[1].steps[0].graph = 2; }),
            "a step runs graph 2, expected below 2");
  EXPECT_EQ(message_after([](Artifact &a) { a.plan.nested[0].outputs[0].dtype = DType::i32; }),
            "the artifact's graph and its plan have different signatures");
}

}  // namespace
}  // namespace kiln
