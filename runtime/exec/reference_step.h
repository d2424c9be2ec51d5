// The step that runs the artifact's whole graph on the reference kernels.
#pragma once
#include <span>

#include "runtime/exec/executable.h"
#include "runtime/exec/signature.h"

namespace kiln {

// `data` has one address for each slot of the signature; reads inputs and parameters, writes outputs and written
// inputs. Tells `sizes` what nodes of the graph resolve.
Status run_reference_step(const Executable &executable, const Signature &signature, ResolvedSizes &sizes,
                          std::span<void *const> data);

}  // namespace kiln
