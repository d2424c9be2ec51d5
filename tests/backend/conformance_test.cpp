// Every sample of every op on every backend, against the reference kernels.
#include <gtest/gtest.h>

#include "tests/backend/backends.h"
#include "tests/backend/harness.h"

namespace kiln::testing {
namespace {

class Conformance : public ::testing::TestWithParam<const Op *> {};

TEST_P(Conformance, AgreesWithTheReferenceOnEverySample) {
  const Op &op = *GetParam();
  SampleSink samples;
  op.samples(samples);
  for (const Backend &backend : backends()) {
    if (auto excluded = backend.excluded.find(op.name); excluded != backend.excluded.end()) {
      std::printf("%s is not run on %s: %s\n", std::string(op.name).c_str(), backend.name.c_str(),
                  excluded->second.c_str());
      continue;
    }
    for (size_t k = 0; k < samples.size(); ++k) {
      Result<Case> made = make_case(op, samples[k], k + 1);
      ASSERT_TRUE(made.ok()) << op.name << "/" << samples[k].name << ": " << made.status().message();
      EXPECT_EQ(check(backend, *made), "") << made->name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, Conformance, ::testing::ValuesIn(all_ops().begin(), all_ops().end()),
                         [](const auto &instance) { return std::string(instance.param->name); });

}  // namespace
}  // namespace kiln::testing
