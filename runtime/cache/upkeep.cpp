// What keeps the cache in order: listing, checking, clearing and eviction. None of it is on the way of a lookup.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <filesystem>

#include "jit/base/file.h"
#include "runtime/cache/artifact_sections.h"
#include "runtime/cache/cache.h"
#include "runtime/cache/files.h"
#include "runtime/cache/ledger.h"
#include "runtime/cache/variants.h"

namespace kiln {
namespace {

// Of those that somebody looks up; empty: of what is nobody's.
std::string_view name_of_kind(StoredFile::Kind kind) {
  if (kind == StoredFile::Kind::artifact) return "artifact";
  if (kind == StoredFile::Kind::questions) return "questions";
  return kind == StoredFile::Kind::kernel ? "kernel" : "";
}

// True when the file is gone: removed now, or by another process.
bool remove_file(const StoredFile &file) {
  if (file.kind == StoredFile::Kind::empty_folder) return ::rmdir(file.path.c_str()) == 0 || errno == ENOENT;
  if (::unlink(file.path.c_str()) != 0 && errno != ENOENT) return false;
  // The folder of a key goes with its last file; this fails, as it should, while others are there.
  if (!name_of_kind(file.kind).empty()) ::rmdir(std::filesystem::path(file.path).parent_path().c_str());
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

Status check_record(const Cache::Entry &entry, ByteSpan bytes) {
  Digest key;
  if (entry.kind == "artifact") {
    KILN_ASSIGN(const Artifact artifact, read_artifact(bytes));
    key = artifact.graph_key;
  } else if (entry.kind == "questions") {
    KILN_ASSIGN(const RecordReader record, RecordReader::open(bytes));
    return read_question_set(bytes, record.key()).status();
  } else {
    KILN_ASSIGN(const std::vector<Image> images, read_kernel_images(bytes));
    for (const Image &image : images)
      if (image.kernel_key.hex() == entry.key) return {};
  }
  return key.hex() == entry.key ? Status() : error(Code::corrupt, "header at offset 24: the key is not the file's");
}

}  // namespace

Result<std::vector<Cache::Entry>> Cache::list() const {
  std::vector<Entry> entries;
  KILN_ASSIGN(const std::vector<StoredFile> files, stored_files(dir_));
  for (const StoredFile &f : files) {
    const std::string_view kind = name_of_kind(f.kind);
    if (kind.empty()) continue;
    entries.push_back({f.path, std::string(kind), f.key, f.size_bytes, f.modified_ns / 1'000'000'000});
  }
  std::ranges::sort(entries, {}, &Entry::path);
  return entries;
}

Result<std::vector<Cache::Problem>> Cache::verify() const {
  std::vector<Problem> problems;
  KILN_ASSIGN(const std::vector<Entry> entries, list());
  for (const Entry &entry : entries) {
    const RecordFile file = open_record(entry.path);
    if (file.state == RecordFile::State::none) continue;  // evicted since
    const Status status =
        file.state == RecordFile::State::read ? check_record(entry, file.bytes) : error(Code::corrupt, file.reason);
    if (!status.ok()) problems.push_back({entry.path, status.message()});
  }
  return problems;
}

Result<uint64_t> Cache::clear() {
  if (dir_.empty()) return uint64_t{0};
  KILN_ASSIGN(const std::vector<std::filesystem::path> anything, folder_entries(dir_, 1));
  if (anything.empty()) return uint64_t{0};
  if (!is_marked())  // it may be anybody's, with files of names like ours
    return error(Code::io, dir_, " is no cache of Kiln's: it has no CACHEDIR.TAG that says so; nothing is removed");
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

Status Cache::evict() {
  return note([&]() -> Status {
    KILN_ASSIGN(Ledger ledger, begin_writing());
    KILN_TRY(tidy(ledger, max_bytes_));
    return ledger.reserve(0);
  }());
}

// Reserves `bytes`, having evicted for them where they do not fit.
Status Cache::make_room(Ledger &ledger, uint64_t bytes) {
  if (bytes > max_bytes_)
    return error(Code::io, "a record of ", bytes, " bytes does not fit into a cache of ", max_bytes_);
  if (!ledger.is_current(max_bytes_) || ledger.total() > max_bytes_ - bytes) KILN_TRY(tidy(ledger, max_bytes_ - bytes));
  if (ledger.total() > max_bytes_ - bytes)
    return error(Code::io, "the cache holds ", ledger.total(), " bytes that cannot be removed, of ", max_bytes_);
  return ledger.reserve(bytes);
}

// Counts what is there and removes what dead writers left; beyond `most` bytes, the oldest too.
Status Cache::tidy(Ledger &ledger, uint64_t most) {
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
