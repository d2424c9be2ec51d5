#include "jit/base/env.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace kiln {
namespace {

TEST(Env, TypedGettersSayWhatIsWrong) {
  unsetenv("KILN_THREADS");
  EXPECT_EQ(*env_count(Env::KILN_THREADS), std::nullopt);
  setenv("KILN_THREADS", "3", 1);
  EXPECT_EQ(*env_count(Env::KILN_THREADS), 3u);
  setenv("KILN_THREADS", "many", 1);
  EXPECT_EQ(env_count(Env::KILN_THREADS).status().message(), "KILN_THREADS is 'many'; expected a number, at least 1");
  unsetenv("KILN_THREADS");
  unsetenv("KILN_PERF_MAP");
  EXPECT_FALSE(*env_flag(Env::KILN_PERF_MAP));
  setenv("KILN_PERF_MAP", "1", 1);
  EXPECT_TRUE(*env_flag(Env::KILN_PERF_MAP));
  setenv("KILN_PERF_MAP", "yes", 1);
  EXPECT_FALSE(env_flag(Env::KILN_PERF_MAP).ok());
  unsetenv("KILN_PERF_MAP");
  EXPECT_STREQ(all_env()[static_cast<size_t>(Env::KILN_CACHE)].name, "KILN_CACHE");
}

}  // namespace
}  // namespace kiln
