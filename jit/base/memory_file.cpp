#include "jit/base/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "jit/base/process.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

namespace kiln {
namespace {

int open_memory_file(const std::string &name) {
  // Where the system may demand it (vm.memfd_noexec), executable files are asked for by name; older kernels refuse the
  // flag as unknown.
  int fd = memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
  if (fd < 0 && errno == EINVAL) fd = memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING);
  return fd;
}

bool write_all(int fd, ByteSpan bytes, size_t offset) {
  while (!bytes.empty()) {
    const ssize_t written = pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(written));
    offset += static_cast<size_t>(written);
  }
  return true;
}

bool fill_and_seal(int fd, std::span<const FilePart> parts, size_t size) {
  if (ftruncate(fd, static_cast<off_t>(size)) != 0) return false;
  for (const FilePart &part : parts)
    if (!write_all(fd, part.bytes, part.offset)) return false;
  return fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
}

}  // namespace

FileDescriptor sealed_memory_file(const std::string &name, std::span<const FilePart> parts, size_t size) {
  const WriteSignalsHeld held;  // the limit on the size of files holds for memory files, too
  // The kernel takes names of up to 249 bytes.
  FileDescriptor file(open_memory_file(name.substr(0, 200)));
  if (file.get() < 0 || fill_and_seal(file.get(), parts, size)) return file;
  const int number = errno;
  (void)file.close();
  errno = number;
  return file;
}

}  // namespace kiln
