// Each built-in pass on a graph (passes/PASS.json): the text before and after it is in passes/PASS.txt.
#include "runtime/passes/builtin.h"
#include "runtime/passes/pipeline.h"
#include "tests/golden/golden.h"

namespace kiln {
namespace {

TEST(GoldenPass, InlineCalls) {
  test::expect_pass("passes", "inline_calls",
                    [](GraphPtr graph) { return inline_calls(std::move(graph), builtin_ops()); });
}

TEST(GoldenPass, Cse) {
  test::expect_pass("passes", "cse", [](GraphPtr graph) {
    PassRun run;
    return run_pass(cse_pass(), std::move(graph), builtin_ops(), run);
  });
}

TEST(GoldenPass, Decompose) {
  test::expect_pass("passes", "decompose", [](GraphPtr graph) { return decompose(std::move(graph), builtin_ops()); });
}

}  // namespace
}  // namespace kiln
