// The families that the built-in ops fall into, as people look for them.
#pragma once
#include <span>
#include <string_view>

#include "runtime/ops/op.h"

namespace kiln {

// Of a built-in op; "" of any other.
std::string_view family_of(const Op &op);

}  // namespace kiln
