#include "runtime/cache/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "jit/base/file_descriptor.h"
#include "jit/base/process.h"

namespace kiln {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view temporary_prefix = ".tmp-";

Status io_error(std::string_view what, const std::string &path, int number) {
  return error(Code::io, "cannot ", what, " ", path, ": ", errno_text(number));
}

Status write_temporary(const std::string &path, ByteSpan bytes) {
  FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.get() < 0) return io_error("create", path, errno);
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return io_error("write", path, written < 0 ? errno : ENOSPC);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return file.close() ? Status() : io_error("write", path, errno);
}

// Unique among the processes and threads that write into one folder at a time.
std::string temporary_name() {
  static std::atomic<uint64_t> counter{0};
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return str_cat(temporary_prefix, getpid(), "-", counter.fetch_add(1), "-", now.tv_nsec);
}

std::optional<StoredFile> describe(const fs::path &path, StoredFile::Kind kind) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;  // gone since, or not ours
  StoredFile file;
  file.path = path.string();
  file.kind = kind;
  file.size_bytes = static_cast<uint64_t>(info.st_size);
  file.modified_ns = info.st_mtim.tv_sec * 1'000'000'000LL + info.st_mtim.tv_nsec;
  return file;
}

// The entries of a folder; none when it is not there.
Result<std::vector<fs::path>> entries(const fs::path &folder) {
  std::vector<fs::path> out;
  std::error_code failure;
  fs::directory_iterator at(folder, failure);
  if (failure == std::errc::no_such_file_or_directory) return out;
  for (; !failure && at != fs::directory_iterator(); at.increment(failure)) out.push_back(at->path());
  if (failure) return io_error("read folder", folder.string(), failure.value());
  return out;
}

// Adds the files of one folder that holds records: those with `suffix`, and what writers that died left behind.
Status add_records(const fs::path &folder, std::string_view suffix, StoredFile::Kind kind,
                   std::vector<StoredFile> &out) {
  KILN_ASSIGN(const std::vector<fs::path> paths, entries(folder));
  for (const fs::path &path : paths) {
    const std::string name = path.filename().string();
    const bool temporary = name.starts_with(temporary_prefix);
    if (!temporary && path.extension() != suffix) continue;
    std::optional<StoredFile> file = describe(path, temporary ? StoredFile::Kind::temporary : kind);
    if (!file) continue;
    if (file->kind == StoredFile::Kind::artifact) file->key = folder.filename().string();
    if (file->kind == StoredFile::Kind::kernel) file->key = path.stem().string();
    out.push_back(std::move(*file));
  }
  return {};
}

}  // namespace

Result<std::optional<MappedFile>> open_record(const std::string &path) {
  // Opened again where it was not there and now is: another process published it in between, which is no error.
  for (bool again = false;; again = true) {
    Result<MappedFile> file = MappedFile::open(path);
    if (file.ok()) return std::optional(std::move(file).value());
    if (::access(path.c_str(), F_OK) != 0 && errno == ENOENT) return std::optional<MappedFile>();
    if (again) return file.take_status();
  }
}

Status make_private_folders(const std::string &path) {
  if (::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return {};
  if (errno != ENOENT) return io_error("make folder", path, errno);
  const std::string parent = fs::path(path).parent_path().string();
  if (parent.empty() || parent == path) return io_error("make folder", path, ENOENT);
  KILN_TRY(make_private_folders(parent));
  if (::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return {};
  return io_error("make folder", path, errno);
}

Status link_new_file(const std::string &path, ByteSpan bytes) {
  const WriteSignalsHeld held;
  const std::string temporary = (fs::path(path).parent_path() / temporary_name()).string();
  Status status = write_temporary(temporary, bytes);
  if (status.ok() && ::link(temporary.c_str(), path.c_str()) != 0 && errno != EEXIST)
    status = io_error("publish", path, errno);
  ::unlink(temporary.c_str());
  return status;
}

Result<std::vector<StoredFile>> stored_files(const std::string &dir) {
  std::vector<StoredFile> out;
  KILN_ASSIGN(const std::vector<fs::path> artifact_folders, entries(fs::path(dir) / "a"));
  for (const fs::path &folder : artifact_folders) {
    if (fs::is_directory(folder)) KILN_TRY(add_records(folder, ".kiln", StoredFile::Kind::artifact, out));
  }
  KILN_ASSIGN(const std::vector<fs::path> kernel_folders, entries(fs::path(dir) / "k"));
  for (const fs::path &folder : kernel_folders) {
    if (fs::is_directory(folder)) KILN_TRY(add_records(folder, ".kimg", StoredFile::Kind::kernel, out));
  }
  KILN_TRY(add_records(fs::path(dir) / "quarantine", ".bad", StoredFile::Kind::quarantined, out));
  return out;
}

}  // namespace kiln
