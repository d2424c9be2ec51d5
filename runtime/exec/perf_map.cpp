#include "runtime/exec/perf_map.h"

#include <fcntl.h>

#include <cstdint>
#include <string>

#include "jit/base/env.h"
#include "jit/base/file_descriptor.h"
#include "jit/base/process.h"
#include "jit/base/str.h"

namespace kiln {
namespace {

std::string hex(uint64_t number) {
  char buffer[17];
  return std::string(buffer, std::to_chars(buffer, buffer + sizeof buffer, number, 16).ptr);
}

}  // namespace

Result<bool> perf_map_wanted() { return env_flag(Env::KILN_PERF_MAP); }

void write_perf_map(const ImageMemory &memory, std::span<const Image> images, std::string_view artifact) {
  std::string lines;
  for (size_t i = 0; i < images.size(); ++i) {
    const uint64_t size = images[i].code->size() - images[i].entry_offset;
    str_append(lines, str_cat(hex(reinterpret_cast<uintptr_t>(memory.entry(i))), " ", hex(size), " kiln kernel ", i,
                              " of ", artifact, "\n"));
  }
  const std::string path = str_cat("/tmp/perf-", getpid(), ".map");
  const WriteSignalsHeld held;
  const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.get() >= 0) (void)!::write(file.get(), lines.data(), lines.size());
}

}  // namespace kiln
