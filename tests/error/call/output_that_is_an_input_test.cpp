// An output in the very memory of an input.
#include "tests/error/call/call.h"

namespace refused {

TEST_P(OnEachBackend, OutputThatIsAnInput) {
  compile_bound_sum();
  const DLTensor *x = f32({2, 2});
  EXPECT_REFUSED(run({x, x}), "INVALID_ARGUMENT", "output 'y' overlaps input 'x'; a run writes it");
}

}  // namespace refused
