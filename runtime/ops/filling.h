// One number for many elements: the attributes `value` and `exact` of full, and of pad.
#pragma once
#include <optional>
#include <string>

#include "runtime/ops/op.h"

namespace kiln::ops {

AttrDef exact_attr();

// An element as RefTensor::i holds it, in digits.
std::string digits_of(int64_t element, DType dtype);

// Core::constant's encoding of the number, of 8-bit floats saturated as `convert` has it; nothing where an integer
// dtype does not hold it.
std::optional<uint64_t> filling(const AttrMap &attrs, DType dtype);
// An error unless there is one.
Status require_filling(const InferContext &c, DType dtype);

}  // namespace kiln::ops
