#include "jit/base/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <vector>

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

// Many parts go in one call: an artifact has an image a kernel, and a hit writes them all.
bool write_all(int fd, std::span<const ByteSpan> parts) {
  std::vector<iovec> rest;
  for (const ByteSpan &part : parts)
    if (!part.empty()) rest.push_back({const_cast<uint8_t *>(part.data()), part.size()});
  for (size_t first = 0; first < rest.size();) {
    const ssize_t written = writev(fd, &rest[first], static_cast<int>(std::min<size_t>(rest.size() - first, IOV_MAX)));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    size_t bytes = static_cast<size_t>(written);
    for (; first < rest.size() && bytes >= rest[first].iov_len; ++first) bytes -= rest[first].iov_len;
    if (bytes == 0) continue;
    rest[first].iov_base = static_cast<uint8_t *>(rest[first].iov_base) + bytes;
    rest[first].iov_len -= bytes;
  }
  return true;
}

bool fill_and_seal(int fd, std::span<const ByteSpan> parts) {
  return write_all(fd, parts) && fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
}

}  // namespace

FileDescriptor sealed_memory_file(const std::string &name, std::span<const ByteSpan> parts) {
  const WriteSignalsHeld held;  // the limit on the size of files holds for memory files, too
  // The kernel takes names of up to 249 bytes.
  FileDescriptor file(open_memory_file(name.substr(0, 200)));
  if (file.get() < 0 || fill_and_seal(file.get(), parts)) return file;
  const int number = errno;
  (void)file.close();
  errno = number;
  return file;
}

}  // namespace kiln
