#include "runtime/plugin/file_digests.h"

#include <sys/stat.h>

#include <cerrno>
#include <system_error>

#include "jit/base/file.h"

namespace kiln {

namespace {

int64_t nanoseconds(const timespec &time) { return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; }

}  // namespace

Result<Digest> FileDigests::of(const std::string &path) {
  struct stat info{};
  if (stat(path.c_str(), &info) != 0)
    return error(Code::io, path, ": cannot stat: ", std::generic_category().message(errno));
  const Stamp stamp{info.st_dev, info.st_ino, static_cast<uint64_t>(info.st_size), nanoseconds(info.st_mtim),
                    nanoseconds(info.st_ctim)};
  {
    std::lock_guard lock(mutex_);
    if (auto found = known_.find(stamp); found != known_.end()) return found->second;
  }
  KILN_ASSIGN(const MappedFile file, MappedFile::open(path));
  const Digest digest = digest_of(file.bytes());
  std::lock_guard lock(mutex_);
  known_.emplace(stamp, digest);
  return digest;
}

}  // namespace kiln
