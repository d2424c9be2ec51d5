// The plugins' libraries of this process. What runs is what was digested: the loader takes a path for the library that
// it once loaded from there, and maps whatever the file holds when it looks, so what it did is compared with the bytes
// that were digested, and where it differs, a copy of these bytes in memory is loaded instead. Threads: any.
#pragma once
#include <mutex>
#include <string>
#include <vector>

#include "jit/base/dynamic_library.h"
#include "jit/base/file_descriptor.h"
#include "jit/base/hash.h"
#include "jit/base/linked_libraries.h"

namespace kiln {

class LoadedLibraries {
 public:
  // The one of this process, as the loader's own list is: contexts share libraries.
  static LoadedLibraries &of_process();

  struct Open {
    DynamicLibrary library;
    std::vector<LinkedLibrary> links;  // as they were when it was loaded: they stay mapped, too
  };
  // A library whose code is `bytes`, of digest `digest`, which were read from `file`, open at `path` (absolute):
  // whatever has become of either since. The same library whenever a path has the same bytes; one with code and data of
  // its own when it has others. code io.
  Result<Open> open(const std::string &path, FileDescriptor file, ByteSpan bytes, const Digest &digest);

 private:
  struct Loaded {
    Open opened;
    Digest digest;
    FileDescriptor file;  // the loader knows a library by its file's inode, which must not come again
  };
  const Loaded *known(const std::string &path, const Digest &digest) const;
  static Result<DynamicLibrary> load(const std::string &path, const FileDescriptor &file, ByteSpan bytes);

  // Recursive: code that a library runs when it is loaded may load plugins. As it may make contexts, too, a fork does
  // not take the lock (jit/base/process.h).
  std::recursive_mutex mutex_;
  std::vector<Loaded> loaded_;
};

}  // namespace kiln
