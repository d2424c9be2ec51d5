// Every sample of every op on every backend, against the reference kernels; what runs the same code is run once. In a
// soak every sample is of every element type that it can be of, in one graph with the others of that type, at every
// level of the processor, fused and not.
#include <gtest/gtest.h>

#include "tests/backend/backends.h"
#include "tests/backend/cuda_backend.h"
#include "tests/backend/harness.h"
#include "tests/soak.h"

namespace kiln::testing {
namespace {

// Samples as they are recorded, alone and together; then with each type in place of each that they have, together, but
// for those with symbols, which are others' of the same names. For integers, which may sum up to what wraps, only
// integers: floats have no tolerance for that.
Result<std::vector<Case>> every_case_of(const Op &op) {
  SampleSink samples;
  op.samples(samples);
  std::vector<Case> cases;
  for (int from = 0; from <= dtype_count; ++from) {
    for (int to = from == 0 ? 0 : 1; to <= (from == 0 ? 0 : dtype_count); ++to) {
      const auto old_type = static_cast<DType>(from), new_type = static_cast<DType>(to);
      if (from != 0 && from == to) continue;
      if (from != 0 && !dtype_info(old_type).is_float && dtype_info(new_type).is_float) continue;
      const std::string name = from == 0 ? "" : str_cat(", ", name_of(new_type), " for ", name_of(old_type));
      CaseBuilder together(op, str_cat(op.name, "/all", name));
      bool any = false;
      for (size_t k = 0; k < samples.size(); ++k) {
        std::optional<Sample> sample = samples[k];
        if (from != 0) sample = is_of(*sample, old_type) ? retyped(op, *sample, new_type, old_type) : std::nullopt;
        if (!sample) continue;
        KILN_ASSIGN(Case alone, make_case(op, *sample, k + 1));
        if (from != 0 && !run_on_reference(*alone.graph, alone.arguments).ok()) continue;  // divides by zero
        alone.name += name;
        const bool is_sized = sample->sizes.empty();
        if (from == 0 || !is_sized) cases.push_back(std::move(alone));
        if (!is_sized) continue;
        KILN_TRY(together.add(*sample, k + 1));
        any = true;
      }
      if (!any) continue;
      KILN_ASSIGN(cases.emplace_back(), together.finish());
    }
  }
  return cases;
}

Result<std::vector<Case>> conformance_cases_of(const Op &op) {
  if (test::threads_only()) return cases_of(op);
  return test::soak() ? every_case_of(op) : all_cases_of(op);
}

// With those that a soak runs besides.
std::vector<Backend> processor_backends() {
  if (test::threads_only()) return {compiled("cpu native", "native", true)};
  std::vector<Backend> all = backends();
  if (!test::soak()) return all;
  for (const std::string &level : levels_here())
    all.push_back(compiled(str_cat("cpu ", level, ", not fused"), level, false));
  CompileOptions options;
  options.backend = "reference";
  all.push_back({"reference", [options](const Case &c) { return run_compiled(c, options); }, {}});
  return all;
}

std::vector<Backend> device_backends() {
  std::vector<Backend> all = {cuda_on_standins()};
  if (test::soak()) all.push_back(cuda_on_standins(/*fuse=*/false));
  return all;
}

class Conformance : public ::testing::TestWithParam<const Op *> {
 protected:
  static void expect_agreement(const std::vector<Backend> &all) {
    const Op &op = *GetParam();
    const Result<std::vector<Case>> cases = conformance_cases_of(op);
    ASSERT_TRUE(cases.ok()) << cases.status().message();
    if (test::soak()) std::printf("%s: %d cases\n", std::string(op.name).c_str(), static_cast<int>(cases->size()));
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
      for (const Case &made : *cases) {
        if (backend.repeats && backend.repeats(made)) continue;
        EXPECT_EQ(check(backend, made), "") << made.name;
      }
    }
  }
};

// Which runs are left out: were it all of them, conformance would show nothing of kernels that are not fused.
TEST(Fusion, ChangesNothingOfOneComputeAndSomethingOfSeveral) {
  const Target v3 = *Target::by_name("v3");
  for (const auto &[name, changes_nothing] :
       {std::pair("exp", true), {"sum", true}, {"softmax", false}, {"gelu", false}}) {
    const Result<std::vector<Case>> cases = cases_of(*find_op(name));
    ASSERT_TRUE(cases.ok()) << cases.status().message();
    EXPECT_EQ(fusion_changes_nothing(cases->front(), v3), changes_nothing) << cases->front().name;
  }
}

TEST_P(Conformance, AgreesWithTheReferenceOnEverySample) { expect_agreement(processor_backends()); }

TEST_P(Conformance, OnTheStandinForAGpuAgreesWithTheReferenceOnEverySample) {
  if (!standin::has_compiler()) GTEST_SKIP() << standin::no_compiler;
  expect_agreement(device_backends());
}

// In parts, because NVRTC takes its time: processes of their own meet it at once. In every type only in a soak.
constexpr int gpu_parts = 16;
class ConformanceOnAGpu : public ::testing::TestWithParam<int> {};

TEST_P(ConformanceOnAGpu, AgreesWithTheReferenceOnEverySampleOfEveryOp) {
  const Backend gpu = cuda_on_this_machine();
  if (const std::string reason = no_gpu(); !reason.empty()) GTEST_SKIP() << reason;
  const std::shared_ptr<Device> kept = the_gpu();
  for (size_t k = static_cast<size_t>(GetParam()); k < all_ops().size(); k += gpu_parts) {
    const Op &op = *all_ops()[k];
    const Result<std::vector<Case>> cases = test::soak() ? all_cases_of(op) : conformance_cases_of(op);
    ASSERT_TRUE(cases.ok()) << cases.status().message();
    for (const Case &made : *cases) EXPECT_EQ(check(gpu, made), "") << made.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Parts, ConformanceOnAGpu, ::testing::Range(0, gpu_parts));
INSTANTIATE_TEST_SUITE_P(Ops, Conformance, ::testing::ValuesIn(all_ops().begin(), all_ops().end()),
                         [](const auto &instance) { return std::string(instance.param->name); });

}  // namespace
}  // namespace kiln::testing
