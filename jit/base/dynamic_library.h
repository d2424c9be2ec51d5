// A shared library opened at run time. Never unloaded: code from it may still be referenced when its owner goes.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "jit/base/bytes.h"
#include "jit/base/status.h"

namespace kiln {

class DynamicLibrary {
 public:
  // RTLD_NOW | RTLD_LOCAL. Code io, with the loader's own words, when it cannot be opened; and when a file that `path`
  // names by its folder ends before its segments do, which the loader does not look for.
  static Result<DynamicLibrary> open(const std::string &path);
  // A library of its own with these contents, whatever the process has loaded before: the loader merges libraries of
  // one name or one inode, so it gets a sealed copy in memory. `path` is what messages and /proc/PID/maps call it; what
  // is looked for beside the library ($ORIGIN) is not found.
  static Result<DynamicLibrary> open_copy(ByteSpan file, const std::string &path);
  // What the loader would take for `path` without loading anything, whoever opened it.
  static std::optional<DynamicLibrary> find(const std::string &path);
  // Code unknown_name when there is none.
  template <class Function>
  Result<Function> symbol(const char *name) const {
    KILN_ASSIGN(void *address, address_of(name));
    return reinterpret_cast<Function>(address);
  }
  const std::string &path() const { return path_; }
  void *handle() const { return handle_; }  // the loader's; one for each library that it tells apart

 private:
  DynamicLibrary(void *handle, std::string path) : handle_(handle), path_(std::move(path)) {}
  Result<void *> address_of(const char *name) const;
  void *handle_;
  std::string path_;
};

// The folder of the library (or program) that this very code was linked into: what belongs to it lies beside it.
std::string directory_of_this_library();

}  // namespace kiln
