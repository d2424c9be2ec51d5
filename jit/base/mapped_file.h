// A file's bytes, mapped read-only. The file must not shrink while it is mapped.
#pragma once
#include <string>

#include "jit/base/bytes.h"
#include "jit/base/status.h"

namespace kiln {

class MappedFile {
 public:
  MappedFile() = default;
  MappedFile(MappedFile &&other) noexcept;
  MappedFile &operator=(MappedFile &&other) noexcept;
  ~MappedFile();
  // code io: the path, and what failed. A folder or a device is refused.
  static Result<MappedFile> open(const std::string &path);
  ByteSpan bytes() const { return {static_cast<const uint8_t *>(data_), size_}; }

 private:
  void *data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace kiln
