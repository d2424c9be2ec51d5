// Plans that somebody made, each with one lie that its bytes alone show.
#include "runtime/plan/verify_plan.h"

#include <gtest/gtest.h>

#include "tests/unit/runtime/example_artifact.h"

namespace kiln {
namespace {

const Expr symbol_n = Expr::symbol("n"), symbol_m = Expr::symbol("m");

std::string message_after(void (*forge)(Artifact &)) {
  Artifact a = example::everything();
  forge(a);
  const Status status = verify_plan(a.plan, a.contracts, a.constants);
  if (status.ok()) return "accepted";
  EXPECT_EQ(status.code(), Code::corrupt);
  return status.message();
}

TEST(VerifyPlan, GivesLaunchesTheTasksAndScratchOfTheirKernels) {
  Artifact a = example::everything();
  for (std::vector<Plan::Step> *steps : {&a.plan.prepare, &a.plan.steps})
    for (Plan::Step &step : *steps) step.tasks = step.scratch_bytes = 1'000'000;
  ASSERT_TRUE(verify_plan(a.plan, a.contracts, a.constants).ok());
  EXPECT_EQ(a.plan.prepare[0].tasks, Expr(4));
  EXPECT_EQ(a.plan.steps[0].tasks, 2 * symbol_n);
  EXPECT_EQ(a.plan.steps[2].tasks, symbol_m);
  EXPECT_EQ(a.plan.steps[0].scratch_bytes, Expr(0));
  EXPECT_EQ(a.plan.steps[2].scratch_bytes, Expr(4));
}

TEST(VerifyPlan, SaysAContractInTheSymbolsOfItsLaunch) {
  Artifact a = example::everything();
  a.plan.steps[2].symbols = {0};
  a.contracts[1].symbols[0] = {.name = "m", .min = 1, .max = 1000, .divisor = 2};
  ASSERT_TRUE(verify_plan(a.plan, a.contracts, a.constants).ok());
  EXPECT_EQ(a.plan.steps[2].tasks, symbol_n);
}

TEST(VerifyPlan, RefusesSlotsThatAreLargerThanWhatTheyStandFor) {
  EXPECT_EQ(message_after([](Artifact &a) { a.plan.slots[3].size_bytes = 17; }), "slot 3 of 17 bytes lies in 16 bytes");
  EXPECT_EQ(message_after([](Artifact &a) { a.plan.slots[2].size_bytes = 20; }), "slot 2 of 20 bytes lies in 16 bytes");
  EXPECT_EQ(message_after([](Artifact &a) { a.plan.slots[4].size_bytes = 17; }), "slot 4 of 17 bytes lies in 16 bytes");
  EXPECT_EQ(message_after([](Artifact &a) { a.plan.prepared[0].size_bytes = -16; }),
            "slot 4 of 16 bytes lies in -16 bytes");
  EXPECT_EQ(message_after([](Artifact &a) { a.constants[0].bytes.resize(8); }), "slot 3 of 16 bytes lies in 8 bytes");
  EXPECT_EQ(message_after([](Artifact &a) {
              a.plan.slots[5].size_bytes = 80;
              a.plan.arena[0].size_bytes = 64;
            }),
            "slot 5 of 80 bytes lies in 64 bytes");
}

TEST(VerifyPlan, RefusesLaunchesThatAreNotAsTheirKernelsAre) {
  EXPECT_EQ(message_after([](Artifact &a) { a.plan.steps[0].slots.pop_back(); }),
            "step 0: 2 slots for a kernel of 3 buffers");
  EXPECT_EQ(message_after([](Artifact &a) { a.plan.steps[0].slots.push_back(5); }),
            "step 0: 4 slots for a kernel of 3 buffers");
  EXPECT_EQ(message_after([](Artifact &a) { a.plan.steps[2].symbols.clear(); }),
            "step 2: 0 symbols for a kernel of 1 sizes");
  EXPECT_EQ(message_after([](Artifact &a) { a.plan.steps[2].symbols.push_back(1); }),
            "step 2: 2 symbols for a kernel of 1 sizes");
  EXPECT_EQ(message_after([](Artifact &a) { a.contracts.clear(); }), "prepare step 0: kernel 2, expected below 0");
  EXPECT_EQ(message_after([](Artifact &a) { a.contracts[2].buffers[1].size_bytes = 20; }),
            "prepare step 0: buffer 1 of 20 bytes lies in 16 bytes");
  EXPECT_EQ(message_after([](Artifact &a) { a.constants[0].dtype = DType::i32; }),
            "prepare step 0: buffer 1 of f32 is slot 3 of i32");
  EXPECT_EQ(message_after([](Artifact &a) { a.plan.inputs[1].dtype = DType::i32; }),
            "step 0: buffer 1 of f32 is slot 1 of i32");
}

TEST(VerifyPlan, RefusesSymbolsBeyondWhatAKernelReliesOn) {
  EXPECT_EQ(message_after([](Artifact &a) { a.plan.symbols[0].min = 0; }),
            "step 0: symbol 'n' is 0 to 1000 by 2, its kernel relies on 1 to 1000 by 2");
  EXPECT_EQ(message_after([](Artifact &a) { a.plan.symbols[0].max = 1001; }),
            "step 0: symbol 'n' is 1 to 1001 by 2, its kernel relies on 1 to 1000 by 2");
  EXPECT_EQ(message_after([](Artifact &a) { a.plan.symbols[0].divisor = 1; }),
            "step 0: symbol 'n' is 1 to 1000 by 1, its kernel relies on 1 to 1000 by 2");
  EXPECT_EQ(message_after([](Artifact &a) { a.plan.symbols[0].divisor = 6; }), "accepted");
  EXPECT_EQ(message_after([](Artifact &a) { a.contracts[2].equalities = {{3, 4}}; }),
            "prepare step 0: its kernel relies on 3 = 4");
}

TEST(VerifyPlan, LetsAKernelRelyOnWhatThePlanChecks) {
  Artifact a = example::everything();
  a.contracts[1].symbols = {{.name = "m"}, {.name = "n"}};
  a.contracts[1].equalities = {{2 * symbol_n, symbol_m}};
  a.plan.steps[2].symbols = {1, 0};
  ASSERT_TRUE(verify_plan(a.plan, a.contracts, a.constants).ok());
  const size_t bounds = a.plan.bounds.size();
  a.plan.checks.clear();
  ASSERT_TRUE(verify_plan(a.plan, a.contracts, a.constants).ok());
  EXPECT_EQ(a.plan.bounds.size(), bounds + 2) << "a call has to look";
}

TEST(VerifyPlan, RefusesToWriteWhatIsNotToBeWritten) {
  EXPECT_EQ(message_after([](Artifact &a) { a.plan.prepare[0].slots[2] = 3; }),
            "prepare step 0: slot 3 of kind 3 cannot be written");
  EXPECT_EQ(message_after([](Artifact &a) { a.plan.prepare[0].slots[2] = 2; }),
            "prepare step 0: slot 2 of kind 2 cannot be written");
  EXPECT_EQ(message_after([](Artifact &a) { a.plan.prepare[0].slots[2] = 5; }),
            "prepare step 0: slot 5 of kind 5 cannot be written");
  EXPECT_EQ(message_after([](Artifact &a) { a.plan.steps[1].slots[2] = 4; }),
            "step 1: slot 4 of kind 6 cannot be written");
  EXPECT_EQ(message_after([](Artifact &a) { a.plan.steps[0].slots[2] = 0; }),
            "step 0: slot 0 of kind 1 cannot be written");
  EXPECT_EQ(message_after([](Artifact &a) { a.plan.steps[3].slots[1] = 0; }),
            "step 3: slot 0 of kind 1 cannot be written");
  EXPECT_EQ(message_after([](Artifact &a) { a.plan.written_inputs.clear(); }),
            "step 3: slot 1 of kind 1 cannot be written");
  EXPECT_EQ(message_after([](Artifact &a) { a.plan.steps[3].slots[1] = 3; }),
            "step 3: slot 3 of kind 3 cannot be written");
}

TEST(VerifyPlan, RefusesOutputsThatAreNotMadeRowMajor) {
  EXPECT_EQ(message_after([](Artifact &a) { a.plan.outputs[0].strides = {-1}; }), "output 'z' is not made row-major");
  EXPECT_EQ(message_after([](Artifact &a) { a.plan.outputs[0].strides = {symbol_n}; }),
            "output 'z' is not made row-major");
}

TEST(VerifyPlan, LetsStepsWriteInputsThatAreDonated) {
  EXPECT_EQ(message_after([](Artifact &a) {
              a.plan.donated_inputs = a.plan.written_inputs;
              a.plan.written_inputs.clear();
            }),
            "accepted");
  EXPECT_EQ(message_after([](Artifact &a) { a.plan.donated_inputs = {3}; }), "donated input 3, expected below 3");
}

TEST(VerifyPlan, RefusesToWriteWhatTheSameStepUses) {
  EXPECT_EQ(message_after([](Artifact &a) { a.plan.steps[1].slots = {5, 4, 5}; }),
            "step 1: slot 5 is written and used as buffer 0, too");
  EXPECT_EQ(message_after([](Artifact &a) { a.plan.slots[6].index = 0; }),
            "step 1: slot 6 is written and used as buffer 0, too");
  EXPECT_EQ(message_after([](Artifact &a) { a.plan.steps[3].slots = {5, 5}; }), "step 3: a copy of slot 5 onto itself");
}

// Kernel 2 adds buffers 0 and 1 to buffer 2.
TEST(VerifyPlan, LetsAStepWriteInPlaceWhatItsKernelSaysItMay) {
  EXPECT_EQ(message_after([](Artifact &a) {
              a.contracts[2].buffers[2].in_place = {0};
              a.plan.steps[1].slots = {5, 4, 5};
            }),
            "accepted");
  EXPECT_EQ(message_after([](Artifact &a) {
              a.contracts[2].buffers[2].in_place = {0};
              a.plan.slots[6].index = 0;
            }),
            "accepted")
      << "another slot of the same storage";
  EXPECT_EQ(message_after([](Artifact &a) {
              a.contracts[2].buffers[2].in_place = {1};
              a.plan.steps[1].slots = {5, 4, 5};
            }),
            "step 1: slot 5 is written and used as buffer 0, too");
  EXPECT_EQ(message_after([](Artifact &a) {
              a.contracts[2].buffers[2].in_place = {0};
              a.plan.steps[1].slots = {5, 5, 5};
            }),
            "step 1: slot 5 is written and used as buffer 1, too");
  EXPECT_EQ(message_after([](Artifact &a) {
              a.contracts[2].buffers[0].written = true;
              a.contracts[2].buffers[2].in_place = {0};
              a.plan.prepare.clear();
              a.plan.steps[1].slots = {5, 4, 5};
            }),
            "step 1: slot 5 is written and used as buffer 2, too")
      << "two results are two";
}

TEST(VerifyPlan, RefusesCopiesBetweenSlotsOfOtherSizes) {
  EXPECT_EQ(message_after([](Artifact &a) {
              a.plan.slots[5].size_bytes = 16;
              a.plan.slots[1].size_bytes = 8;
              a.plan.steps.erase(a.plan.steps.begin());
            }),
            "step 2: copies 16 bytes to a slot of 8");
}

}  // namespace
}  // namespace kiln
