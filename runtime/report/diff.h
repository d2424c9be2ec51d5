// What differs between two texts, for people.
#pragma once
#include <string>
#include <string_view>

namespace kiln {

// A unified diff, each change with three lines around it; empty: they are equal. Lines that stand once in each text are
// matched first, so that what moved or was renamed stays readable. Near-linear where lines differ from one another.
std::string unified_diff(std::string_view before, std::string_view after, std::string_view name_before,
                         std::string_view name_after);

}  // namespace kiln
