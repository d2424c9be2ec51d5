// Files without a folder: bytes in memory that have a descriptor, and that nobody can change.
#pragma once
#include <span>
#include <string>

#include "jit/base/bytes.h"
#include "jit/base/file_descriptor.h"

namespace kiln {

// A sealed memory file that may be executed: this process too cannot change it any more. Its bytes are those of
// `parts`, one after the other. The system shows the first 200 characters of `name` (/proc/PID/maps). Negative, with
// errno, where the system forbids such files.
FileDescriptor sealed_memory_file(const std::string &name, std::span<const ByteSpan> parts);

}  // namespace kiln
