// An input that a copy_ writes, all of whose elements are one: its size, which a call tells, could have been 1.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, WrittenInputThatIsOneElement) {
  compile(R"({"kiln": 1, "inputs": [{"name": "state", "type": {"dtype": "f32", "shape": ["n"], "strides": [0]}},
                                    {"name": "x", "type": {"dtype": "f32", "shape": ["n"]}}],
    "nodes": [{"name": "y", "op": "add", "inputs": ["state", "x"]},
              {"name": "next", "op": "copy_", "inputs": ["state", "y"]},
              {"name": "z", "op": "neg", "inputs": ["x"]}],
    "outputs": [{"name": "z", "value": "z"}]})");
  float one = 5;
  const auto run_with = [&](int64_t size) {
    int64_t stride = 0;
    const DLTensor state{&one, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &size, &stride, 0};
    return run({&state, f32({size})});
  };
  EXPECT_REFUSED(run_with(3), "TYPE_MISMATCH",
                 "input 'state': stride 0 of dim 0 of 3 elements leads to an element twice");
  EXPECT_EQ(one, 5);
  EXPECT_EQ(run_with(0), host::Error());
  EXPECT_EQ(run_with(1), host::Error());
  EXPECT_EQ(one, 6);
}

}  // namespace refused
