// Forms of an op's sample: in another element type, and at its sizes.
#pragma once
#include <optional>
#include <vector>

#include "runtime/ops/op.h"

namespace kiln {

// The sample with its f32, or what is `from`, as another element type: operands, what they are given, and attributes.
// Its tolerance is that of the type. Nothing where the op does not take it so.
std::optional<Sample> retyped(const Op &op, Sample sample, DType type, DType from = DType::f32);
// The types, f32 apart, for which that gives something; none of a sample without f32.
std::vector<DType> other_types_of(const Op &op, const Sample &sample);
// Whether an operand or an attribute of the sample is of the type.
bool is_of(const Sample &sample, DType type);

// The sample without symbols: its dims are integers.
Sample at_sizes(Sample sample);

}  // namespace kiln
