#include "runtime/plan/order.h"

#include <gmock/gmock.h>

namespace kiln {
namespace {

using ::testing::ElementsAre;

// Tensors 0 and 1 are given; step k makes tensor 10 + k.
std::vector<uint32_t> ordered(std::vector<std::vector<uint32_t>> reads, std::vector<Overwrite> overwrites) {
  std::vector<StepUse> steps;
  for (uint32_t k = 0; k < reads.size(); ++k) steps.push_back({std::move(reads[k]), {10 + k}});
  return put_off(steps, overwrites);
}

TEST(Order, PutsAStepOffUntilAllOthersHaveReadWhatItOverwrites) {
  EXPECT_THAT(ordered({{0}, {0}, {1}, {0}, {1}}, {{0, 0}}), ElementsAre(1, 2, 3, 0, 4));
  EXPECT_THAT(ordered({{}, {0}, {1}}, {{0, 0}}), ElementsAre(1, 0, 2)) << "one that does not read it itself";
  EXPECT_THAT(ordered({{0}, {1}}, {{0, 0}}), ElementsAre(0, 1)) << "nobody else reads it";
  EXPECT_THAT(ordered({{0}, {0}, {1}}, {}), ElementsAre(0, 1, 2));
}

TEST(Order, PutsNoStepOffBeyondTheOneThatReadsWhatItMakes) {
  EXPECT_THAT(ordered({{0}, {1}, {10}, {0}}, {{0, 0}}), ElementsAre(1, 0, 2, 3));
  EXPECT_THAT(ordered({{0}, {10, 0}, {0, 11}}, {{0, 0}, {1, 0}}), ElementsAre(0, 1, 2));
}

TEST(Order, LetsAStepThatWasPutOffFollowAnother) {
  // Step 0 overwrites what step 1 reads, which overwrites what step 2 reads.
  EXPECT_THAT(ordered({{0}, {0, 1}, {1}}, {{0, 0}, {1, 1}}), ElementsAre(2, 1, 0));
}

TEST(Order, KeepsEachStepWhereTwoOverwriteWhatTheOtherReads) {
  EXPECT_THAT(ordered({{0, 1}, {0, 1}}, {{0, 0}, {1, 1}}), ElementsAre(0, 1));
}

TEST(Order, PutsOffThousandsOfStepsThatWaitForEachOther) {
  // Step k overwrites tensor k, which step k + 1 reads.
  constexpr uint32_t count = 20000;
  std::vector<StepUse> steps;
  std::vector<Overwrite> overwrites;
  for (uint32_t k = 0; k < count; ++k) {
    steps.push_back({k == 0 ? std::vector<uint32_t>{0} : std::vector<uint32_t>{k - 1, k}, {count + k}});
    overwrites.push_back({k, k});
  }
  const std::vector<uint32_t> order = put_off(steps, overwrites);
  ASSERT_EQ(order.size(), count);
  for (uint32_t i = 0; i < count; ++i) ASSERT_EQ(order[i], count - 1 - i);
}

}  // namespace
}  // namespace kiln
