// An output all of whose elements are one, given or bound, of a graph that writes by any strides and of one that is
// row-major; of one element, and of none, strides say nothing.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, OutputThatIsOneElement) {
  for (const bool any : {true, false}) {
    compile(R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n"]}}],
      "nodes": [{"name": "y", "op": "neg", "inputs": ["x"]}], "outputs": [{"name": "y", "value": "y")" +
            std::string(any ? R"(, "type": {"dtype": "f32", "shape": ["n"], "strides": "any"})" : "") + "}]}");
    const char *const message =
        any ? "output 'y': stride 0 of dim 0 of 3 elements leads to an element twice"
            : "output 'y': stride of dim 0 is 0, expected 1 elements; make the array contiguous";
    float one = 5;
    int64_t size = 3, stride = 0;
    const DLTensor y{&one, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &size, &stride, 0};
    EXPECT_REFUSED(run({f32({3}), &y}), "TYPE_MISMATCH", message);
    ASSERT_EQ(bind("y", &y), host::Error());
    EXPECT_REFUSED(run({f32({3})}), "TYPE_MISMATCH", message);
    EXPECT_EQ(one, 5);
    for (const int64_t few : {0, 1}) {
      size = few;
      ASSERT_EQ(bind("y", &y), host::Error());
      EXPECT_EQ(run({f32({few})}), host::Error());
    }
    EXPECT_EQ(one, -1);
  }
}

}  // namespace refused
