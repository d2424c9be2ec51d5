// Which compiler outside of Kiln's own build (NVRTC) is here, without opening it: what it told when it last was, as
// long as nothing has changed since that decides which file the loader takes.
#pragma once
#include <string>
#include <string_view>

namespace kiln {

// "NVRTC 12.4", as the module told it; empty: unknown, and the module has to be asked. `folder` is the cache's.
std::string remembered_compiler(const std::string &folder);
// Of the one that is open in this process. What cannot be written is not remembered.
void remember_compiler(const std::string &folder, std::string_view name);

}  // namespace kiln
