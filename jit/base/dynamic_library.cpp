#include "jit/base/dynamic_library.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>

#include "jit/base/file.h"
#include "jit/base/float_environment.h"
#include "jit/base/memory_file.h"

namespace kiln {
namespace {

// The loader maps what a file's segments say, and the process dies where the file ends before them.
Status check_whole(ByteSpan file, const std::string &path) {
  const auto header = read_at<Elf64_Ehdr>(file, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64)
    return {};  // which it says better
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

Status check_whole(const std::string &path) {
  if (path.find('/') == path.npos) return {};  // the loader's to find
  const Result<MappedFile> map = MappedFile::open(path);
  return map.ok() ? check_whole(map->bytes(), path) : Status();  // which it says better, too
}

// The loader's own calls set no errno, and "failed to map segment" may be said of a file or of the memory. Asks for as
// much as the library's file and what it depends on may take.
bool is_memory_short(const std::string &path) {
  struct stat info{};
  if (stat(path.c_str(), &info) != 0 || info.st_size == 0) return false;
  const size_t bytes = 2 * static_cast<size_t>(info.st_size);
  void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return true;
  munmap(memory, bytes);
  return false;
}

// `number`: the errno that the loader left: nothing that succeeds sets it back. Its text is for people.
Status cannot_open(const std::string &path, std::string_view why, int number) {
  const Code code = is_memory_short(path) ? Code::out_of_memory : errno_code(number);
  return error(code, "cannot open library '", path, "': ", why);
}

std::string loader_error() {
  const char *text = dlerror();  // of this thread
  return text ? text : "unknown error";
}

void *load(const std::string &name) {
#if defined(__SANITIZE_THREAD__)
  // The loader runs constructors under a lock of its own, which the sanitizer does not see: it would take what they did
  // on one thread for a race with whoever opened the library on another. One that it sees can go when it sees that.
  static std::recursive_mutex loading;
  const std::lock_guard seen(loading);
#endif
  const HostFloats floats;  // a library that was built with -ffast-math sets another environment as it is loaded
  errno = 0;
  return dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
}

// The name under which the loader finds `file`. A descriptor's number comes again once it is closed, and with it the
// name, which the loader has never forgotten: such a number is passed over.
std::string fresh_name(FileDescriptor &file) {
  for (;;) {
    std::string name = str_cat("/proc/self/fd/", file.get());
    if (file.get() < 0 || !DynamicLibrary::find(name)) return name;
    FileDescriptor next(::fcntl(file.get(), F_DUPFD_CLOEXEC, file.get() + 1));
    file = std::move(next);
  }
}

}  // namespace

Result<DynamicLibrary> DynamicLibrary::open(const std::string &path) {
  KILN_TRY(check_whole(path));
  void *handle = load(path);
  const int number = errno;
  if (!handle) return cannot_open(path, loader_error(), number);
  return DynamicLibrary(handle, path);
}

Result<DynamicLibrary> DynamicLibrary::open_copy(ByteSpan file, const std::string &path) {
  KILN_TRY(check_whole(file, path));
  FileDescriptor copy = sealed_memory_file(path.substr(path.rfind('/') + 1), {&file, 1});
  const std::string name = fresh_name(copy);
  if (copy.get() < 0) return cannot_open(path, str_cat("no memory file can be made: ", errno_text(errno)), errno);
  void *handle = load(name);
  const int number = errno;
  if (!handle) return cannot_open(path, loader_error(), number);
  (void)copy.release();  // as long as the library is there, so is its name
  return DynamicLibrary(handle, path);
}

std::optional<DynamicLibrary> DynamicLibrary::find(const std::string &path) {
  void *handle = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (!handle) return std::nullopt;
  dlclose(handle);  // gives back the count that dlopen took
  return DynamicLibrary(handle, path);
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
