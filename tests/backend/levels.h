// The feature levels of processors that this machine has: tests run at each of them.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include "jit/base/target.h"

namespace kiln::testing {

inline std::vector<std::string> levels_here() {
  std::vector<std::string> all;
  for (const char *level : {"x86-64", "v3", "v4"})
    if (Target::by_name(level)->runs_on_host()) all.emplace_back(level);
  return all;
}

// And all that it has, where that is no level.
inline std::vector<std::string> levels_and_native() {
  std::vector<std::string> all = levels_here();
  const auto is_native = [](const std::string &level) {
    return Target::by_name(level)->name() == Target::host().name();
  };
  if (std::ranges::none_of(all, is_native)) all.emplace_back("native");
  return all;
}

// In the name of a test: letters and digits alone.
inline std::string level_in_name(const ::testing::TestParamInfo<std::string> &level) {
  std::string name = level.param;
  std::erase_if(name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); });
  return name;
}

}  // namespace kiln::testing
