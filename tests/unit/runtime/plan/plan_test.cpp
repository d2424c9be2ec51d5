#include "runtime/plan/plan.h"

#include <gtest/gtest.h>

#include "runtime/plan/contract_format.h"
#include "runtime/plan/verify_plan.h"
#include "tests/unit/runtime/example_artifact.h"

namespace kiln {
namespace {

// What the plan's expressions go on from.
std::vector<Expr> known() {
  ByteWriter contracts;
  return serialize(example::everything().contracts, contracts);
}

Bytes bytes_of(const Plan &plan) {
  ByteWriter out;
  serialize(plan, known(), out);
  return out.take();
}

// `written_inputs`: of the section of the contracts; the example's.
Result<Plan> read(const Bytes &bytes, std::vector<uint32_t> written_inputs = {1}) {
  const Artifact a = example::everything();
  ByteReader in(bytes);
  KILN_ASSIGN(Plan plan, parse_plan(in, known()));
  plan.written_inputs = std::move(written_inputs);
  KILN_TRY(verify_plan(plan, a.contracts, a.constants));
  return plan;
}

Plan verified() {
  Artifact a = example::everything();
  EXPECT_TRUE(verify_plan(a.plan, a.contracts, a.constants).ok());
  return a.plan;
}

std::string message_of_reading(void (*damage)(Plan &)) {
  Plan plan = example::everything().plan;
  damage(plan);
  const Result<Plan> result = read(bytes_of(plan), plan.written_inputs);
  if (result.ok()) return "accepted";
  EXPECT_EQ(result.status().code(), Code::corrupt);
  return result.status().message();
}

TEST(Plan, ReadsBackWhatWasWritten) {
  const Plan plan = verified();
  const Bytes bytes = bytes_of(plan);
  const Result<Plan> back = read(bytes, plan.written_inputs);
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(bytes_of(*back), bytes);
  EXPECT_EQ(print(*back), print(plan));
  EXPECT_EQ(back->inputs, plan.inputs);
  EXPECT_EQ(back->outputs, plan.outputs);
}

TEST(Plan, PrintsSlotsByWhatTheyStandFor) {
  EXPECT_EQ(print(verified()),
            "input x: f32[n, 2]\n"
            "input y: f32[2*n]\n"
            "input size: f32[m]\n"
            "parameter w: f32[4]\n"
            "output z: f32[2*n]\n"
            "writes input y\n"
            "symbol n = x dim 0, at least 1, at most 1000, a multiple of 2\n"
            "symbol m = size dim 0, at least 0\n"
            "check m = 2*n (size and z)\n"
            "arena 0: 8*n bytes\n"
            "arena 1: max(64, 8*n) bytes\n"
            "prepared 0: 16 bytes\n"
            "prepare 0: kernel 2(w, constant 0, prepared 0) tasks 4\n"
            "step 0: kernel 0(x, y, arena 0) sizes [n] tasks 2*n\n"
            "step 1: kernel 2(arena 0, prepared 0, arena 1) tasks 4\n"
            "step 2: kernel 1(arena 1, z) sizes [m] tasks m scratch 4 bytes\n"
            "step 3: copy arena 0 -> y, 8*n bytes: the step of 'late' reads later what it would overwrite\n");
}

TEST(Plan, RefusesNumbersOfThingsThatAreNotThere) {
  EXPECT_EQ(message_of_reading([](Plan &p) { p.steps[0].slots[1] = 8; }), "step 0: slot 8, expected below 8");
  EXPECT_EQ(message_of_reading([](Plan &p) { p.steps[2].kernel = 3; }), "step 2: kernel 3, expected below 3");
  EXPECT_EQ(message_of_reading([](Plan &p) { p.steps[2].symbols[0] = 2; }), "step 2: symbol 2, expected below 2");
  EXPECT_EQ(message_of_reading([](Plan &p) { p.slots[3].index = 1; }),
            "slot 3 of kind 3 has index 1, expected below 1");
  EXPECT_EQ(message_of_reading([](Plan &p) { p.slots[5].kind = Plan::Slot::Kind(9); }),
            "slot 5 of kind 9 has index 0, expected below 0");
  EXPECT_EQ(message_of_reading([](Plan &p) { p.written_inputs[0] = 3; }), "written input 3, expected below 3");
  EXPECT_EQ(message_of_reading([](Plan &p) { p.steps[3].slots.push_back(0); }),
            "step 3: a copy of 3 slots, expected 2");
  EXPECT_EQ(message_of_reading([](Plan &p) { p.steps[3].why = Plan::Step::Why(9); }),
            "step 3: a copy for unknown reason 9");
  EXPECT_EQ(message_of_reading([](Plan &p) { p.steps[3].kind = Plan::Step::Kind::reference; }),
            "step 3: a reference step of 2 slots, expected the signature's 5");
  EXPECT_EQ(message_of_reading([](Plan &p) { p.inputs[0].dtype = DType(77); }), "input 0: unknown dtype 77");
  EXPECT_EQ(message_of_reading([](Plan &p) { p.outputs[0].strides.clear(); }), "output 0 has 1 dims and 0 strides");
}

TEST(Plan, RefusesSymbolsThatNothingBinds) {
  EXPECT_EQ(message_of_reading([](Plan &p) { p.arena[0].size_bytes = Expr::symbol("k"); }),
            "symbol 'k' is used and not bound");
  EXPECT_EQ(message_of_reading([](Plan &p) { p.symbols[0].dim = 2; }),
            "symbol 'n' is bound by dim 2 of input 0, which is not there");
  EXPECT_EQ(message_of_reading([](Plan &p) { p.symbols[0].input = 1; }),
            "symbol 'n' is bound by dim 0 of input 1, which is 2*n");
  EXPECT_EQ(message_of_reading([](Plan &p) { p.symbols[0].divisor = 0; }), "symbol 'n' has divisor 0");
  EXPECT_EQ(message_of_reading([](Plan &p) { p.symbols.push_back(p.symbols[0]); }), "symbol 'n' is bound twice");
}

TEST(Plan, RefusesPreparedValuesThatDependOnACall) {
  EXPECT_EQ(message_of_reading([](Plan &p) { p.prepared[0].size_bytes = Expr::symbol("n"); }),
            "prepared storage 0 depends on symbols");
  EXPECT_EQ(message_of_reading([](Plan &p) { p.prepare[0] = example::launch(0, {2, 3, 4}, {0}); }),
            "prepare step 0: it depends on symbols");
  EXPECT_EQ(message_of_reading([](Plan &p) { p.prepare[0].slots[0] = 0; }),
            "prepare step 0: slot 0 is neither parameter, constant nor prepared");
}

TEST(Plan, RefusesEveryTruncation) {
  const Bytes bytes = bytes_of(example::everything().plan);
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(read(Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size))).ok()) << size;
}

TEST(Plan, SurvivesEveryFlippedBit) {
  const Bytes bytes = bytes_of(example::everything().plan);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    Bytes damaged = bytes;
    damaged[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
    const Result<Plan> result = read(damaged);  // a flipped size or name may well be a plan, and is then a valid one
    if (result.ok()) {
      EXPECT_FALSE(print(*result).empty());
    }
  }
}

TEST(Plan, AHugeCountAllocatesNothing) {
  ByteWriter out;
  out.put<uint64_t>(uint64_t{1} << 60);
  EXPECT_FALSE(read(out.take()).ok());
}

}  // namespace
}  // namespace kiln
