// What a loaded library is linked with: the libraries that the loader found for it, and what these are.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "jit/base/dynamic_library.h"
#include "jit/base/hash.h"

namespace kiln {

struct LinkedLibrary {
  std::string name;  // by which it was asked for
  std::string path;  // where the loader found it
  // Of what is mapped: "build id 5f3c…", which its linker gave it; where it has none, "digest 09ab…" of the memory that
  // nobody writes and of the file.
  std::string identity;
};

// All that `library` needs, and what that needs in turn, in the order of their names; but the C and C++ libraries of
// the system (libc, libm, libstdc++, libgcc_s, the loader, …) and what these need.
std::vector<LinkedLibrary> linked_with(const DynamicLibrary &library);

// Of a library with this digest and what it is linked with, wherever that lies; without links the digest.
Digest identity_of(const Digest &file, std::span<const LinkedLibrary> links);

}  // namespace kiln
