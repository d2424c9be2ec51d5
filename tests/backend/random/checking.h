// What the tests of random graphs share: their seeds, what is expected of a graph, and how a failure is told.
#pragma once
#include <signal.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/backend/random/oracle.h"
#include "tests/backend/random/random_case.h"

namespace kiln::testing {

inline constexpr int shards = 8;           // of a test, each with as many graphs
inline constexpr int enough_failures = 3;  // of a shard: one bug shows in many graphs

// The seeds of one of the shards of `count` graphs. KILN_TEST_RANDOM_FIRST: the first of all; each graph has the next.
// KILN_TEST_RANDOM_SEED: that graph alone, in shard 0.
struct Seeds {
  uint64_t begin, end;
};
Seeds seeds_of_shard(uint64_t shard, uint64_t count);
bool is_single_seed();
// How the graph of that seed is run again, by the test of that name.
std::string command(std::string_view test, uint64_t seed);

// A crash is told with the seed of its graph; then comes what would have come without this.
class CrashReport {
 public:
  explicit CrashReport(const char *test);
  ~CrashReport();
  CrashReport(const CrashReport &) = delete;
  CrashReport &operator=(const CrashReport &) = delete;
  static void now_running(uint64_t number);
};

// A graph with what its calls should give.
struct Expectation {
  RandomCase made;
  std::vector<Expected> calls;  // empty: the reference fails once its operands are rounded
};
Result<Expectation> expectation_of(RandomCase made);

// Where the results of two compilations part, or "". `how` says which two: "in both fusions". The bits of a NaN aside,
// which no rule fixes.
std::string other_bits(const std::vector<Results> &got, const std::vector<Results> &expected, std::string_view how);

std::string sizes_text(const RandomCase &made);

// Of a failure: what the graph is, made as small as it still fails. `check` says what is wrong with a case, or "".
std::string report(std::string_view test, const RandomCase &made, const std::string &variant, const std::string &wrong,
                   const std::function<std::string(const RandomCase &)> &check);

}  // namespace kiln::testing
