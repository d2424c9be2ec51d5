// What enumerators are called in text. Internal to this folder.
#pragma once
#include <string_view>

#include "jit/kernel/kernel.h"
#include "runtime/plan/plan.h"

namespace kiln::unpacked {

// Each enumeration's names, from its first enumerator on; "": it has no such enumerator.
std::string_view text_of(DType dtype);
std::string_view text_of(kernel::Core op);
std::string_view text_of(kernel::Axis::Role role);
std::string_view text_of(kernel::Store::Mode mode);
std::string_view text_of(kernel::Buffer::Space space);
std::string_view text_of(kernel::Schedule::Vector vector);
std::string_view text_of(kernel::Schedule::Products products);
std::string_view text_of(Plan::Presented::Kind kind);
std::string_view text_of(Plan::Slot::Kind kind);
std::string_view text_of(Plan::Step::Kind kind);
std::string_view text_of(Plan::Step::Why why);

}  // namespace kiln::unpacked
