// Tests of many rows, each with a member `what` that names it.
#pragma once
#include <gtest/gtest.h>

#include <ostream>
#include <string>

namespace host {

struct Row {
  const char *what;
};
inline void PrintTo(const Row &row, std::ostream *out) { *out << row.what; }

// The last argument of INSTANTIATE_TEST_SUITE_P.
inline constexpr auto name_of_row = [](const auto &instance) { return std::string(instance.param.what); };

}  // namespace host
