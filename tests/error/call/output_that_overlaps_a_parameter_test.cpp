// An output that lies over a bound parameter.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, OutputThatOverlapsAParameter) {
  compile_sum();
  const DLTensor *w = f32({2});
  ASSERT_EQ(bind("w", w), host::Error());
  DLTensor y = *w;
  int64_t shape[] = {1, 2};
  y.ndim = 2;
  y.shape = shape;
  EXPECT_REFUSED(run({f32({1, 2}), &y}), "INVALID_ARGUMENT", "output 'y' overlaps parameter 'w'; a run writes it");
}

}  // namespace refused
