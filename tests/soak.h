// Whether this run may take its time: `./dev soak` sets the variable, and tests that have a larger form run it.
#pragma once
#include <cstdlib>

namespace kiln::test {

inline bool soak() { return std::getenv("KILN_TEST_SOAK") != nullptr; }

}  // namespace kiln::test
