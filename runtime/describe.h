// Descriptions: JSON, whose members kiln.h documents, and listings.
#pragma once
#include <string>

#include "jit/base/status.h"
#include "runtime/exec/executable.h"
#include "runtime/graph/graph.h"
#include "runtime/modules.h"
#include "runtime/ops/op.h"

namespace kiln {

std::string describe(const Op &op);
std::string describe(const Graph &graph);
std::string describe(const Executable &executable);

// A listing for people. `what`: "plan", "kernels" (kernel IR), or what the module of the executable's backend emits
// again from its kernels: "llvm", "asm" (cpu), "cuda" (cuda).
Result<std::string> list_text(const Executable &executable, std::string_view what, Modules &modules);

}  // namespace kiln
