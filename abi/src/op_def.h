// Ops of a context, as the ABI makes them.
#pragma once
#include <memory>

#include "abi/src/entry.h"
#include "abi/src/pass.h"

namespace kiln::abi {

// `plugin` null: an op of the host's. Its `user` stays the caller's until own_user().
Result<std::unique_ptr<RegisteredOp>> make_op(const Checks &check, Context &context, const kiln_op_def *given,
                                              std::shared_ptr<PluginInContext> plugin);
void own_user(const RegisteredOp &op);

}  // namespace kiln::abi
