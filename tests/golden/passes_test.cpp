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

void expect_of(Pass (*make)()) {
  const Pass pass = make();
  test::expect_pass("passes", pass.name, [&](GraphPtr graph) {
    PassRun run;
    return run_pass(pass, std::move(graph), builtin_ops(), run);
  });
}
TEST(GoldenPass, Cse) { expect_of(cse_pass); }
TEST(GoldenPass, Canonicalize) { expect_of(canonicalize_pass); }
TEST(GoldenPass, Algebra) { expect_of(algebra_pass); }
TEST(GoldenPass, FoldConstants) { expect_of(fold_constants_pass); }
TEST(GoldenPass, RemoveNoOps) { expect_of(remove_no_ops_pass); }
TEST(GoldenPass, MergeViews) { expect_of(merge_views_pass); }

TEST(GoldenPass, Decompose) {
  test::expect_pass("passes", "decompose", [](GraphPtr graph) { return decompose(std::move(graph), builtin_ops()); });
}

}  // namespace
}  // namespace kiln
