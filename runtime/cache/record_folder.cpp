#include "runtime/cache/record_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <filesystem>

#include "jit/base/file.h"
#include "runtime/cache/files.h"
#include "runtime/cache/ledger.h"
#include "runtime/cache/trust.h"
#include "runtime/cache/variants.h"

namespace kiln {
namespace {

constexpr std::string_view cachedir_tag =
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# This folder holds what Kiln compiled; it can be removed at any time.\n"
    "# See https://bford.info/cachedir/\n";

// True when the file is gone: removed now, or by another process.
bool remove_file(const StoredFile &file) {
  if (file.kind == StoredFile::Kind::empty_folder) return ::rmdir(file.path.c_str()) == 0 || errno == ENOENT;
  if (::unlink(file.path.c_str()) != 0 && errno != ENOENT) return false;
  // The folder of a key goes with its last file; this fails, as it should, while others are there.
  if (!name_of(file.kind).empty()) ::rmdir(std::filesystem::path(file.path).parent_path().c_str());
  return true;
}

// What a writer leaves that is killed: none is at work while the ledger is locked.
bool is_left_over(const StoredFile &file) {
  return file.kind == StoredFile::Kind::temporary || file.kind == StoredFile::Kind::empty_folder;
}

int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

Status cannot_remove(const StoredFile &file) {
  return error(Code::io, "cannot remove ", file.path, ": ", errno_text(errno));
}

}  // namespace

RecordFolder::RecordFolder(std::string root, const std::string &part, uint64_t max_bytes)
    : root_(std::move(root)),
      dir_(root_.empty() || part.empty() ? root_ : str_cat(root_, "/", part)),
      max_bytes_(max_bytes) {}

Status RecordFolder::note(Status status) {
  if (status.ok()) return status;
  ++io_errors_;
  const std::lock_guard lock(error_mutex_);
  last_io_error_ = status.message();
  return status;
}

std::string RecordFolder::last_io_error() const {
  const std::lock_guard lock(error_mutex_);
  return last_io_error_;
}

bool RecordFolder::is_marked() const {
  struct stat there{};
  const std::string path = root_ + "/CACHEDIR.TAG";
  if (::lstat(path.c_str(), &there) != 0 || there.st_size != static_cast<off_t>(cachedir_tag.size())) return false;
  const Result<Bytes> tag = read_file(path);
  return tag.ok() && std::ranges::equal(*tag, cachedir_tag);
}

std::string RecordFolder::refusal() const {
  const std::string reason = dir_.empty() ? "" : reason_to_distrust(dir_);
  return reason.empty() ? "" : str_cat("cache folder ", dir_, " is not used: ", reason);
}

// What writing needs: a folder of our own, and our turn.
Result<Ledger> RecordFolder::begin_writing() {
  if (dir_.empty()) return error(Code::io, "no cache folder: set KILN_CACHE, XDG_CACHE_HOME or HOME, or name one");
  if (const std::string reason = refusal(); !reason.empty()) return error(Code::io, reason);
  KILN_TRY(make_private_folders(dir_));
  // Whoever holds the lock that long is stopped: it is not waited for again, or each save would take as long.
  Result<Ledger> ledger = Ledger::lock(dir_, std::chrono::milliseconds(is_locked_out_ ? 0 : 10'000));
  is_locked_out_ = ledger.status().code() == Code::busy;
  if (is_locked_out_) return error(Code::io, ledger.status().message());
  KILN_TRY(ledger.status());
  const std::string tag = root_ + "/CACHEDIR.TAG";
  if (::access(tag.c_str(), F_OK) == 0) return ledger;
  const ByteSpan text(reinterpret_cast<const uint8_t *>(cachedir_tag.data()), cachedir_tag.size());
  Status status = link_new_file(tag, {&text, 1});
  const bool is_there = status.ok() || ::access(tag.c_str(), F_OK) == 0;  // by who writes another part of the folder
  return is_there ? std::move(ledger) : Result<Ledger>(std::move(status));
}

// Makes room for a record of `size` bytes and its folder; false: the record is there already. What else is in the place
// of either is put aside.
Result<bool> RecordFolder::prepare_place(Ledger &ledger, const std::string &path, uint64_t size) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  for (const std::string &place : {folder, path}) {
    struct stat there{};
    if (::lstat(place.c_str(), &there) != 0 || (place == folder && S_ISDIR(there.st_mode))) continue;
    if (place == path && S_ISREG(there.st_mode)) return false;
    RecordFile wrong;
    wrong.identity = {there.st_dev, there.st_ino};
    quarantine(place, wrong);
  }
  KILN_TRY(make_room(ledger, size));
  KILN_TRY(make_private_folders(folder));
  return true;
}

Status RecordFolder::publish_name(const std::string &path, const std::string &same_as, uint64_t size) {
  return note([&]() -> Status {
    KILN_ASSIGN(Ledger ledger, begin_writing());
    KILN_ASSIGN(const bool is_free, prepare_place(ledger, path, size));
    // Gone: it was evicted, and its other names are worth no more than it was.
    if (!is_free || ::link(same_as.c_str(), path.c_str()) == 0 || errno == ENOENT) return {};
    return error(Code::io, "cannot link ", same_as, " as ", path, ": ", errno_text(errno));
  }());
}

Status RecordFolder::publish(const std::string &path, std::span<const ByteSpan> bytes) {
  return note([&]() -> Status {
    uint64_t size = 0;
    for (const ByteSpan part : bytes) size += part.size();
    KILN_ASSIGN(Ledger ledger, begin_writing());
    KILN_ASSIGN(const bool is_free, prepare_place(ledger, path, size));
    if (!is_free) return {};
    make_room_beside(path);
    KILN_TRY(link_new_file(path, bytes));
    ++saves_;
    return {};
  }());
}

void RecordFolder::quarantine(const std::string &path, const RecordFile &file) {
  const std::string folder = dir_ + "/quarantine";
  if (!note(make_private_folders(folder)).ok()) return;
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  const std::filesystem::path from(path);
  const std::string to = str_cat(folder, "/", from.parent_path().filename().string().substr(0, 16), "-",
                                 from.stem().string().substr(0, 16), "-", now.tv_sec, ".", now.tv_nsec, ".bad");
  (void)note(set_aside(path, file.identity, to));
}

Result<uint64_t> RecordFolder::clear() {
  if (dir_.empty()) return uint64_t{0};
  KILN_ASSIGN(const std::vector<std::filesystem::path> anything, folder_entries(dir_, 1));
  if (anything.empty()) return uint64_t{0};
  if (!is_marked())  // it may be anybody's, with files of names like ours
    return error(Code::io, root_, " is no cache of Kiln's: it has no CACHEDIR.TAG that says so; nothing is removed");
  Result<Ledger> ledger = begin_writing();
  if (!ledger.ok()) return note(ledger.take_status());
  KILN_ASSIGN(const std::vector<StoredFile> files, stored_files(dir_));
  uint64_t removed = 0, left_bytes = 0;
  Status status;
  for (const StoredFile &file : files) {
    if (remove_file(file)) {
      removed += file.kind != StoredFile::Kind::empty_folder;
      continue;
    }
    left_bytes += file.size_bytes;
    if (status.ok()) status = note(cannot_remove(file));
  }
  ledger->count(left_bytes);
  if (status.ok()) status = note(ledger->reserve(0));
  if (!status.ok()) return status;
  return removed;
}

Status RecordFolder::evict() {
  return note([&]() -> Status {
    KILN_ASSIGN(Ledger ledger, begin_writing());
    KILN_TRY(tidy(ledger, max_bytes_));
    return ledger.reserve(0);
  }());
}

// Reserves `bytes`, having evicted for them where they do not fit.
Status RecordFolder::make_room(Ledger &ledger, uint64_t bytes) {
  if (bytes > max_bytes_)
    return error(Code::io, "a record of ", bytes, " bytes does not fit into a cache of ", max_bytes_);
  if (!ledger.is_current(max_bytes_) || ledger.total() > max_bytes_ - bytes) KILN_TRY(tidy(ledger, max_bytes_ - bytes));
  if (ledger.total() > max_bytes_ - bytes)
    return error(Code::io, "the cache holds ", ledger.total(), " bytes that cannot be removed, of ", max_bytes_);
  return ledger.reserve(bytes);
}

// Counts what is there and removes what dead writers left; beyond `most` bytes, the oldest too.
Status RecordFolder::tidy(Ledger &ledger, uint64_t most) {
  KILN_ASSIGN(std::vector<StoredFile> files, stored_files(dir_));
  // A time to come is from a clock that has been put back since: as old as any, or what is new would go first for
  // years.
  const int64_t now = now_ns();
  // What is larger than the limit goes first, too, or all others would go for it, and in vain.
  std::ranges::sort(files, {}, [&](const StoredFile &f) {
    return f.modified_ns > now || f.size_bytes > max_bytes_ ? 0 : f.modified_ns;
  });
  uint64_t total = 0;
  for (const StoredFile &file : files) total += file.size_bytes;
  const uint64_t keep = total > most ? std::min(most, max_bytes_ / 10 * 9) : most;
  for (const StoredFile &file : files) {
    if (!is_left_over(file) && total <= keep) continue;
    if (remove_file(file)) {
      total -= file.size_bytes;
    } else {
      (void)note(cannot_remove(file));
    }
  }
  ledger.count(total);
  return {};
}

}  // namespace kiln
