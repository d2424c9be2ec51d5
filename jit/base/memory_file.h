// Files without a folder: bytes in memory that have a descriptor, and that nobody can change.
#pragma once
#include <cstddef>
#include <span>
#include <string>

#include "jit/base/bytes.h"
#include "jit/base/file_descriptor.h"

namespace kiln {

struct FilePart {
  ByteSpan bytes;
  size_t offset = 0;
};

// A sealed memory file that may be executed: this process too cannot change it any more. It has `size` bytes, zero
// where no part lies. The system shows the first 200 characters of `name` (/proc/PID/maps). Negative, with errno, where
// the system forbids such files.
FileDescriptor sealed_memory_file(const std::string &name, std::span<const FilePart> parts, size_t size);

}  // namespace kiln
