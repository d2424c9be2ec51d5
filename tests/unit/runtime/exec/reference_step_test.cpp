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
  a.graph_json = R"({"kiln": 1,
    "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n", 2]}}],
    "parameters": [{"name": "w", "type": {"dtype": "f32", "shape": [2]}}],
    "nodes": [{"name": "d", "op": "sub", "inputs": ["x", "w"]}, {"name": "c", "op": "copy_", "inputs": ["x", "d"]}],
    "outputs": [{"name": "z", "value": "d"}]})";
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
    a.graph_json.replace(a.graph_json.find(from), from.size(), to);
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

}  // namespace
}  // namespace kiln
