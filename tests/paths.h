// Where the source tree and the build folder lie. Told by one generated source (paths.cpp.in), not by a definition for
// all of them, so that a compiler cache serves every checkout.
#pragma once
#include <string>

namespace kiln::test {

extern const std::string source_dir, binary_dir, plugin_dir;

}  // namespace kiln::test
