// Digests of files, each read once for as long as it stays as it is. Threads: any.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "jit/base/file_stamp.h"
#include "jit/base/hash.h"
#include "jit/base/status.h"

namespace kiln {

class FileDigests {
 public:
  struct Known {
    FileStamp stamp;
    Digest digest;
    bool is_settled = false;  // last changed so long ago that each later change gets another stamp
  };
  // None: there is no such file. code io: it cannot be read, or is no regular file.
  Result<std::optional<Known>> of(const std::string &path);
  // As somebody found before who is trusted, of a file that was settled.
  void add(const FileStamp &stamp, const Digest &digest);
  uint64_t files_read() const;

 private:
  mutable std::mutex mutex_;
  std::map<FileStamp, Digest> known_;
  uint64_t files_read_ = 0;
};

}  // namespace kiln
