// Tells whether a file is as it was, without reading it.
#pragma once
#include <compare>
#include <cstdint>
#include <optional>
#include <string>

#include "jit/base/file_descriptor.h"

namespace kiln {

struct FileStamp {
  uint64_t device = 0, inode = 0, size = 0;
  int64_t modified_ns = 0, changed_ns = 0;  // since the epoch
  auto operator<=>(const FileStamp &) const = default;

  // None: there is no such file, or it cannot be asked; errno says why.
  static std::optional<FileStamp> of(const std::string &path);
  static std::optional<FileStamp> of(const FileDescriptor &file);
  // Whether it was last changed so long before now that each later change gives it another stamp.
  bool is_settled() const;
};

}  // namespace kiln
