// Listings: what an executable is made of, as text for people.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "jit/base/status.h"
#include "runtime/exec/executable.h"
#include "runtime/modules.h"

namespace kiln {

// `what`: "plan", "steps" (step_report.h), "graph" (after passes, as JSON), "kernels" (kernel IR), or what the module
// of the executable's backend emits again from its kernels: "llvm", "asm" (cpu), "cuda" (cuda).
Result<std::string> list_text(const Executable &executable, std::string_view what, const OpTable &ops,
                              Modules &modules);
// The parts of the listing "kernels", or of one that the module emits: a text a kernel.
Result<std::vector<std::string>> list_kernels(const Executable &executable, std::string_view what, Modules &modules);

}  // namespace kiln
