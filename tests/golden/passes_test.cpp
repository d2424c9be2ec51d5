// Each built-in pass on a graph (passes/PASS.json): the text before and after it is in passes/PASS.txt. On a difference
// the actual text is left in the build folder, under golden/, to be read and, if it is right, copied.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "runtime/passes/builtin.h"
#include "runtime/passes/pipeline.h"
#include "tests/unit/runtime/graphs.h"

namespace kiln {
namespace {

namespace fs = std::filesystem;

std::string read_text(const fs::path &path) {
  std::ifstream in(path);
  EXPECT_TRUE(in) << path;
  return (std::stringstream() << in.rdbuf()).str();
}

void expect_golden(std::string_view pass, const std::function<Result<GraphPtr>(GraphPtr)> &run) {
  const fs::path folder = fs::path(KILN_SOURCE_DIR) / "tests/golden/passes";
  const GraphPtr before = test::graph_of(read_text(folder / str_cat(pass, ".json")));
  ASSERT_NE(before, nullptr);
  Result<GraphPtr> after = run(before);
  ASSERT_TRUE(after.ok()) << after.status().message();
  EXPECT_TRUE(verify(**after).ok()) << verify(**after).message();

  const std::string actual = str_cat("before\n\n", print(*before), "\nafter\n\n", print(**after));
  const std::string name = str_cat(pass, ".txt");
  if (actual == read_text(folder / name)) return;
  const fs::path left = fs::path(KILN_BINARY_DIR) / "golden" / name;
  fs::create_directories(left.parent_path());
  std::ofstream(left) << actual;
  ADD_FAILURE() << name << " differs; compare it with " << left;
}

TEST(GoldenPass, InlineCalls) {
  expect_golden("inline_calls", [](GraphPtr graph) {
    PassRun run;
    return run_pass(inline_calls_pass(), std::move(graph), builtin_ops(), run);
  });
}

TEST(GoldenPass, Cse) {
  expect_golden("cse", [](GraphPtr graph) {
    PassRun run;
    return run_pass(cse_pass(), std::move(graph), builtin_ops(), run);
  });
}

TEST(GoldenPass, Decompose) {
  expect_golden("decompose", [](GraphPtr graph) { return decompose(std::move(graph), builtin_ops(), {}); });
}

}  // namespace
}  // namespace kiln
