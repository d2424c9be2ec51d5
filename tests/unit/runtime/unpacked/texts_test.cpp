#include "runtime/unpacked/texts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <filesystem>

#include "jit/base/file.h"
#include "runtime/plan/contract_format.h"
#include "tests/fuzz/plan_samples.h"
#include "tests/paths.h"

namespace kiln {
namespace {

using testing::HasSubstr;

// Kernels of all kinds: the fuzzer's, those of them that are none left out.
std::vector<Bytes> kernels() {
  std::vector<Bytes> all;
  for (const auto &file : std::filesystem::directory_iterator(test::source_dir + "/tests/fuzz/corpus/kernel")) {
    const Result<Bytes> bytes = read_file(file.path().string());
    if (bytes.ok() && kernel::parse(*bytes).ok()) all.push_back(*bytes);
  }
  for (const Artifact &sample : fuzz::samples())
    for (const Bytes &kernel : sample.kernels) all.push_back(kernel);
  return all;
}

Status error_of(std::string_view text) {
  const Result<kernel::Kernel> read = unpacked::read_kernel(text);
  EXPECT_FALSE(read.ok());
  return read.status();
}

TEST(KernelText, ReadsBackToTheSameBytes) {
  const std::vector<Bytes> all = kernels();
  EXPECT_GE(all.size(), 20u);
  for (const Bytes &bytes : all) {
    const Result<kernel::Kernel> kernel = kernel::parse(bytes);
    ASSERT_TRUE(kernel.ok());
    const std::string text = unpacked::text_of(*kernel);
    const Result<kernel::Kernel> back = unpacked::read_kernel(text);
    ASSERT_TRUE(back.ok()) << back.status().message() << "\n" << text;
    EXPECT_EQ(kernel::serialize(*back), kernel::serialize(*kernel)) << text;
  }
}

TEST(KernelText, HasFloatsAsNumbersAndLeavesDefaultsOut) {
  kernel::Value half;
  half.immediate = std::bit_cast<uint64_t>(0.5);
  kernel::Kernel kernel;
  kernel.stages.emplace_back().body.values = {half};
  const std::string text = unpacked::text_of(kernel);
  EXPECT_THAT(text, HasSubstr(R"("immediate": 0.5)"));
  EXPECT_THAT(text, testing::Not(HasSubstr("access")));
  EXPECT_THAT(text, testing::Not(HasSubstr("contract")));
}

TEST(KernelText, TellsWhereItIsWrong) {
  EXPECT_THAT(error_of("{").message(), HasSubstr("line 1"));
  EXPECT_EQ(error_of("[]").message(), "at the top: expected an object, found a list");
  EXPECT_THAT(error_of(R"({"symbols": [1]})").message(), HasSubstr("symbols[0]: expected a string, found 1"));
  EXPECT_THAT(error_of(R"({"sizes": []})").message(), HasSubstr("unknown member 'sizes'; known are symbols, buffers"));
  EXPECT_THAT(error_of(R"({"parallel": [{"extent": "i3"}]})").message(),
              HasSubstr("parallel[0].extent: expected an expression over the kernel's symbols"));
  EXPECT_THAT(error_of(R"({"schedule": {"mr": -1}})").message(), HasSubstr("schedule.mr: -1 is out of its range"));
  EXPECT_THAT(error_of(R"({"schedule": {"vector": "outer"}})").message(),
              HasSubstr("schedule.vector: expected one of inner, parallel, found 'outer'"));
}

TEST(KernelText, IsVerified) {
  EXPECT_THAT(error_of(R"({"parallel": [{"extent": 4}], "stages": [{"body": {"yields": [3]}}]})").message(),
              testing::Not(testing::IsEmpty()));
}

Bytes bytes_of(const Plan &plan) {
  ByteWriter out;
  serialize(plan, {}, out);
  return out.take();
}

TEST(PlanText, ReadsBackToTheSameBytes) {
  for (const Artifact &sample : fuzz::samples()) {
    const std::string text = unpacked::text_of(sample.plan);
    const Result<Plan> back = unpacked::read_plan(text);
    ASSERT_TRUE(back.ok()) << back.status().message() << "\n" << text;
    EXPECT_EQ(bytes_of(*back), bytes_of(sample.plan)) << text;
  }
}

// As deep as plans may be, which is deeper than JSON may be.
TEST(PlanText, PlansInPlansStandBesideEachOther) {
  Plan plan;
  for (int depth = 1; depth < deepest_plan; ++depth) {
    Plan outer;
    outer.nested = {plan, Plan()};
    plan = outer;
  }
  const Result<Plan> back = unpacked::read_plan(unpacked::text_of(plan));
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(bytes_of(*back), bytes_of(plan));
}

TEST(PlanText, RefusesPlansThatAreInTwoOrInNone) {
  for (const auto &[text, words] : std::initializer_list<std::pair<std::string_view, std::string_view>>{
           {R"({"plan": {"nested": [0]}, "plans": [{"nested": [0]}]})",
            "plans[0].nested[0]: plan 0 is not there, or is another's already"},
           {R"({"plan": {"nested": [1]}, "plans": [{}]})", "plan.nested[0]: plan 1 is not there"},
           {R"({"plan": {}, "plans": [{}]})", "plans[0]: no plan has it among its nested ones"},
           {R"({"plans": []})", "member 'plan' is missing"},
           {R"({"plan": {"steps": [{"kind": "jump"}]}})", "plan.steps[0].kind: expected one of launch, copy, "}}) {
    const Result<Plan> read = unpacked::read_plan(text);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_THAT(read.status().message(), HasSubstr(words));
  }
}

// It was read, written as no member at all, and read back as another type.
TEST(PlanText, RefusesATensorOfNoType) {
  const Result<Plan> read = unpacked::read_plan(R"({"plan": {"inputs": [{"name": "a", "dtype": "none"}]}})");
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(read.status().message(), HasSubstr("plan.inputs[0].dtype"));
  EXPECT_THAT(read.status().message(), HasSubstr("expected one of f64, f32, "));
}

TEST(PlanText, RefusesWhatIsNestedTooDeep) {
  std::string plans;
  for (int i = 0; i < 1000; ++i)
    plans += str_cat(i ? "," : "", i < 999 ? str_cat(R"({"nested": [)", i + 1, "]}") : "{}");
  const Result<Plan> read = unpacked::read_plan(str_cat(R"({"plan": {"nested": [0]}, "plans": [)", plans, "]}"));
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(read.status().message(), HasSubstr("plans are nested deeper than 33"));
}

}  // namespace
}  // namespace kiln
