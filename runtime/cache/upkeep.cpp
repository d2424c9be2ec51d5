// What keeps the cache in order: listing, checking and clearing. None of it is on the way of a lookup.
#include <algorithm>
#include <iterator>

#include "runtime/cache/artifact_sections.h"
#include "runtime/cache/cache.h"
#include "runtime/cache/files.h"
#include "runtime/cache/variants.h"

namespace kiln {
namespace {

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
  KILN_ASSIGN(std::vector<StoredFile> files, stored_files(dir()));
  KILN_ASSIGN(std::vector<StoredFile> prepared, stored_files(prepared_.dir()));
  std::ranges::move(prepared, std::back_inserter(files));
  for (const StoredFile &f : files) {
    const std::string_view kind = name_of(f.kind);
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
    if (entry.kind == name_of(StoredFile::Kind::prepared)) {
      if (const Status status = PreparedRecords::check(entry.path, entry.key); !status.ok())
        problems.push_back({entry.path, status.message()});
      continue;
    }
    const RecordFile file = open_record(entry.path);
    if (file.state == RecordFile::State::none) continue;  // evicted since
    const Status status =
        file.state == RecordFile::State::read ? check_record(entry, file.bytes) : error(Code::corrupt, file.reason);
    if (!status.ok()) problems.push_back({entry.path, status.message()});
  }
  return problems;
}

Result<uint64_t> Cache::clear() {
  KILN_ASSIGN(const uint64_t prepared, prepared_.clear());
  KILN_ASSIGN(const uint64_t removed, folder_.clear());
  return prepared + removed;
}

}  // namespace kiln
