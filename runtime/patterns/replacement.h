// Makes what takes a match's place.
#pragma once
#include <vector>

#include "runtime/graph/edit.h"
#include "runtime/patterns/matcher.h"

namespace kiln::patterns {

// Adds the replacement's nodes; the values that are to take the place of the pattern's outputs, in order. The pattern
// has a replacement. Errors name the node as the pattern calls it: it does not fit the place.
Result<std::vector<ValueId>> make_replacement(const Pattern &pattern, const Place &place, Edit &edit);

}  // namespace kiln::patterns
