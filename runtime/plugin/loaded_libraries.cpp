#include "runtime/plugin/loaded_libraries.h"

#include <algorithm>
#include <optional>

#include "jit/base/file.h"
#include "jit/base/mapped_library.h"

namespace kiln {

namespace {

// Whether the library that the loader has just mapped from `path` is `bytes`, and stays so. Its pages are compared;
// what the loader has written since, addresses in the data, is not there to be compared: for that the file must still
// be what it was.
bool is_made_of(const DynamicLibrary &library, const std::string &path, const FileDescriptor &file, ByteSpan bytes) {
  if (!own_pages(library, bytes) || !is_file_at(file, path)) return false;
  const Result<Bytes> now = read_file(file, path);
  return now.ok() && std::ranges::equal(*now, bytes);
}

}  // namespace

LoadedLibraries &LoadedLibraries::of_process() {
  static LoadedLibraries libraries;
  return libraries;
}

Result<LoadedLibraries::Open> LoadedLibraries::open(const std::string &path, FileDescriptor file, ByteSpan bytes,
                                                    const Digest &digest) {
  const std::lock_guard lock(mutex_);
  if (const Loaded *same = known(path, digest)) return same->opened;
  KILN_ASSIGN(DynamicLibrary library, load(path, file, bytes));
  std::vector<LinkedLibrary> links = linked_with(library);
  return loaded_.emplace_back(Loaded{{std::move(library), std::move(links)}, digest, std::move(file)}).opened;
}

const LoadedLibraries::Loaded *LoadedLibraries::known(const std::string &path, const Digest &digest) const {
  const std::optional<DynamicLibrary> by_loader = DynamicLibrary::find(path);  // also under another name of its inode
  for (const Loaded &loaded : loaded_) {
    const DynamicLibrary &opened = loaded.opened.library;
    const bool same_place = opened.path() == path || (by_loader && by_loader->handle() == opened.handle());
    if (same_place && loaded.digest == digest) return &loaded;
  }
  return nullptr;
}

Result<DynamicLibrary> LoadedLibraries::load(const std::string &path, const FileDescriptor &file, ByteSpan bytes) {
  // A library that is there already was loaded from another state of the file, or by somebody who did not tell.
  if (!DynamicLibrary::find(path)) {
    KILN_ASSIGN(DynamicLibrary library, DynamicLibrary::open(path));
    if (is_made_of(library, path, file, bytes)) return library;
  }
  return DynamicLibrary::open_copy(bytes, path);
}

}  // namespace kiln
