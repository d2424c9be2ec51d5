// The proof that running a plan touches no memory that is not there, whatever the plan's bytes are.
//
// Trusted are images and what stands with their contracts (contract.h; which inputs are written): a record's code is
// run, so whoever writes it needs no plan.
// Proved of all else, when a record is loaded:
//   - every number is of something that is there, every symbol is bound, what is prepared depends on no call;
//   - a slot is no larger than the constant, storage or array that it stands for;
//   - a launch gives its kernel the buffers, sizes, tasks and scratch that the contract asks for: as many, of the
//     element types, at least as large, symbols within the ranges and equal where it relies on that;
//   - what is written is an output, the arena, one of the written inputs, or, while parameters are prepared, what is
//     prepared; and no other operand of the same step, but one of a launch that the contract says it may be.
// Whether one size is large enough for another may depend on symbols. What cannot be told at once is left in
// Plan::bounds, which a call checks when its shapes change; so are arrays against the slots of the signature.
// Values are not proved: a forged plan computes what it says.
#pragma once
#include <span>

#include "runtime/graph/attr.h"
#include "runtime/plan/contract.h"
#include "runtime/plan/plan.h"

namespace kiln {

// Takes the tasks and scratch of each launch over from its kernel's contract, and makes the plan's bounds. code
// corrupt.
Status verify_plan(Plan &plan, std::span<const Contract> contracts, std::span<const TensorData> constants);

}  // namespace kiln
