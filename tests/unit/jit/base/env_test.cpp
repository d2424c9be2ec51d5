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
  EXPECT_EQ(env_count(Env::KILN_THREADS).status().message(),
            "KILN_THREADS is 'many'; expected a number from 1 to 4294967295");
  setenv("KILN_THREADS", "4294967296", 1);
  EXPECT_EQ(env_count(Env::KILN_THREADS).status().message(),
            "KILN_THREADS is '4294967296'; expected a number from 1 to 4294967295");
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

// Each variable that is not a text refuses what is none of its kind, wherever in the table it stands.
TEST(Env, ChecksAllValuesAgainstTheirKinds) {
  EXPECT_TRUE(check_env().ok());
  for (const EnvInfo &info : all_env()) {
    const std::optional<std::string> before = env_text(info.variable);
    setenv(info.name, "many", 1);
    const Status status = check_env();
    EXPECT_EQ(status.ok(), info.kind == EnvInfo::Kind::text) << info.name;
    if (!status.ok()) {
      EXPECT_TRUE(status.message().starts_with(std::string(info.name) + " is 'many'; expected "));
    }
    setenv(info.name, "", 1);
    EXPECT_TRUE(check_env().ok()) << info.name;
    before ? setenv(info.name, before->c_str(), 1) : unsetenv(info.name);
  }
}

}  // namespace
}  // namespace kiln
