// Functions of libraries that a host lets load.
#pragma once
#include <string>

#include "jit/base/hash.h"
#include "jit/base/status.h"

namespace kiln {

struct LibraryFunction {
  void (*pointer)() = nullptr;
  Digest identity;  // of the library, as it runs, and of what it links
};
// `path` is absolute. codes io, out_of_memory; unknown_name: it has no such symbol.
Result<LibraryFunction> open_function(const std::string &path, const std::string &symbol);

}  // namespace kiln
