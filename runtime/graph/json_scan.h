// The strict scan that comes before cJSON, which by itself accepts trailing text, 01, duplicate keys and invalid UTF-8,
// cuts strings at \u0000 and rounds integers.
#pragma once
#include <string_view>

#include "jit/base/status.h"

namespace kiln {

// Ok when `text` is one JSON value and nothing else: UTF-8, at most 64 deep, no key twice in an object, no \u0000, no
// lone surrogate, no number that is infinite as a double, and no integer beyond 2^53 (those are written as strings).
// Errors say line, column and what was expected; code invalid_argument.
Status scan_json(std::string_view text);

}  // namespace kiln
