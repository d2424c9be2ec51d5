// Why the patterns of a pass are found, or not.
#pragma once
#include <string>

#include "runtime/compile.h"

namespace kiln {

// Runs the passes that come before it, explains, and runs the pass itself; as JSON (kiln_pass_explain documents it).
// The cache is not asked, nothing is lowered: a pass of stage lower is explained on the whole graph, without its calls.
// Errors: those of compile() up to there; unknown_name: no such pass is selected; invalid_argument: it has no patterns.
Result<std::string> explain_pass(const CompileEnvironment &env, GraphPtr graph, const CompileOptions &options,
                                 std::string_view name);

}  // namespace kiln
