#include "jit/base/dynamic_library.h"

#include <dlfcn.h>
#include <elf.h>

#include <cstring>

#include "jit/base/file.h"
#include "jit/base/float_environment.h"

namespace kiln {
namespace {

// The loader maps what a file's segments say, and the process dies where the file ends before them.
Status check_whole(const std::string &path) {
  if (path.find('/') == path.npos) return {};  // the loader's to find
  const Result<MappedFile> map = MappedFile::open(path);
  if (!map.ok()) return {};  // which it says better
  const ByteSpan file = map->bytes();
  const auto header = read_at<Elf64_Ehdr>(file, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64)
    return {};  // which it says better, too
  for (uint64_t i = 0; i < header->e_phnum; ++i) {
    // A sum that overflows lies outside the file either way.
    const auto segment = header->e_phoff > file.size()
                             ? std::nullopt
                             : read_at<Elf64_Phdr>(file, header->e_phoff + i * sizeof(Elf64_Phdr));
    if (!segment) return error(Code::io, "cannot open library '", path, "': cut short in its program headers");
    uint64_t end = 0;
    if (__builtin_add_overflow(segment->p_offset, segment->p_filesz, &end)) end = UINT64_MAX;
    if (segment->p_type == PT_LOAD && end > file.size())
      return error(Code::io, "cannot open library '", path, "': cut short: it has ", file.size(),
                   " bytes, and a segment ends at ", end);
  }
  return {};
}

std::string loader_error() {
  const char *text = dlerror();  // of this thread
  return text ? text : "unknown error";
}

}  // namespace

Result<DynamicLibrary> DynamicLibrary::open(const std::string &path) {
  KILN_TRY(check_whole(path));
  const HostFloats floats;  // a library that was built with -ffast-math sets another environment as it is loaded
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
