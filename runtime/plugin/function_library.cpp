#include "runtime/plugin/function_library.h"

#include <utility>

#include "jit/base/file.h"
#include "runtime/plugin/loaded_libraries.h"

namespace kiln {

Result<LibraryFunction> open_function(const std::string &path, const std::string &symbol) {
  KILN_ASSIGN(FileDescriptor file, open_file(path));
  KILN_ASSIGN(const Bytes bytes, read_file(file, path));  // once: digest and code are of the same bytes
  const Digest digest = digest_of(bytes);
  KILN_ASSIGN(const LoadedLibraries::Open open,
              LoadedLibraries::of_process().open(path, std::move(file), bytes, digest));
  KILN_ASSIGN(void (*const pointer)(), open.library.symbol<void (*)()>(symbol.c_str()));
  return LibraryFunction{pointer, identity_of(digest, open.links)};
}

}  // namespace kiln
