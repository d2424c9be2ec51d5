// Compiles a case and makes its calls, in memory where stray accesses are seen.
#pragma once
#include <string>
#include <vector>

#include "runtime/compile.h"
#include "tests/backend/random/random_case.h"

namespace kiln::testing {

using Results = std::vector<TensorData>;  // of one call: outputs, then the inputs that copy_ writes

// The results of each call, of one compilation. All calls are made with each number of threads in turn; an error if
// their results are not the same bits, if a byte beside an array is written, or one of an input that the graph only
// reads.
Result<std::vector<Results>> run_case(const RandomCase &made, const CompileOptions &options);

}  // namespace kiln::testing
