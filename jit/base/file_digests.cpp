#include "jit/base/file_digests.h"

#include <unistd.h>

#include <cerrno>
#include <tuple>
#include <utility>

#include "jit/base/file.h"
#include "jit/base/hasher.h"

namespace kiln {
namespace {

constexpr size_t most_known = 4096;
Status unreadable(const std::string &path) {
  const int number = errno;
  return error(errno_code(number), "cannot examine '", path, "': ", errno_text(number));
}

bool is_gone(int number) { return number == ENOENT || number == ENOTDIR; }

// And how many bytes there were.
Result<std::pair<Digest, uint64_t>> read_digest(const FileDescriptor &file, const std::string &path) {
  Hasher hasher;
  Bytes buffer(size_t{1} << 18);
  for (off_t at = 0;;) {
    const ssize_t got = ::pread(file.get(), buffer.data(), buffer.size(), at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return error(errno_code(errno), "cannot read '", path, "': ", errno_text(errno));
    if (got == 0) return std::pair(hasher.finish(), static_cast<uint64_t>(at));
    hasher.add({buffer.data(), static_cast<size_t>(got)});
    at += got;
  }
}

}  // namespace

Result<std::optional<FileDigests::Known>> FileDigests::of(const std::string &path) {
  const std::optional<FileStamp> there = FileStamp::of(path);
  if (!there) return is_gone(errno) ? Result(std::optional<Known>()) : unreadable(path);
  {
    const std::lock_guard lock(mutex_);
    const auto known = known_.find(*there);
    if (known != known_.end()) return std::optional(Known{known->first, known->second, true});
  }
  KILN_ASSIGN(const FileDescriptor file, open_file(path));
  const std::optional<FileStamp> before = FileStamp::of(file);
  if (!before) return unreadable(path);
  const bool was_settled = before->is_settled();
  Known known{.stamp = *before, .digest = {}};
  uint64_t size = 0;
  KILN_ASSIGN(std::tie(known.digest, size), read_digest(file, path));
  const std::optional<FileStamp> after = FileStamp::of(file);
  if (!after) return unreadable(path);
  // What the system makes up when it is read, as below /proc, has stamps that tell nothing, and another size.
  known.is_settled = was_settled && *after == *before && size == after->size;
  const std::lock_guard lock(mutex_);
  ++files_read_;
  if (known.is_settled) {
    if (known_.size() >= most_known) known_.clear();
    known_.emplace(known.stamp, known.digest);
  }
  return std::optional(known);
}

void FileDigests::add(const FileStamp &stamp, const Digest &digest) {
  const std::lock_guard lock(mutex_);
  if (known_.size() < most_known) known_.emplace(stamp, digest);
}

uint64_t FileDigests::files_read() const {
  const std::lock_guard lock(mutex_);
  return files_read_;
}

}  // namespace kiln
