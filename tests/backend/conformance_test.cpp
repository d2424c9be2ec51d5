// Every sample of every op on every backend, against the reference kernels.
#include <gtest/gtest.h>

#include "tests/backend/backends.h"
#include "tests/backend/cuda_backend.h"
#include "tests/backend/harness.h"

namespace kiln::testing {
namespace {

class Conformance : public ::testing::TestWithParam<const Op *> {
 protected:
  static void expect_agreement(const std::vector<Backend> &all) {
    const Op &op = *GetParam();
    const Result<std::vector<Case>> cases = all_cases_of(op);
    ASSERT_TRUE(cases.ok()) << cases.status().message();
    for (const Backend &backend : all) {
      if (auto excluded = backend.excluded.find(op.name); excluded != backend.excluded.end()) {
        std::printf("%s is not run on %s: %s\n", std::string(op.name).c_str(), backend.name.c_str(),
                    excluded->second.c_str());
        continue;
      }
      if (backend.prepare) {
        const Status prepared = backend.prepare(*cases);
        ASSERT_TRUE(prepared.ok()) << backend.name << ": " << prepared.message();
      }
      for (const Case &made : *cases) EXPECT_EQ(check(backend, made), "") << made.name;
    }
  }
};

TEST_P(Conformance, AgreesWithTheReferenceOnEverySample) { expect_agreement(backends()); }

TEST_P(Conformance, OnTheStandinForAGpuAgreesWithTheReferenceOnEverySample) {
  if (!standin::has_compiler()) GTEST_SKIP() << standin::no_compiler;
  expect_agreement({cuda_on_standins()});
}

TEST(ConformanceOnAGpu, AgreesWithTheReferenceOnEverySampleOfEveryOp) {
  const Backend gpu = cuda_on_this_machine();
  if (const std::string reason = no_gpu(); !reason.empty()) GTEST_SKIP() << reason;
  for (const Op *op : all_ops()) {
    const Result<std::vector<Case>> cases = all_cases_of(*op);
    ASSERT_TRUE(cases.ok()) << cases.status().message();
    for (const Case &made : *cases) EXPECT_EQ(check(gpu, made), "") << made.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, Conformance, ::testing::ValuesIn(all_ops().begin(), all_ops().end()),
                         [](const auto &instance) { return std::string(instance.param->name); });

}  // namespace
}  // namespace kiln::testing
