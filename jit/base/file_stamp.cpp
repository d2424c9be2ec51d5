#include "jit/base/file_stamp.h"

#include <sys/stat.h>

#include <algorithm>
#include <ctime>

namespace kiln {
namespace {

// File systems tell times by steps: within one a file may change twice and keep its stamp. The longest are of 2 s.
constexpr int64_t settled_after_ns = 3'000'000'000;

int64_t ns_of(const timespec &time) { return time.tv_sec * 1'000'000'000LL + time.tv_nsec; }

FileStamp stamp_of(const struct stat &info) {
  return {info.st_dev, info.st_ino, static_cast<uint64_t>(info.st_size), ns_of(info.st_mtim), ns_of(info.st_ctim)};
}

}  // namespace

std::optional<FileStamp> FileStamp::of(const std::string &path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 ? std::optional(stamp_of(info)) : std::nullopt;
}

std::optional<FileStamp> FileStamp::of(const FileDescriptor &file) {
  struct stat info{};
  return ::fstat(file.get(), &info) == 0 ? std::optional(stamp_of(info)) : std::nullopt;
}

bool FileStamp::is_settled() const {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return std::max(modified_ns, changed_ns) < ns_of(now) - settled_after_ns;
}

}  // namespace kiln
