// Bags whose begins do not rise as they should: every backend gives the same, or refuses the same.
#include <gtest/gtest.h>

#include "runtime/ops/samples.h"
#include "tests/backend/backends.h"

namespace kiln::testing {
namespace {

using ops::f32;
using ops::i64;

// Of rows (1, 2), (3, 4), (5, 6), (7, 8), each once.
Result<Case> bags(const std::string &mode, std::vector<int64_t> offsets) {
  const auto count = static_cast<int64_t>(offsets.size());
  return make_case(*find_op("embedding_bag"),
                   {.inputs = {f32({4, 2}), i64({4}), i64({count})},
                    .attrs = {{"mode", mode}},
                    .given = {{0, ops::f32_data({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8})},
                              {1, ops::i64_data({4}, {0, 1, 2, 3})},
                              {2, ops::i64_data({count}, offsets)}}},
                   1);
}

std::vector<Backend> compiled_and_reference() {
  std::vector<Backend> all = compiled_backends();
  all.push_back(reference());
  return all;
}

TEST(Bags, ThatBeginBeforeTheOneBeforeThemBeginWithIt) {
  const std::map<std::string, std::vector<double>> expected = {
      {"sum", {9, 12, 0, 0, 7, 8}}, {"mean", {3, 4, 0, 0, 7, 8}}, {"max", {5, 6, 0, 0, 7, 8}}};
  for (const auto &[mode, values] : expected) {
    const Result<Case> made = bags(mode, {0, 3, 1});
    ASSERT_TRUE(made.ok()) << made.status().message();
    for (const Backend &backend : compiled_and_reference()) {
      const Result<std::vector<TensorData>> results = backend.run(*made);
      ASSERT_TRUE(results.ok()) << backend.name << ": " << results.status().message();
      EXPECT_EQ(to_reference((*results)[0]).f, values) << backend.name << ", " << mode;
    }
  }
}

TEST(Bags, LeaveNothingBeforeTheFirst) {
  const Result<Case> made = bags("mean", {2, 0});
  ASSERT_TRUE(made.ok()) << made.status().message();
  for (const Backend &backend : compiled_and_reference())
    EXPECT_EQ(backend.run(*made).status().code(), Code::out_of_range) << backend.name;
}

}  // namespace
}  // namespace kiln::testing
