// In which order a compile runs its stages and passes, told before it does.
#pragma once
#include <string>

#include "runtime/compile.h"

namespace kiln {

// What compile() would run, as JSON (kiln_compile_passes documents it); runs no pass and asks no cache. Errors: those
// of compile() up to its first pass.
Result<std::string> compile_order(const CompileEnvironment &env, const Graph &graph, const CompileOptions &options);

}  // namespace kiln
