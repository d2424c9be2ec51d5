// Random graphs on the backend `cuda`, on this machine's GPU, against the reference: what the stand-ins cannot show is
// what NVRTC and the device make of a kernel.
#include <gtest/gtest.h>

#include "tests/backend/cuda_backend.h"
#include "tests/backend/guarded_run.h"
#include "tests/backend/random/checking.h"
#include "tests/soak.h"

namespace kiln::testing {
namespace {

constexpr char gpu_test_name[] = "RandomGraphsOnAGpu";

class RandomGraphsOnAGpu : public ::testing::TestWithParam<int> {};

TEST_P(RandomGraphsOnAGpu, AgreeWithTheReference) {
  if (const std::string reason = no_gpu(); !reason.empty()) GTEST_SKIP() << reason;
  const std::shared_ptr<Device> kept = the_gpu();
  const CrashReport crash_report(gpu_test_name);
  CompileOptions options = cuda_options();
  options.arch = "native";
  const auto check = [&](const RandomCase &made) -> std::string {
    const Result<Expectation> expected = expectation_of(made);
    if (!expected.ok()) return expected.status().message();
    if (expected->calls.empty()) return "";
    const Result<std::vector<Results>> results =
        run_guarded(expected->made.graph, expected->made.calls, options, device_settings());
    if (!results.ok()) return results.status().message();
    for (size_t k = 0; k < expected->calls.size(); ++k)
      if (const std::string parts = difference((*results)[k], expected->calls[k]); !parts.empty())
        return str_cat("call ", k, ": ", parts);
    return "";
  };
  const auto [begin, end] = seeds_of_shard(static_cast<uint64_t>(GetParam()), test::soak() ? 8'000 : 400);
  int failures = 0;
  for (uint64_t seed = begin; seed < end && failures < enough_failures; ++seed) {
    CrashReport::now_running(seed);
    const Result<RandomCase> made = draw_case(seed);
    ASSERT_TRUE(made.ok()) << "seed " << seed << ": " << made.status().message();
    const std::string wrong = check(*made);
    if (wrong.empty()) continue;
    ADD_FAILURE() << report(gpu_test_name, *made, "cuda", wrong, check);
    ++failures;
  }
}

INSTANTIATE_TEST_SUITE_P(Shards, RandomGraphsOnAGpu, ::testing::Range(0, shards));

}  // namespace
}  // namespace kiln::testing
