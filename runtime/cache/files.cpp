#include "runtime/cache/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <new>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "jit/base/file.h"
#include "jit/base/new_file.h"
#include "jit/base/process.h"
#include "runtime/cache/trust.h"

namespace kiln {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view temporary_prefix = ".tmp-";

Status io_error(std::string_view what, const std::string &path, int number) {
  return error(errno_code(number), "cannot ", what, " ", path, ": ", errno_text(number));
}

FileIdentity identity_of(const struct stat &info) { return {info.st_dev, info.st_ino}; }

RecordFile failed_record(const Status &status) {
  return {.state = RecordFile::State::failed, .reason = status.message()};
}

RecordFile wrong_record(const struct stat &info, std::string_view why) {
  std::string reason = S_ISREG(info.st_mode)   ? str_cat("the record cannot be used: ", why)
                       : S_ISDIR(info.st_mode) ? "a folder is in the record's place"
                       : S_ISLNK(info.st_mode) ? "a link is in the record's place"
                                               : "what is in the record's place is no regular file";
  return {.state = RecordFile::State::wrong, .reason = std::move(reason), .identity = identity_of(info)};
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

Status add_temporaries(const fs::path &folder, std::vector<StoredFile> &out) {
  KILN_ASSIGN(const std::vector<fs::path> paths, folder_entries(folder));
  for (const fs::path &path : paths) {
    if (!path.filename().string().starts_with(temporary_prefix)) continue;
    if (std::optional<StoredFile> file = describe(path, StoredFile::Kind::temporary)) out.push_back(std::move(*file));
  }
  return {};
}

// Adds the files of one folder that holds records: those with `suffix`, and what writers that died left behind.
Status add_records(const fs::path &folder, std::string_view suffix, StoredFile::Kind kind,
                   std::vector<StoredFile> &out) {
  KILN_ASSIGN(const std::vector<fs::path> paths, folder_entries(folder));
  for (const fs::path &path : paths) {
    const std::string name = path.filename().string();
    const bool temporary = name.starts_with(temporary_prefix);
    if (!temporary && path.extension() != suffix) continue;
    std::optional<StoredFile> file = describe(path, temporary ? StoredFile::Kind::temporary : kind);
    if (!file) continue;
    if (file->kind == StoredFile::Kind::artifact) file->key = folder.filename().string();
    if (file->kind == StoredFile::Kind::kernel || file->kind == StoredFile::Kind::prepared)
      file->key = path.stem().string();
    out.push_back(std::move(*file));
  }
  return {};
}

Status add_questions(const fs::path &folder, std::vector<StoredFile> &out) {
  KILN_ASSIGN(const std::vector<fs::path> paths, folder_entries(folder));
  for (const fs::path &path : paths) {
    if (path.extension() != ".questions") continue;
    std::optional<StoredFile> file = describe(path, StoredFile::Kind::questions);
    if (!file) continue;
    file->key = folder.filename().string();
    out.push_back(std::move(*file));
  }
  return {};
}

// The first bytes of an open file, as many as fit into `out`; fewer where it was cut short since. Nullopt with errno
// set.
std::optional<ByteSpan> read_first(const FileDescriptor &file, std::span<uint8_t> out) {
  size_t at = 0;
  while (at < out.size()) {
    const ssize_t got = ::pread(file.get(), out.data() + at, out.size() - at, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    at += static_cast<size_t>(got);
  }
  return out.first(at);
}

}  // namespace

Result<std::vector<fs::path>> folder_entries(const fs::path &folder, size_t most) {
  std::vector<fs::path> out;
  const std::unique_ptr<DIR, int (*)(DIR *)> open(::opendir(folder.c_str()), ::closedir);
  if (!open && errno == ENOENT) return out;
  if (!open) return io_error("read folder", folder.string(), errno);
  while (out.size() < most) {
    errno = 0;
    const dirent *entry = ::readdir(open.get());
    if (!entry && errno != 0) return io_error("read folder", folder.string(), errno);
    if (!entry) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") out.push_back(folder / name);
  }
  return out;
}

RecordFile open_record(const std::string &path, std::optional<SectionKind> last) {
  // Not blocking: a FIFO would wait for a writer.
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  const int number = errno;
  struct stat info{};
  if (file.get() < 0) {
    if (number == ENOENT || ::lstat(path.c_str(), &info) != 0)
      return number == ENOENT || number == ENOTDIR ? RecordFile() : failed_record(io_error("open", path, number));
    const bool lasts = number == EACCES || number == EPERM || number == ELOOP || !S_ISREG(info.st_mode);
    return lasts ? wrong_record(info, errno_text(number)) : failed_record(io_error("open", path, number));
  }
  if (fstat(file.get(), &info) != 0) return failed_record(io_error("examine", path, errno));
  if (!S_ISREG(info.st_mode)) return wrong_record(info, "");
  if (std::string reason = reason_to_distrust(info); !reason.empty()) return wrong_record(info, reason);

  RecordFile record{.length = static_cast<uint64_t>(info.st_size), .identity = identity_of(info)};
  record.file = std::move(file);
  std::array<uint8_t, record_max_head> space;
  const auto head = read_first(record.file, std::span(space).first(std::min<uint64_t>(space.size(), record.length)));
  if (!head) return failed_record(io_error("read", path, errno));
  const Result<RecordReader> reader = RecordReader::open(*head, record.length);
  if (!reader.ok()) {
    record.state = RecordFile::State::damaged;
    record.reason = reader.status().message();
    return record;
  }
  const uint64_t size = last ? reader->end_of(*last) : record.length;
  record.memory.reset(new (std::nothrow) uint8_t[size]);
  if (!record.memory) return failed_record(error(Code::io, "no memory for the ", size, " bytes of ", path));
  const std::span<uint8_t> whole(record.memory.get(), size);
  if (size <= head->size()) std::ranges::copy(head->first(size), whole.begin());
  const auto bytes = size <= head->size() ? std::optional<ByteSpan>(whole) : read_first(record.file, whole);
  if (!bytes) return failed_record(io_error("read", path, errno));
  record.state = RecordFile::State::read;
  if (bytes->size() == size) record.bytes = *bytes;  // cut short since: no bytes are no record
  return record;
}

void touch(const FileDescriptor &file) { (void)::futimens(file.get(), nullptr); }
void touch(const std::string &path) { (void)::utimensat(AT_FDCWD, path.c_str(), nullptr, AT_SYMLINK_NOFOLLOW); }

Status set_aside(const std::string &path, const FileIdentity &identity, const std::string &to) {
  if (::rename(path.c_str(), to.c_str()) != 0)
    return errno == ENOENT ? Status() : io_error("move to quarantine", path, errno);  // gone: another reader was first
  struct stat moved{};
  if (::lstat(to.c_str(), &moved) != 0 || identity_of(moved) == identity) return {};
  // Somebody set it aside before, and published again: that goes back, unless there is a third by now.
  if (::renameat2(AT_FDCWD, to.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) != 0) ::unlink(to.c_str());
  return {};
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

Status link_new_file(const std::string &path, std::span<const ByteSpan> bytes) {
  const WriteSignalsHeld held;
  NewFile file(fs::path(path).parent_path().string(), std::string(temporary_prefix), 0600);
  if (!file.is_open()) return io_error("create", path, errno);
  for (const ByteSpan part : bytes)
    if (!file.write(part)) return io_error("write", path, errno);
  return file.link(path) ? Status() : io_error("publish", path, errno);
}

std::string_view name_of(StoredFile::Kind kind) {
  switch (kind) {
    case StoredFile::Kind::artifact:
      return "artifact";
    case StoredFile::Kind::questions:
      return "questions";
    case StoredFile::Kind::kernel:
      return "kernel";
    case StoredFile::Kind::prepared:
      return "prepared";
    case StoredFile::Kind::quarantined:
    case StoredFile::Kind::temporary:
    case StoredFile::Kind::empty_folder:
      break;
  }
  return "";
}

Result<std::vector<StoredFile>> stored_files(const std::string &dir) {
  std::vector<StoredFile> out;
  KILN_TRY(add_temporaries(dir, out));
  for (const auto &[name, suffix, kind] :
       {std::tuple("a", ".kiln", StoredFile::Kind::artifact), std::tuple("k", ".kimg", StoredFile::Kind::kernel),
        std::tuple("p", ".kprep", StoredFile::Kind::prepared)}) {
    KILN_ASSIGN(const std::vector<fs::path> folders, folder_entries(fs::path(dir) / name));
    for (const fs::path &folder : folders) {
      std::error_code gone;
      if (!fs::is_directory(fs::symlink_status(folder, gone))) continue;
      const size_t before = out.size();
      KILN_TRY(add_records(folder, suffix, kind, out));
      if (kind == StoredFile::Kind::artifact) KILN_TRY(add_questions(folder, out));
      const Result<std::vector<fs::path>> inside = folder_entries(folder);
      if (out.size() == before && inside.ok() && inside->empty())
        out.push_back({.path = folder.string(), .kind = StoredFile::Kind::empty_folder});
    }
  }
  KILN_TRY(add_records(fs::path(dir) / "quarantine", ".bad", StoredFile::Kind::quarantined, out));
  return out;
}

}  // namespace kiln
