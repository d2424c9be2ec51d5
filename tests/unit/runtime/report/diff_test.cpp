#include "runtime/report/diff.h"

#include <gtest/gtest.h>

#include <sstream>

#include "jit/base/str.h"

namespace kiln {
namespace {

std::string diff(std::string_view before, std::string_view after) { return unified_diff(before, after, "a", "b"); }

// What `patch` makes of the text.
std::string patched(const std::string &before, const std::string &difference) {
  std::istringstream from(before), script(difference);
  std::string line, out, old;
  size_t at = 1;  // the next line of `from`
  const auto take = [&] {
    std::getline(from, old);
    ++at;
  };
  std::getline(script, line);
  std::getline(script, line);
  while (std::getline(script, line)) {
    if (line.starts_with("@@ -")) {
      const size_t begin = std::stoul(line.substr(4)) + (line.find(",0 +") < line.find('+') ? 1 : 0);
      while (at < begin) {
        take();
        str_append(out, old + "\n");
      }
      continue;
    }
    if (line[0] != '+') {
      take();
      EXPECT_EQ(old, line.substr(1));
    }
    if (line[0] != '-') str_append(out, line.substr(1) + "\n");
  }
  while (std::getline(from, old)) str_append(out, old + "\n");
  return out;
}

TEST(Diff, EqualTextsHaveNone) {
  EXPECT_EQ(diff("", ""), "");
  EXPECT_EQ(diff("a\nb\n", "a\nb\n"), "");
}

TEST(Diff, AChangeStandsBetweenThreeLinesOnEachSide) {
  EXPECT_EQ(diff("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n"),
            "--- a\n+++ b\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n");
}

TEST(Diff, AnEmptySideIsToldByTheLineBefore) {
  EXPECT_EQ(diff("", "x\n"), "--- a\n+++ b\n@@ -0,0 +1,1 @@\n+x\n");
  EXPECT_EQ(diff("x\n", ""), "--- a\n+++ b\n@@ -1,1 +0,0 @@\n-x\n");
}

TEST(Diff, LinesThatMovedAreNotMatchedWithOthers) {
  EXPECT_EQ(diff("a\nb\nc\nd\n", "b\nc\nd\na\n"), "--- a\n+++ b\n@@ -1,4 +1,4 @@\n-a\n b\n c\n d\n+a\n");
}

TEST(Diff, PatchingMakesTheOtherText) {
  uint64_t state = 1;
  const auto draw = [&](uint64_t below) {
    return (state = state * 6364136223846793005U + 1442695040888963407U) >> 33 & (below - 1);
  };
  for (int round = 0; round < 200; ++round) {
    std::string before, after;
    for (int i = 0; i < 60; ++i) {
      const std::string line = str_cat("line ", draw(32), "\n");  // some stand there often
      if (draw(8) != 0) before += line;
      if (draw(8) != 0) after += line;
      if (draw(8) == 0) after += str_cat("new ", i, "\n");
    }
    if (before == after) continue;
    EXPECT_EQ(patched(before, diff(before, after)), after) << diff(before, after);
  }
}

}  // namespace
}  // namespace kiln
