// JSON for people. Internal to this folder.
#pragma once
#include <string>
#include <string_view>

namespace kiln::unpacked {

// The same JSON, as JsonWriter writes it, in lines: a list or an object on one where it fits, and else each of its
// elements on one of its own. The outermost is on several always.
std::string pretty(std::string_view json);

}  // namespace kiln::unpacked
