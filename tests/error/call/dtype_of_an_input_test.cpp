// An input of another dtype.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, DtypeOfAnInput) {
  compile(R"({"kiln": 1,
    "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n", 2]}}],
    "parameters": [{"name": "w", "type": {"dtype": "f32", "shape": [2]}}],
    "nodes": [{"name": "y", "op": "add", "inputs": ["x", "w"]}],
    "outputs": [{"name": "y", "value": "y"}]})");
  ASSERT_EQ(bind("w", f32({2})), host::Error());
  DLTensor x = *f32({1, 2});
  x.dtype = {kDLInt, 32, 1};
  EXPECT_REFUSED(run({&x}), "TYPE_MISMATCH", "input 'x': dtype is i32, expected f32");
}

}  // namespace refused
