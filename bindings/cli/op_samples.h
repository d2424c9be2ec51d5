// The samples of ops, run.
#pragma once
#include "handles.h"
#include "session.h"

namespace kiln::cli {

// Runs each sample of an op on the backends cpu and reference and prints how far apart they are, a line each. The first
// that is too far ends it, with false; what cannot be compiled or run is a Failure. `op`: of kiln_op_describe.
bool test_samples(const Session &session, const Report &op);

}  // namespace kiln::cli
