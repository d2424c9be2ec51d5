#include "jit/base/dynamic_library.h"

#include <dlfcn.h>

namespace kiln {
namespace {

std::string loader_error() {
  const char *text = dlerror();  // of this thread
  return text ? text : "unknown error";
}

}  // namespace

Result<DynamicLibrary> DynamicLibrary::open(const std::string &path) {
  void *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) return error(Code::io, "cannot open library '", path, "': ", loader_error());
  return DynamicLibrary(handle, path);
}

bool DynamicLibrary::is_in_memory(const std::string &path) {
  void *handle = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (handle) dlclose(handle);  // gives back the count that dlopen took
  return handle != nullptr;
}

Result<void *> DynamicLibrary::address_of(const char *name) const {
  dlerror();  // clears: a symbol may be null without an error, which is no function all the same
  if (void *address = dlsym(handle_, name)) return address;
  return error(Code::unknown_name, "library '", path_, "' has no symbol '", name, "': ", loader_error());
}

std::string directory_of_this_library() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void *>(&directory_of_this_library), &info) == 0 || !info.dli_fname) return ".";
  std::string path = info.dli_fname;
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

}  // namespace kiln
