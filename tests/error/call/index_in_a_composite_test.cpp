// Indices that ops check which are not loads, and that a decomposition uses: the host's node is named.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, IndexBeyondOneHot) {
  compile(R"({"kiln": 1, "inputs": [{"name": "j", "type": {"dtype": "i64", "shape": ["n"]}}],
    "nodes": [{"name": "hot", "op": "one_hot", "inputs": ["j"], "attrs": {"classes": 3}}],
    "outputs": [{"name": "hot", "value": "hot"}]})");
  EXPECT_REFUSED(run({i64({0, 3})}), "OUT_OF_RANGE",
                 by_backend("an index is out of range in node 'hot' [one_hot] (first in step 0, kernel 0)",
                            "node 'hot' (one_hot): index 3 is out of range: expected 0 <= index < 3"));
  EXPECT_EQ(run({i64({0, 2})}), host::Error()) << "and the call goes on";
}

TEST_P(OnEachBackend, IndexBeyondACompositeInACalledGraph) {
  compile(R"({"kiln": 1, "inputs": [{"name": "t", "type": {"dtype": "i64", "shape": ["n"]}}],
    "parameters": [{"name": "x", "type": {"dtype": "f32", "shape": ["n", 3]}}],
    "nodes": [{"name": "inner", "op": "call", "inputs": ["x", "t"], "attrs": {"graph": "g"}}],
    "outputs": [{"name": "y", "value": "inner"}],
    "graphs": {"g": {"inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["m", 3]}},
                                {"name": "t", "type": {"dtype": "i64", "shape": ["m"]}}],
      "nodes": [{"name": "loss", "op": "nll_loss", "inputs": ["x", "t"]}],
      "outputs": [{"name": "loss", "value": "loss"}]}}})");
  ASSERT_EQ(bind("x", f32({2, 3})), host::Error());
  EXPECT_REFUSED(
      run({i64({0, 7})}), "OUT_OF_RANGE",
      by_backend("an index is out of range in node 'inner.loss' [nll_loss] (first in step 0, kernel 0)",
                 "node 'inner' (call): node 'loss' (nll_loss): index 7 is out of range: expected 0 <= index < 3"));
}

// What computes in f32 takes the place of the host's node of 16 bits, and its name.
TEST_P(OnEachBackend, IndexBeyondAScatterOfSixteenBits) {
  compile(R"({"kiln": 1, "inputs": [{"name": "j", "type": {"dtype": "i64", "shape": ["n"]}}],
    "parameters": [{"name": "x", "type": {"dtype": "f32", "shape": [3]}},
                   {"name": "s", "type": {"dtype": "f32", "shape": ["n"]}}],
    "nodes": [{"name": "a", "op": "convert", "inputs": ["x"], "attrs": {"dtype": "bf16"}},
              {"name": "b", "op": "convert", "inputs": ["s"], "attrs": {"dtype": "bf16"}},
              {"name": "mine", "op": "scatter_add", "inputs": ["a", "j", "b"], "attrs": {"dim": 0}}],
    "outputs": [{"name": "y", "value": "mine"}]})");
  ASSERT_EQ(bind("x", f32({3})), host::Error());
  ASSERT_EQ(bind("s", f32({2})), host::Error());
  EXPECT_REFUSED(run({i64({0, 3})}), "OUT_OF_RANGE",
                 by_backend("an index is out of range in node 'mine' [scatter_add] (first in step 1, kernel 1)",
                            "node 'mine' (scatter_add): index 3 is out of range: expected 0 <= index < 3"));
}

}  // namespace refused
