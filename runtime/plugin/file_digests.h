// Digests of files, remembered by device, inode, size and times in nanoseconds, so that a file is read once.
// Threads: any.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "jit/base/hash.h"
#include "jit/base/status.h"

namespace kiln {

class FileDigests {
 public:
  // KILN_IO names the path and what failed.
  Result<Digest> of(const std::string &path);

 private:
  // device, inode, size, modified and changed (ns since the epoch)
  using Stamp = std::tuple<uint64_t, uint64_t, uint64_t, int64_t, int64_t>;
  std::mutex mutex_;
  std::map<Stamp, Digest> known_;
};

}  // namespace kiln
