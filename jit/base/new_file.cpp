#include "jit/base/new_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <utility>

#include "jit/base/str.h"

namespace kiln {
namespace {

// Names a file that has none, by the one that its descriptor has.
bool link_descriptor(int file, const std::string &path) {
  return ::linkat(AT_FDCWD, str_cat("/proc/self/fd/", file).c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0;
}

bool is_file(const std::string &path) {
  struct stat found = {};
  return ::lstat(path.c_str(), &found) == 0 && S_ISREG(found.st_mode);
}

}  // namespace

NewFile::NewFile(std::string folder, std::string prefix, mode_t mode)
    : folder_(folder.empty() ? "." : std::move(folder)), prefix_(std::move(prefix)) {
  if (!open_unnamed(mode)) (void)open_named(mode);
}

NewFile::~NewFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

bool NewFile::open_unnamed(mode_t mode) {
  if (::access("/proc/self/fd", X_OK) != 0) return false;
  file_ = FileDescriptor(::open(folder_.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, mode));
  return is_open();
}

bool NewFile::open_named(mode_t mode) {
  // A name of this process and moment; O_EXCL makes it ours. Not mkstemp, whose 0600 would ignore the user's umask.
  temporary_ =
      str_cat(folder_, "/", prefix_, getpid(), "-", std::chrono::steady_clock::now().time_since_epoch().count());
  file_ = FileDescriptor(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode));
  if (!is_open()) temporary_.clear();
  return is_open();
}

bool NewFile::write(ByteSpan bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written == 0) errno = ENOSPC;
    if (written <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return true;
}

bool NewFile::flush() { return ::fsync(file_.get()) == 0; }

bool NewFile::link(const std::string &path) {
  if (temporary_.empty()) return link_descriptor(file_.get(), path);
  return file_.close() && ::link(temporary_.c_str(), path.c_str()) == 0;
}

bool NewFile::replace(const std::string &path) {
  if (!temporary_.empty()) {
    if (!file_.close() || ::rename(temporary_.c_str(), path.c_str()) != 0) return false;
    temporary_.clear();
    return true;
  }
  if (link_descriptor(file_.get(), path)) return true;
  // Nothing replaces but a rename, which needs a name: one for each path, so that the next writer finds what another
  // left that was killed in between. All that has that name is finished, so whoever finds another's file there puts it
  // in its place for the other. Removed it must not be: a file that has lost its last name cannot get one again.
  const std::string name = path.substr(path.rfind('/') + 1).substr(0, 200),
                    between = str_cat(folder_, "/", prefix_, name);
  for (int attempt = 0; errno == EEXIST && attempt < 1000; ++attempt) {
    const bool is_ours = link_descriptor(file_.get(), between);
    if (!is_ours && errno != EEXIST) return false;
    if (::rename(between.c_str(), path.c_str()) == 0) {
      if (is_ours) return true;
      errno = EEXIST;  // it was another's; now ours
    } else if (errno != ENOENT) {
      const int number = errno;
      ::unlink(between.c_str());
      errno = number;
    } else if (is_ours && is_file(path)) {
      return true;  // another writer was so kind
    } else {
      errno = EEXIST;
    }
  }
  return false;
}

}  // namespace kiln
