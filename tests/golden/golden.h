// Texts that are compared as a whole. On a difference the actual text is left in the build folder, under golden/, to be
// read and, if it is right, copied.
#pragma once
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "tests/paths.h"
#include "tests/unit/runtime/graphs.h"

namespace kiln::test {

inline std::string read_text(const std::filesystem::path &path) {
  std::ifstream in(path);
  EXPECT_TRUE(in) << path;
  return (std::stringstream() << in.rdbuf()).str();
}

// `name` is relative to tests/golden.
inline void expect_text(const std::string &actual, const std::string &name) {
  if (actual == read_text(std::filesystem::path(source_dir) / "tests/golden" / name)) return;
  const std::filesystem::path left = std::filesystem::path(binary_dir) / "golden" / name;
  std::filesystem::create_directories(left.parent_path());
  std::ofstream(left) << actual;
  ADD_FAILURE() << name << " differs; compare it with " << left;
}

struct BeforeAndAfter {
  GraphPtr before, after;
};
// Runs a pass on FOLDER/NAME.json and compares the text before and after it with FOLDER/NAME.txt.
inline BeforeAndAfter expect_pass(const std::string &folder, const std::string &name,
                                  const std::function<Result<GraphPtr>(GraphPtr)> &run) {
  const auto file = std::filesystem::path(source_dir) / "tests/golden" / folder / (name + ".json");
  const GraphPtr before = graph_of(read_text(file));
  if (!before) return {};
  Result<GraphPtr> after = run(before);
  EXPECT_TRUE(after.ok()) << after.status().message();
  if (!after.ok()) return {};
  EXPECT_TRUE(verify(**after).ok()) << verify(**after).message();
  expect_text(str_cat("before\n\n", print(*before), "\nafter\n\n", print(**after)), folder + "/" + name + ".txt");
  return {before, *after};
}

}  // namespace kiln::test
