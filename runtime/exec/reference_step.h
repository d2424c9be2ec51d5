// The step that runs a graph on the reference kernels.
#pragma once
#include <span>

#include "runtime/exec/executable.h"
#include "runtime/exec/loop_watch.h"
#include "runtime/exec/signature.h"
#include "runtime/exec/thread_pool.h"

namespace kiln {

// `graph` has the signature of `plan`, and `data` one address for each of its slots: reads inputs and parameters,
// writes outputs and written inputs. Operands are read where they lie, and kernels run on `pool`'s threads. Tells
// `sizes` what nodes of the graph resolve, `watch` what loops turn. `is_of_a_node`: as of a ReferenceExecution.
Status run_reference_step(const Graph &graph, const Plan &plan, const Signature &signature, ResolvedSizes &sizes,
                          std::span<void *const> data, LoopWatch &watch, ThreadPool &pool, bool is_of_a_node);

}  // namespace kiln
