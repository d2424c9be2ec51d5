// Kernels and plans as text: JSON, every field by its name, what is as by default left out.
#pragma once
#include <string>
#include <string_view>

#include "jit/base/status.h"
#include "jit/kernel/kernel.h"
#include "runtime/plan/plan.h"

namespace kiln::unpacked {

std::string text_of(const kernel::Kernel &kernel);
// Verified. Errors say where in the text; code invalid_argument, or the verifier's.
Result<kernel::Kernel> read_kernel(std::string_view text);

// Without what contracts say, as its bytes.
std::string text_of(const Plan &plan);
// As it is written: what parse_plan() and verify_plan() check is not checked.
Result<Plan> read_plan(std::string_view text);

}  // namespace kiln::unpacked
