// The schema of an op that is registered, as JSON: what kiln_op_describe tells of an op, as far as it is the op's to
// say. kiln_op_def (types.h) documents it.
#pragma once
#include <memory>
#include <string_view>

#include "runtime/ops/registered.h"

namespace kiln {

// The record without its functions. Errors say where ("args[1].dtypes").
Result<std::unique_ptr<RegisteredOp>> read_schema(std::string_view json);

}  // namespace kiln
