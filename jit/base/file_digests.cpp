#include "jit/base/file_digests.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "jit/base/file.h"
#include "jit/base/hasher.h"

namespace kiln {
namespace {

constexpr size_t most_known = 4096;
// File systems tell times by steps: within one a file may change twice and keep its stamp. The longest are of 2 s.
constexpr int64_t settled_after_ns = 3'000'000'000;

int64_t ns_of(const timespec &time) { return time.tv_sec * 1'000'000'000LL + time.tv_nsec; }

FileStamp stamp_of_info(const struct stat &info) {
  return {info.st_dev, info.st_ino, static_cast<uint64_t>(info.st_size), ns_of(info.st_mtim), ns_of(info.st_ctim)};
}

Status failed(const std::string &path) {
  const int number = errno;
  return error(errno_code(number), "cannot examine '", path, "': ", errno_text(number));
}

bool is_gone(int number) { return number == ENOENT || number == ENOTDIR; }

Result<Digest> read_digest(const FileDescriptor &file, const std::string &path) {
  Hasher hasher;
  Bytes buffer(size_t{1} << 18);
  for (off_t at = 0;;) {
    const ssize_t got = ::pread(file.get(), buffer.data(), buffer.size(), at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return error(errno_code(errno), "cannot read '", path, "': ", errno_text(errno));
    if (got == 0) return hasher.finish();
    hasher.add({buffer.data(), static_cast<size_t>(got)});
    at += got;
  }
}

}  // namespace

std::optional<FileStamp> FileDigests::stamp_of(const std::string &path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 ? std::optional(stamp_of_info(info)) : std::nullopt;
}

Result<std::optional<FileDigests::Known>> FileDigests::of(const std::string &path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return is_gone(errno) ? Result(std::optional<Known>()) : failed(path);
  {
    const std::lock_guard lock(mutex_);
    const auto known = known_.find(stamp_of_info(info));
    if (known != known_.end()) return std::optional(Known{known->first, known->second, true});
  }
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  KILN_ASSIGN(const FileDescriptor file, open_file(path));
  if (::fstat(file.get(), &info) != 0) return failed(path);
  Known known{.stamp = stamp_of_info(info), .digest = {}};
  KILN_ASSIGN(known.digest, read_digest(file, path));
  struct stat after{};
  if (::fstat(file.get(), &after) != 0) return failed(path);
  const int64_t last_ns = std::max(known.stamp.modified_ns, known.stamp.changed_ns);
  known.is_settled = known.stamp == stamp_of_info(after) && last_ns < ns_of(now) - settled_after_ns;
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
