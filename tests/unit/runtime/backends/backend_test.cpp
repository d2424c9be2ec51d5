#include "runtime/backends/backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln {
namespace {

using ::testing::HasSubstr;

Result<Target> target(std::string_view backend, std::string_view cpu = "native", std::string_view arch = "native") {
  return target_of(*find_backend(backend).value(), cpu, arch);
}

TEST(Backend, AnUnknownOneIsToldThoseThatThereAre) {
  const Status status = find_backend("abacus").take_status();
  EXPECT_EQ(status.code(), Code::unknown_name);
  EXPECT_EQ(status.message(), "backend 'abacus' is not known; there are cpu, cuda, reference");
}

TEST(Backend, HasATargetOfItsOwnKind) {
  EXPECT_EQ(target("cpu", "v3")->name(), "v3");
  EXPECT_FALSE(target("reference")->on_device());
  EXPECT_EQ(target("cuda", "native", "sm_90a")->name(), "sm_90a");
  EXPECT_TRUE(target("cuda", "native", "sm_90a")->on_device());
  EXPECT_EQ(target("cuda")->arch, "") << "the device is to be asked";
}

TEST(Backend, RefusesTheOptionOfAnotherKind) {
  EXPECT_THAT(target("cpu", "native", "sm_90").status().message(),
              HasSubstr("option 'arch' is 'sm_90', but backend cpu"));
  EXPECT_THAT(target("cuda", "v3").status().message(), HasSubstr("option 'cpu' is 'v3', but backend cuda"));
  const Status unknown = target("cuda", "native", "sm_1").take_status();
  EXPECT_EQ(unknown.code(), Code::unknown_name);
  EXPECT_THAT(unknown.message(), HasSubstr("arch 'sm_1' of backend cuda is not known; there are native, sm_75, sm_80"));
}

TEST(Backend, KnowsWhichDevicesRunItsCode) {
  const BackendInfo &cuda = *find_backend("cuda").value();
  for (const auto &[code, device] : {std::pair("sm_80", "sm_80"),
                                     {"sm_80", "sm_89"},
                                     {"sm_90a", "sm_90"},
                                     {"sm_100f", "sm_103"},
                                     {"sm_120", "sm_121"}})
    EXPECT_TRUE(cuda.runs(code, device)) << code << " on " << device;
  for (const auto &[code, device] : {std::pair("sm_86", "sm_80"),
                                     {"sm_80", "sm_90"},
                                     {"sm_100a", "sm_103"},
                                     {"sm_90", "sm_100"},
                                     {"", "sm_90"},
                                     {"v3", "sm_90"}})
    EXPECT_FALSE(cuda.runs(code, device)) << code << " on " << device;
}

TEST(Target, OfADeviceKnowsNothingOfThisProcessor) {
  const Target device = Target::device("sm_90");
  EXPECT_EQ(device.name(), "sm_90");
  EXPECT_EQ(device.vector_bytes(), 4u);
  EXPECT_FALSE(device.runs_on_host());
}

}  // namespace
}  // namespace kiln
