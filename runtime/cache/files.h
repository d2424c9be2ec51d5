// What the cache does with files: read whole, publish whole, walk. Internal to this folder.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "jit/base/bytes.h"
#include "jit/base/file.h"
#include "jit/base/status.h"

namespace kiln {

// Nothing when there is no such file; code io for whatever else keeps it from being read. Records are never changed
// once they have their name, so that the bytes stay as they are.
Result<std::optional<MappedFile>> open_record(const std::string &path);

// Makes `path` and the folders above it that are missing, readable for their owner alone. code io.
Status make_private_folders(const std::string &path);

// Writes a finished file under a temporary name in the folder of `path`, then links it to `path`. Ok as well when
// `path` is there already: somebody else published the same. Nothing is left behind on failure. code io.
Status link_new_file(const std::string &path, ByteSpan bytes);

struct StoredFile {
  enum class Kind : uint8_t { artifact, kernel, quarantined, temporary };
  std::string path;
  Kind kind = Kind::artifact;
  std::string key;  // hex; of artifacts and kernels
  uint64_t size_bytes = 0;
  int64_t modified_ns = 0;  // since the epoch
};
// The cache's own files below `dir`; names that are not the cache's are left out. A missing folder holds nothing. code
// io.
Result<std::vector<StoredFile>> stored_files(const std::string &dir);

}  // namespace kiln
