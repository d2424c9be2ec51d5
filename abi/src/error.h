// Errors: kiln_error from Status, and back.
#pragma once
#include <kiln/kiln.h>

#include "jit/base/status.h"

namespace kiln::abi {

// The caller owns the result; never null for an error.
kiln_error *to_error(Status status) noexcept;
kiln_error *out_of_memory() noexcept;
// What a callback returned, as a Status; destroys the error. Null is ok.
Status take_status(kiln_error *error);

}  // namespace kiln::abi
