// Plans in plans: what verify_plan() refuses of them.
#include "runtime/plan/verify_plan.h"
#include "tests/unit/runtime/example_artifact.h"
#include "tests/unit/runtime/graphs.h"

namespace kiln {
namespace {

using Kind = Plan::Slot::Kind;
using StepKind = Plan::Step::Kind;

// out = in + in, f32[k].
Plan turn() {
  const Expr k = Expr::symbol("k");
  Plan p;
  p.inputs = {example::argument("in", {k})};
  p.outputs = {example::argument("out", {k})};
  p.symbols = {{.name = "k", .input = 0, .dim = 0}};
  p.slots = {{Kind::input, 0, 4 * k}, {Kind::output, 0, 4 * k}};
  p.steps = {example::launch(0, {0, 0, 1}, {0})};
  return p;
}
// more = a constant, bool[].
Plan go_on() {
  Plan p = turn();
  p.outputs = {example::argument("more", {}, DType::boolean)};
  p.slots = {{Kind::input, 0, 4 * Expr::symbol("k")}, {Kind::constant, 0, 1}, {Kind::output, 0, 1}};
  p.steps = {{.kind = StepKind::copy, .slots = {1, 2}}};
  return p;
}

// z is what a loop makes of x, then, if p, twice that; f32[n].
Artifact example() {
  const Expr n = Expr::symbol("n");
  Plan p;
  p.inputs = {example::argument("x", {n}), example::argument("p", {}, DType::boolean)};
  p.outputs = {example::argument("z", {n})};
  p.symbols = {{.name = "n", .input = 0, .dim = 0}};
  p.slots = {{Kind::input, 0, 4 * n},
             {Kind::input, 1, 1},
             {Kind::output, 0, 4 * n},
             {Kind::arena, 0, 4 * n},
             {Kind::arena, 1, 4 * n}};
  p.arena = {{4 * n}, {4 * n}};
  p.nested = {go_on(), turn()};
  p.steps = {{.kind = StepKind::loop, .slots = {0, 3, 4}, .nested = {{0, {n}}, {1, {n}}}},
             {.kind = StepKind::branch, .slots = {1, 3, 2}, .nested = {{1, {n}}, {1, {n}}}}};
  Contract add = example::contract(2, Expr::symbol("s"));
  Artifact a = example::artifact_of(std::move(p), {example::add_kernel()}, {add});
  a.constants = {{DType::boolean, {}, {0}}};
  return a;
}

std::string message_of_verifying(void (*damage)(Plan &)) {
  Artifact a = example();
  damage(a.plan);
  const Status status = verify_plan(a.plan, a.contracts, a.constants);
  EXPECT_TRUE(status.ok() || status.code() == Code::corrupt);
  return std::string(status.ok() ? "accepted" : status.message());
}

TEST(VerifyNested, AcceptsTheExampleAndTakesTasksOver) {
  Artifact a = example();
  ASSERT_TRUE(verify_plan(a.plan, a.contracts, a.constants).ok())
      << verify_plan(a.plan, a.contracts, a.constants).message();
  EXPECT_EQ(a.plan.nested[1].steps[0].tasks, Expr::symbol("k"));
}

TEST(VerifyNested, RefusesPlansThatAreNotThereOrHaveOtherArguments) {
  EXPECT_EQ(message_of_verifying([](Plan &p) { p.steps[0].nested[1].plan = 2; }),
            "step 0: nested plan 2, expected below 2");
  EXPECT_EQ(message_of_verifying([](Plan &p) { p.steps[1].nested.pop_back(); }), "step 1: 1 nested plans, expected 2");
  EXPECT_EQ(message_of_verifying([](Plan &p) { p.steps[1].nested[0].symbols.clear(); }),
            "step 1: 0 sizes for a nested plan of 1 symbols");
  EXPECT_EQ(message_of_verifying([](Plan &p) { p.steps[0].slots.pop_back(); }),
            "step 0: 2 slots, its nested plans have 1 inputs and 1 outputs");
  EXPECT_EQ(message_of_verifying([](Plan &p) { p.prepare = {p.steps[1]}; }),
            "prepare step 0: prepare cannot run a nested plan");
}

TEST(VerifyNested, RefusesArgumentsOfOtherTypesOrSizes) {
  EXPECT_EQ(message_of_verifying([](Plan &p) { p.steps[1].nested[0].plan = 0; }),
            "step 1: 'more' of bool is slot 2 of f32");
  EXPECT_EQ(message_of_verifying([](Plan &p) { p.steps[1].slots[0] = 0; }),
            "step 1: the predicate of bool is slot 0 of f32");
  EXPECT_EQ(message_of_verifying([](Plan &p) { p.steps[0].slots[0] = 1; }), "step 0: 'in' of f32 is slot 1 of bool");
  EXPECT_EQ(
      message_of_verifying([](Plan &p) { p.nested[0].outputs[0] = example::argument("more", {2}, DType::boolean); }),
      "step 0: whether a loop goes on is not one bool");
  // What depends on symbols is left to a call.
  Artifact a = example();
  a.plan.steps[1].nested[0].symbols[0] = Expr::symbol("n") + 1;
  ASSERT_TRUE(verify_plan(a.plan, a.contracts, a.constants).ok());
  const Expr size = 4 * Expr::symbol("n") + 4, room = 4 * Expr::symbol("n");
  EXPECT_TRUE(
      std::ranges::any_of(a.plan.bounds, [&](const Plan::Bound &b) { return b.size == size && b.room == room; }));
}

TEST(VerifyNested, RefusesResultsThatAreReadOrCannotBeWritten) {
  EXPECT_EQ(message_of_verifying([](Plan &p) { p.steps[0].slots[2] = 3; }),
            "step 0: slot 3 is written and used as operand 2, too");
  EXPECT_EQ(message_of_verifying([](Plan &p) { p.steps[1].slots[2] = 3; }),
            "step 1: slot 3 is written and used as operand 1, too");
  EXPECT_EQ(message_of_verifying([](Plan &p) { p.steps[1].slots[2] = 0; }),
            "step 1: slot 0 of kind 1 cannot be written");
}

TEST(VerifyNested, HoldsNestedPlansToTheirContracts) {
  EXPECT_EQ(message_of_verifying([](Plan &p) { p.nested[1].steps[0].slots.pop_back(); }),
            "nested plan 1: step 0: 2 slots for a kernel of 3 buffers");
  EXPECT_EQ(message_of_verifying([](Plan &p) { p.nested[1].steps[0].slots[2] = 0; }),
            "nested plan 1: step 0: slot 0 of kind 1 cannot be written");
  EXPECT_EQ(message_of_verifying([](Plan &p) { p.nested[1].written_inputs = {0}; }),
            "nested plan 1: it writes its inputs");
  EXPECT_EQ(message_of_verifying([](Plan &p) { p.nested[1].parameters = {example::argument("w", {1})}; }),
            "nested plan 1: it has parameters, or something to prepare");
  EXPECT_EQ(message_of_verifying([](Plan &p) { p.nested[1].inputs[0].strides = {2}; }),
            "nested plan 1: 'in' is not row-major");
  EXPECT_EQ(message_of_verifying([](Plan &p) {
              const Expr r = Expr::symbol("r");
              p.nested[1].symbols.push_back({.name = "r", .resolved = true, .bound = Expr::symbol("k")});
              p.nested[1].outputs[0] = example::argument("out", {r});
              for (Plan::Step &step : p.steps)
                for (Plan::Nested &nested : step.nested)
                  if (nested.plan == 1) nested.symbols.emplace_back(0);
            }),
            "nested plan 1: the size of 'out' is symbol 'r', which it resolves itself");
}

// z is what a scan of f32[t, n] carries in the end, and y, f32[t, n], all that it made on its way.
Artifact scanning() {
  const Expr n = Expr::symbol("n"), t = Expr::symbol("t"), k = Expr::symbol("k");
  Plan turn;  // (h + u, again)
  turn.inputs = {example::argument("h", {k}), example::argument("u", {k})};
  turn.outputs = {example::argument("next", {k}), example::argument("made", {k})};
  turn.symbols = {{.name = "k", .input = 0, .dim = 0}};
  turn.slots = {{Kind::input, 0, 4 * k}, {Kind::input, 1, 4 * k}, {Kind::output, 0, 4 * k}, {Kind::output, 1, 4 * k}};
  turn.steps = {example::launch(0, {0, 1, 2}, {0}), example::launch(0, {0, 1, 3}, {0})};
  Plan p;
  p.inputs = {example::argument("x", {n}), example::argument("s", {t, n})};
  p.outputs = {example::argument("z", {n}), example::argument("y", {t, n})};
  p.symbols = {{.name = "n", .input = 0, .dim = 0}, {.name = "t", .input = 1, .dim = 0}};
  p.slots = {{Kind::input, 0, 4 * n},
             {Kind::input, 1, 4 * t * n},
             {Kind::output, 0, 4 * n},
             {Kind::output, 1, 4 * t * n},
             {Kind::arena, 0, 4 * n}};
  p.arena = {{4 * n}};
  p.nested = {turn};
  p.steps = {{.kind = StepKind::scan, .slots = {0, 1, 2, 3, 4}, .nested = {{0, {n}}}, .scan = {1, 1, false, t}}};
  Contract add = example::contract(2, Expr::symbol("s"));
  return example::artifact_of(std::move(p), {example::add_kernel()}, {add});
}

std::string message_after_scanning(void (*damage)(Plan &)) {
  Artifact a = scanning();
  damage(a.plan);
  const Status status = verify_plan(a.plan, a.contracts, a.constants);
  EXPECT_TRUE(status.ok() || status.code() == Code::corrupt);
  return std::string(status.ok() ? "accepted" : status.message());
}

TEST(VerifyScan, RefusesWhatIsNotThere) {
  EXPECT_EQ(message_after_scanning([](Plan &) {}), "accepted");
  EXPECT_EQ(message_after_scanning([](Plan &p) { p.steps[0].scan.carried = 3; }),
            "step 0: a scan of 3 carried arrays and 1 sequences, its plan has 2 inputs and 2 outputs");
  EXPECT_EQ(message_after_scanning([](Plan &p) { p.steps[0].scan.sequences = 2; }),
            "step 0: a scan of 1 carried arrays and 2 sequences, its plan has 2 inputs and 2 outputs");
  EXPECT_EQ(message_after_scanning([](Plan &p) { p.steps[0].slots.pop_back(); }),
            "step 0: 4 slots for a scan, expected 5");
  EXPECT_EQ(message_after_scanning([](Plan &p) { p.steps[0].scan.turns = -1; }), "step 0: a scan of -1 turns");
  EXPECT_EQ(message_after_scanning([](Plan &p) { p.steps[0].nested.clear(); }), "step 0: 0 nested plans, expected 1");
  EXPECT_EQ(message_after_scanning([](Plan &p) { p.prepare = {p.steps[0]}; }),
            "prepare step 0: prepare cannot run a nested plan");
}

TEST(VerifyScan, RefusesResultsThatAreReadAndCarriedTypesThatChange) {
  EXPECT_EQ(message_after_scanning([](Plan &p) { p.steps[0].slots[4] = 2; }),
            "step 0: slot 2 is written and used as operand 4, too");
  EXPECT_EQ(message_after_scanning([](Plan &p) { p.steps[0].slots[3] = 1; }),
            "step 0: slot 1 of kind 1 cannot be written");
  EXPECT_EQ(message_after_scanning([](Plan &p) { p.nested[0].outputs[0].dtype = DType::i32; }),
            "nested plan 0: step 0: buffer 2 of f32 is slot 2 of i32");
}

// A sequence holds as many elements as there are turns: what symbols say is left to a call, what is known is not.
TEST(VerifyScan, SequencesHoldAllTurns) {
  Artifact a = scanning();
  a.plan.steps[0].scan.turns = Expr::symbol("t") + 1;
  ASSERT_TRUE(verify_plan(a.plan, a.contracts, a.constants).ok());
  const Expr n = Expr::symbol("n"), t = Expr::symbol("t");
  EXPECT_TRUE(std::ranges::any_of(
      a.plan.bounds, [&](const Plan::Bound &b) { return b.size == 4 * n * (t + 1) && b.room == 4 * n * t; }));
  EXPECT_EQ(message_after_scanning([](Plan &p) {
              p.slots[1].size_bytes = 8;
              p.inputs[1].dims = p.inputs[1].strides = {};
              p.inputs[1] = example::argument("s", {2, 1});
              p.symbols.pop_back();
              p.outputs[1] = example::argument("y", {2, 1});
              p.slots[3].size_bytes = 8;
              p.steps[0].nested[0].symbols = {Expr(1)};
              p.steps[0].scan.turns = 3;
            }),
            "step 0: 'u' of 12 bytes lies in 8 bytes");
}

TEST(VerifyNested, PlansAreNestedNoDeeperThanGraphs) {
  Plan plan = turn();
  for (int i = 0; i < deepest_plan; ++i) {
    Plan outer = turn();
    outer.nested = {std::move(plan)};
    plan = std::move(outer);
  }
  ByteWriter out;
  serialize(plan, {}, out);
  const Bytes bytes = out.take();
  ByteReader in(bytes);
  const Result<Plan> read = parse_plan(in, {});
  EXPECT_EQ(read.status().message(), "plans are nested deeper than 33");
}

// ---- sizes that steps resolve: y is the first k elements of x, f32[n]

Artifact resolving() {
  const Expr n = Expr::symbol("n"), k = Expr::symbol("k");
  Plan p;
  p.inputs = {example::argument("x", {n}), example::argument("c", {}, DType::i64)};
  p.outputs = {example::argument("y", {k})};
  p.symbols = {{.name = "n", .input = 0, .dim = 0}, {.name = "k", .resolved = true, .bound = n}};
  p.slots = {{Kind::input, 0, 4 * n}, {Kind::input, 1, 8}, {Kind::arena, 0, 4 * k}, {Kind::output, 0, 4 * k}};
  p.arena = {{4 * k}};
  p.steps = {{.kind = StepKind::resolve, .slots = {1}, .symbols = {1}}, {.kind = StepKind::copy, .slots = {2, 3}}};
  return example::artifact_of(std::move(p), {}, {});
}

std::string message_after_resolving(void (*damage)(Plan &)) {
  Artifact a = resolving();
  damage(a.plan);
  const Status status = verify_plan(a.plan, a.contracts, a.constants);
  return std::string(status.ok() ? "accepted" : status.message());
}

TEST(VerifyResolved, RefusesStepsThatSpeakOfASymbolBeforeItIsResolved) {
  EXPECT_EQ(message_after_resolving([](Plan &) {}), "accepted");
  EXPECT_EQ(message_after_resolving([](Plan &p) { std::swap(p.steps[0], p.steps[1]); }),
            "step 0: it speaks of symbol 'k' before that is resolved");
  EXPECT_EQ(message_after_resolving([](Plan &p) { p.steps.erase(p.steps.begin()); }),
            "step 0: it speaks of symbol 'k' before that is resolved");
}

TEST(VerifyResolved, RefusesSymbolsThatAreBoundAlreadyAndBoundsThatAreNotKnown) {
  EXPECT_EQ(message_after_resolving([](Plan &p) { p.steps[0].symbols[0] = 0; }), "step 0: symbol 'n' is bound already");
  EXPECT_EQ(message_after_resolving([](Plan &p) { p.steps.push_back(p.steps[0]); }),
            "step 2: symbol 'k' is bound already");
  EXPECT_EQ(message_after_resolving([](Plan &p) { p.symbols[1].bound = Expr::symbol("k"); }),
            "step 0: the bound of symbol 'k' is not known");
  EXPECT_EQ(message_after_resolving([](Plan &p) { p.steps[0].slots[0] = 0; }),
            "step 0: the size of i64 is slot 0 of f32");
  EXPECT_EQ(message_after_resolving([](Plan &p) { p.steps[0].slots.clear(); }),
            "step 0: resolves 1 symbols from 0 slots, expected 1");
  EXPECT_EQ(message_after_resolving([](Plan &p) { p.prepare = {p.steps[0]}; }),
            "prepare step 0: prepare cannot resolve a symbol");
}

}  // namespace
}  // namespace kiln
