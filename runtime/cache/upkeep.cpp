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

namespace kiln {
namespace {

// A writer takes milliseconds; a temporary file of this age is of one that died.
constexpr int64_t abandoned_after_ns = int64_t{3600} * 1'000'000'000;

// True when the file is gone: removed now, or by another process.
bool remove_file(const StoredFile &file) {
  if (::unlink(file.path.c_str()) != 0 && errno != ENOENT) return false;
  // The folder of a key goes with its last file; this fails, as it should, while others are there.
  if (file.kind != StoredFile::Kind::quarantined) ::rmdir(std::filesystem::path(file.path).parent_path().c_str());
  return true;
}

Status cannot_remove(const StoredFile &file) {
  return error(Code::io, "cannot remove ", file.path, ": ", errno_text(errno));
}

Status check_record(const Cache::Entry &entry, ByteSpan bytes) {
  Digest key;
  if (entry.kind == "artifact") {
    KILN_ASSIGN(const Artifact artifact, read_artifact(bytes));
    key = artifact.graph_key;
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
    if (f.kind != StoredFile::Kind::artifact && f.kind != StoredFile::Kind::kernel) continue;
    entries.push_back({f.path, f.kind == StoredFile::Kind::artifact ? "artifact" : "kernel", f.key, f.size_bytes,
                       f.modified_ns / 1'000'000'000});
  }
  std::ranges::sort(entries, {}, &Entry::path);
  return entries;
}

Result<std::vector<Cache::Problem>> Cache::verify() const {
  std::vector<Problem> problems;
  KILN_ASSIGN(const std::vector<Entry> entries, list());
  for (const Entry &entry : entries) {
    const Result<std::optional<MappedFile>> file = open_record(entry.path);
    if (file.ok() && !file->has_value()) continue;  // evicted since
    const Status status = file.ok() ? check_record(entry, (*file)->bytes()) : file.status();
    if (!status.ok()) problems.push_back({entry.path, status.message()});
  }
  return problems;
}

Result<uint64_t> Cache::clear() {
  KILN_ASSIGN(const std::vector<StoredFile> files, stored_files(dir_));
  uint64_t removed = 0;
  Status status;
  for (const StoredFile &file : files) {
    if (remove_file(file)) {
      ++removed;
    } else if (status.ok()) {
      status = note(cannot_remove(file));
    }
  }
  stored_bytes_ = -1;
  if (!status.ok()) return status;
  return removed;
}

Status Cache::evict() {
  Result<std::vector<StoredFile>> found = stored_files(dir_);
  if (!found.ok()) return note(found.take_status());
  std::vector<StoredFile> &files = *found;
  std::ranges::sort(files, {}, &StoredFile::modified_ns);
  uint64_t total = 0;
  for (const StoredFile &file : files) total += file.size_bytes;

  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  const int64_t abandoned_before = now.tv_sec * 1'000'000'000LL + now.tv_nsec - abandoned_after_ns;
  const uint64_t keep_bytes = total > max_bytes_ ? max_bytes_ / 10 * 9 : max_bytes_;
  Status status;
  for (const StoredFile &file : files) {
    // A young temporary file is another writer's, at work.
    const bool temporary = file.kind == StoredFile::Kind::temporary;
    if (temporary ? file.modified_ns > abandoned_before : total <= keep_bytes) continue;
    if (remove_file(file)) {
      total -= file.size_bytes;
    } else if (status.ok()) {
      status = note(cannot_remove(file));
    }
  }
  stored_bytes_ = static_cast<int64_t>(total);
  return status;
}

}  // namespace kiln
