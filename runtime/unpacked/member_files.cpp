#include "runtime/unpacked/member_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "jit/base/file.h"

namespace kiln::unpacked {
namespace {

Status failed(std::string_view what, std::string_view path) {
  const int number = errno;
  return error(errno_code(number), "cannot ", what, " '", path, "': ", errno_text(number));
}

std::string without_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

bool flush_folder(const std::string &path) {
  const FileDescriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return folder.get() >= 0 && (::fsync(folder.get()) == 0 || errno == EINVAL);  // not every file system can
}

}  // namespace

NewFolder::NewFolder(std::string path) : path_(without_slashes(std::move(path))) {}

NewFolder::~NewFolder() {
  if (temporary_.empty()) return;
  for (auto name = made_.rbegin(); name != made_.rend(); ++name) {
    const std::string path = temporary_ + "/" + *name;
    (void)(path.ends_with('/') ? ::rmdir(path.c_str()) : ::unlink(path.c_str()));
  }
  (void)::rmdir(temporary_.c_str());
}

Status NewFolder::make() {
  struct stat there{};
  if (::lstat(path_.c_str(), &there) == 0 && !S_ISDIR(there.st_mode))
    return error(Code::io, "'", path_, "' is there already, and no folder");
  const size_t slash = path_.rfind('/');
  const std::string prefix = str_cat(slash == path_.npos ? "" : path_.substr(0, slash + 1), ".kiln-", ::getpid(), "-");
  for (int i = 0; i < 1000; ++i) {
    std::string name = str_cat(prefix, i);
    if (::mkdir(name.c_str(), 0777) == 0) {
      temporary_ = std::move(name);
      return {};
    }
    if (errno != EEXIST) break;
  }
  return failed("make a folder beside", path_);
}

Status NewFolder::make_folders(std::string_view path) {
  for (size_t slash = path.find('/'); slash != path.npos; slash = path.find('/', slash + 1)) {
    std::string folder(path.substr(0, slash + 1));
    if (std::ranges::find(made_, folder) != made_.end()) continue;
    const std::string whole = temporary_ + "/" + folder;
    if (::mkdir(whole.c_str(), 0777) != 0) return failed("make folder", whole);
    made_.push_back(std::move(folder));
  }
  return {};
}

Status NewFolder::write(std::string_view path, ByteSpan bytes) {
  KILN_TRY(make_folders(path));
  made_.emplace_back(path);
  return write_file(str_cat(temporary_, "/", path), bytes);
}

Status NewFolder::finish() {
  for (const std::string &name : made_)
    if (name.ends_with('/') && !flush_folder(temporary_ + "/" + name)) return failed("flush", name);
  if (!flush_folder(temporary_)) return failed("flush", temporary_);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    if (errno == ENOTEMPTY || errno == EEXIST)
      return error(Code::io, "folder '", path_, "' is there already, and not empty; give a new name");
    return failed("rename a folder to", path_);
  }
  temporary_.clear();
  return {};
}

Result<OldFolder> OldFolder::open(const std::string &path) {
  FileDescriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0) return failed("open folder", path);
  return OldFolder(std::move(folder));
}

Result<Bytes> OldFolder::read(const std::string &path, uint64_t most) const {
  const auto refuse = [&] {
    if (errno == ENOENT) return error(Code::io, "member '", path, "' is missing");
    if (errno == ELOOP || errno == ENOTDIR)
      return error(Code::corrupt, "member '", path, "' is no file of the folder's");
    return failed("open member", path);
  };
  FileDescriptor inner(-1);
  size_t begin = 0;
  for (size_t slash = path.find('/'); slash != path.npos; slash = path.find('/', begin)) {
    const std::string name = path.substr(begin, slash - begin);
    FileDescriptor next(::openat(inner.get() < 0 ? folder_.get() : inner.get(), name.c_str(),
                                 O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (next.get() < 0) return refuse();
    inner = std::move(next);
    begin = slash + 1;
  }
  // Not blocking: opening a FIFO would wait for a writer.
  const FileDescriptor file(::openat(inner.get() < 0 ? folder_.get() : inner.get(), path.c_str() + begin,
                                     O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return refuse();
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) return failed("examine member", path);
  if (!S_ISREG(info.st_mode)) return error(Code::corrupt, "member '", path, "' is no file of the folder's");
  if (static_cast<uint64_t>(info.st_size) > most)
    return error(Code::corrupt, "member '", path, "' has ", info.st_size, " bytes, expected at most ", most);
  return read_file(file, path);
}

}  // namespace kiln::unpacked
