#include "jit/base/target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "jit/base/cpuid.h"

namespace kiln {
namespace {

using testing::HasSubstr;

FeatureSet features(std::string_view text) {
  const Result<FeatureSet> set = FeatureSet::parse(text, {});
  EXPECT_TRUE(set.ok()) << set.status().message();
  return set.ok() ? *set : FeatureSet();
}

TEST(Target, HasTheWidestVectorsThatItsFeaturesAllow) {
  EXPECT_EQ(Target::by_name("x86-64")->vector_bytes(), 16u);
  EXPECT_EQ(Target::by_name("v3-avx2")->vector_bytes(), 16u);
  EXPECT_EQ(Target::by_name("v3")->vector_bytes(), 32u);
  EXPECT_EQ(Target::by_name("v4-avx512vl")->vector_bytes(), 32u);
  EXPECT_EQ(Target::by_name("v4-movbe")->vector_bytes(), 64u);
  EXPECT_EQ(Target::device("sm_90").vector_bytes(), 4u);
}

TEST(Target, NativeIsAllThatThisMachineHas) {
  const Target host = Target::host();
  EXPECT_TRUE(host.runs_on_host());
  EXPECT_EQ(Target::by_name("native")->name(), host.name());
  EXPECT_EQ(Target::by_name(host.name())->features, host.features);
}

TEST(Target, SaysWhichFeaturesThisMachineLacks) {
  const FeatureSet host = features("v3-movbe");
  EXPECT_EQ(host.lacking(features("v3")), "movbe");
  EXPECT_EQ(host.lacking(features("v4+vnni")), "movbe, avx512f") << "what AVX-512 brings needs its foundation";
  EXPECT_EQ(host.lacking(features("x86-64+amx")), "amx_tile");
  EXPECT_EQ(host.lacking(features("v3-movbe")), "");
}

TEST(Features, OfALevelAreASetToAddToAndToRemoveFrom) {
  EXPECT_TRUE(features("v4+vnni").has(features("v4")));
  EXPECT_TRUE(features("v4+vnni").has(Feature::vnni));
  EXPECT_FALSE(features("v4").has(Feature::vnni));
  EXPECT_FALSE(features("v4-lzcnt").has(Feature::lzcnt));
  EXPECT_TRUE(features("v3").has(Feature::movbe)) << "code for x86-64-v3 may use it";
  EXPECT_EQ(features("avx512+amx"), features("v4+amx_int8+amx_bf16"));
  EXPECT_EQ(features("v4+vnni-amx-vnni"), features("v4"));
  EXPECT_EQ(*FeatureSet::parse("native-avx", features("v4+vnni")), features("x86-64+popcnt+sse4.2+cx16+lahf+xsave+bmi1"
                                                                            "+bmi2+lzcnt+movbe"));
}

TEST(Features, BringWhatTheyNeedAndGoWithIt) {
  EXPECT_TRUE(features("x86-64+vbmi").has(Feature::avx512bw));
  EXPECT_TRUE(features("x86-64+vbmi").has(Feature::fma));
  EXPECT_FALSE(features("v4+vnni-fma").has(Feature::avx512f));
  EXPECT_FALSE(features("v4+vnni-fma").has(Feature::vnni));
  EXPECT_TRUE(features("v4+vnni-fma").has(Feature::avx2));
}

TEST(Features, AreWrittenShortAndTheSameForEqualSets) {
  for (const auto &[given, written] :
       std::vector<std::pair<std::string, std::string>>{{"x86-64", "x86-64"},
                                                        {"avx2", "v3"},
                                                        {"v3+avx512bw+avx512cd+avx512dq+avx512vl", "v4"},
                                                        {"v4+vbmi+vnni", "v4+vbmi+vnni"},
                                                        {"v4+vnni+vbmi", "v4+vbmi+vnni"},
                                                        {"v4-fma", "v3-fma"},
                                                        {"v3+sse3-movbe+avx_vnni", "v3+avx_vnni-movbe"},
                                                        {"x86-64+sse3", "x86-64+sse3"}}) {
    EXPECT_EQ(features(given).text(), written);
    EXPECT_EQ(features(written), features(given));
  }
}

TEST(Features, ThatNobodyKnowsAreRefusedWithThoseThatThereAre) {
  for (const char *text : {"", "v5", "v", "v44", "V3", "x86", "+vnni", "nativ"}) {
    const Status status = FeatureSet::parse(text, {}).status();
    EXPECT_EQ(status.code(), Code::unknown_name) << text;
    EXPECT_THAT(status.message(), HasSubstr(str_cat("cpu '", text, "' is unknown; expected native, x86-64, v3")));
  }
  for (const char *name : {"foo", "", "VNNI", "v3"}) {
    const Status status = FeatureSet::parse(str_cat("v4-fma+", name), {}).status();
    EXPECT_EQ(status.code(), Code::unknown_name) << name;
    EXPECT_THAT(status.message(), HasSubstr(str_cat("there is no feature '", name, "' but sse3, ssse3, ")));
    EXPECT_THAT(status.message(), HasSubstr("amx_int8, and amx"));
  }
}

// The kernel lists what it lets programs use.
TEST(Features, OfThisMachineAreThoseThatTheKernelLists) {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line) && !line.starts_with("flags")) {
  }
  if (line.empty()) GTEST_SKIP() << "the system lists no flags";
  line += ' ';
  const FeatureSet host = FeatureSet::of_host();
  for (const auto &[feature, flag] : std::vector<std::pair<Feature, std::string>>{{Feature::sse3, "pni"},
                                                                                  {Feature::sse42, "sse4_2"},
                                                                                  {Feature::lahf, "lahf_lm"},
                                                                                  {Feature::avx, "avx"},
                                                                                  {Feature::avx2, "avx2"},
                                                                                  {Feature::fma, "fma"},
                                                                                  {Feature::f16c, "f16c"},
                                                                                  {Feature::lzcnt, "abm"},
                                                                                  {Feature::movbe, "movbe"},
                                                                                  {Feature::avx_vnni, "avx_vnni"},
                                                                                  {Feature::avx512f, "avx512f"},
                                                                                  {Feature::avx512vl, "avx512vl"},
                                                                                  {Feature::vbmi, "avx512vbmi"},
                                                                                  {Feature::vnni, "avx512_vnni"},
                                                                                  {Feature::bf16, "avx512_bf16"},
                                                                                  {Feature::fp16, "avx512_fp16"},
                                                                                  {Feature::amx_tile, "amx_tile"},
                                                                                  {Feature::amx_int8, "amx_int8"}})
    EXPECT_EQ(host.has(feature), line.find(" " + flag + " ") != line.npos) << flag;
}

TEST(Caches, ArePowersOfTwo) {
  const Caches caches = Caches::of_host();
  for (const uint64_t bytes : {caches.l1, caches.l2, caches.l3}) EXPECT_EQ(bytes & (bytes - 1), 0u);
  EXPECT_GE(caches.l1, 16u << 10) << "no processor of this family has less";
  EXPECT_LE(caches.l1, 1u << 20);
  EXPECT_LE(caches.l1, caches.l2);
}

}  // namespace
}  // namespace kiln
