// The backends of every case in this folder.
#include "tests/error/call/call.h"

namespace refused {
INSTANTIATE_TEST_SUITE_P(Call, OnEachBackend, testing::Values("cpu", "reference"),
                         [](const testing::TestParamInfo<const char *> &at) { return std::string(at.param); });
}  // namespace refused
