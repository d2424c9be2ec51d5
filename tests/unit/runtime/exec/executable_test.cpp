#include "runtime/exec/executable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/runtime/exec/example_call.h"

namespace kiln {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(Executable, RefusesAnotherBuild) {
  const auto loaded = example::try_load(example::add(4), "another");
  EXPECT_EQ(loaded.status().code(), Code::incompatible);
  EXPECT_EQ(loaded.status().message(), str_cat("the artifact is of build ", example::build, ", this is build another"));
}

TEST(Executable, IsNotCalledWhereTheMachineIsNotItsTarget) {
  Artifact a = example::add(4);
  a.target = "v9";
  EXPECT_THAT(example::try_load(std::move(a)).status().message(),
              StartsWith("the artifact's target: cpu 'v9' is unknown; expected native, "));
  for (const char *name : {"v4", "native", "x86-64+amx", "v3+fp16"}) {
    Artifact made = example::add(4);
    made.target = name;
    const auto loaded = example::try_load(std::move(made));
    const FeatureSet host = FeatureSet::of_host(), wanted = Target::by_name(name)->features;
    ASSERT_TRUE(loaded.ok()) << name << ": it can be looked at";
    const Status callable = (*loaded)->check_callable();
    EXPECT_EQ(callable.ok(), host.has(wanted)) << name;
    if (callable.ok()) continue;
    EXPECT_EQ(callable.code(), Code::incompatible);
    EXPECT_EQ(callable.message(), str_cat("code for ", wanted.text(), " needs ", host.lacking(wanted),
                                          ", which this machine (", host.text(), ") lacks"));
  }
}

TEST(Executable, RefusesABackendThatThisBuildDoesNotHave) {
  Artifact a = example::add(4);
  a.backend = "abacus";
  EXPECT_THAT(example::try_load(std::move(a)).status().message(), HasSubstr("backend 'abacus' is not known"));
}

TEST(Executable, RefusesAReferenceStepWhoseGraphIsBroken) {
  Artifact a = example::add(4);
  a.plan.steps[0].kind = Plan::Step::Kind::reference;
  a.graphs = {"{"};
  EXPECT_FALSE(example::try_load(std::move(a)).ok());
}

TEST(Executable, RunsTheSameAfterTheArtifactWasWrittenAndRead) {
  const Result<Artifact> back = read_artifact(write_artifact(example::add(4)));
  ASSERT_TRUE(back.ok());
  auto call = example::call_of(*back);
  example::Floats x({4}), y({4}, 10), z({4});
  ASSERT_TRUE(example::run(*call, x, y, z).ok());
  EXPECT_THAT(z.values, testing::ElementsAre(10, 12, 14, 16));
}

TEST(Executable, OfADeviceLoadsWithoutOneAndNeedsItForACall) {
  Artifact a = example::add(4);
  a.backend = "cuda";
  a.target = "sm_90";
  uint32_t asked = 0;
  const auto loaded = Executable::load(std::make_shared<const Artifact>(std::move(a)), example::NoOps(),
                                       std::make_shared<ThreadPool>(1), example::build,
                                       [&](uint32_t index) -> Result<std::shared_ptr<Device>> {
                                         ++asked;
                                         return error(Code::no_device, "none here, of number ", index);
                                       });
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  EXPECT_EQ(asked, 0u);
  const auto call = Call::create(*loaded, {}, 2);
  EXPECT_EQ(call.status().code(), Code::no_device);
  EXPECT_EQ(call.status().message(), "none here, of number 2");
  EXPECT_EQ(asked, 1u);
}

TEST(Executable, WithoutCodeIsForLookingAtOnly) {
  Artifact a = example::add(4);
  a.images[0].code = std::make_shared<const Bytes>();
  const auto executable = example::load(std::move(a));
  EXPECT_EQ(Call::create(executable).status().code(), Code::invalid_argument);
}

}  // namespace
}  // namespace kiln
