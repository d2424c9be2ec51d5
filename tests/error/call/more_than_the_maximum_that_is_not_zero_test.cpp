// More elements that are not 0 than the node allows.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, MoreThanTheMaximumThatIsNotZero) {
  compile(R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "i64", "shape": ["n"]}}],
    "nodes": [{"name": "at", "op": "nonzero", "inputs": ["x"], "attrs": {"max": 2}}],
    "outputs": [{"name": "at", "value": "at:0"}]})");
  EXPECT_REFUSED(run({i64({7, 0, -1, 1})}), "TYPE_MISMATCH",
                 by_backend("node 'at': ", "node 'at' (nonzero): ") + "the size is 3, expected 0 to 2 (symbol '_at')");
  EXPECT_EQ(run({i64({7, 0, -1, 0})}), host::Error()) << "and the call goes on";
}

}  // namespace refused
