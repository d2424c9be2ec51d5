// How much of themselves tests run that have several forms.
#pragma once
#include <cstdlib>

namespace kiln::test {

// Whether this run may take its time: `./dev soak` sets the variable, and tests that have a larger form run it.
inline bool soak() { return std::getenv("KILN_TEST_SOAK") != nullptr; }

// Whether it is for what threads do together: `./dev tsan` sets the variable, and what a thread does alone, in type
// after type and at level after level, is run in one form.
inline bool threads_only() { return std::getenv("KILN_TEST_THREADS_ONLY") != nullptr; }

}  // namespace kiln::test
