#include "runtime/cache/prepared.h"

#include <sys/mman.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "jit/base/file.h"
#include "runtime/cache/files.h"
#include "runtime/cache/record.h"

namespace kiln {
namespace {

constexpr uint64_t block_bytes = 1 << 20, page_bytes = 4096;
constexpr uint64_t head_bytes = 64 + 2 * 32;  // of a record with two sections, before the first one

// Of the folder, or of where it is to be made. Some file systems have no size to tell.
uint64_t tenth_of_disk(const std::string &dir) {
  constexpr uint64_t of_no_size = uint64_t{1} << 30;
  struct statvfs info{};
  std::filesystem::path at(dir);
  while (::statvfs(at.empty() ? "." : at.c_str(), &info) != 0) {
    if (at == at.parent_path()) return of_no_size;
    at = at.parent_path();
  }
  return info.f_blocks ? uint64_t{info.f_blocks} * info.f_frsize / 10 : of_no_size;
}

std::vector<uint64_t> block_sums(ByteSpan bytes) {
  std::vector<uint64_t> sums;
  for (uint64_t at = 0; at < bytes.size(); at += block_bytes)
    sums.push_back(checksum_of(bytes.subspan(at, std::min(block_bytes, bytes.size() - at))));
  return sums;
}

Status damaged(std::string_view what) { return error(Code::corrupt, "the record is damaged: ", what); }

}  // namespace

PreparedRecords::PreparedRecords(const std::string &cache_dir, uint64_t max_bytes)
    : folder_(cache_dir, "prepared", max_bytes || cache_dir.empty() ? max_bytes : tenth_of_disk(cache_dir)) {}

PreparedRecords::Mapped::~Mapped() {
  if (file_.data()) ::munmap(const_cast<uint8_t *>(file_.data()), file_.size());
}

Status PreparedRecords::Mapped::verify(const std::atomic<bool> &stop) const {
  for (uint64_t block = 0; block < blocks_.size(); ++block) {
    if (stop) return error(Code::cancelled, "the context is closed");
    const uint64_t at = block * block_bytes;
    if (checksum_of(content_.subspan(at, std::min(block_bytes, content_.size() - at))) != blocks_[block])
      return damaged(str_cat("block ", block, " has a wrong checksum"));
  }
  is_verified_ = true;
  return {};
}

std::string PreparedRecords::path_of(const Digest &key) const {
  const std::string hex = key.hex();
  return str_cat(dir(), "/p/", hex.substr(0, 2), "/", hex, ".kprep");
}

namespace {

// What the first sections of a record tell of the last one.
struct Head {
  uint64_t begin = 0, size = 0;
  std::vector<uint64_t> sums;  // of its blocks
};
Result<Head> read_head(const RecordFile &file, const Digest &key) {
  if (file.state != RecordFile::State::read) return damaged(file.reason);
  Result<RecordReader> reader = RecordReader::open(file.bytes, file.length);
  if (!reader.ok()) return damaged(reader.status().message());
  if (reader->key() != key) return damaged("header at offset 24: the key is not the file's");
  const Result<ByteSpan> blocks = reader->section(SectionKind::blocks);
  if (!blocks.ok()) return damaged(blocks.status().message());
  Head head{.size = reader->size_of(SectionKind::prepared), .sums = {}};
  head.begin = reader->end_of(SectionKind::prepared) - head.size;
  const uint64_t count = (head.size + block_bytes - 1) / block_bytes;
  if (head.size == 0 || head.begin % page_bytes != 0 || blocks->size() / sizeof(uint64_t) < count)
    return damaged("it has no section of prepared parameters, or not their checksums");
  head.sums.resize(count);
  std::memcpy(head.sums.data(), blocks->data(), count * sizeof(uint64_t));
  return head;
}

}  // namespace

PreparedRecords::Found PreparedRecords::open(const std::string &path, const Digest &key, RecordFile &file) {
  file = open_record(path, SectionKind::blocks);
  if (file.state == RecordFile::State::none) return {Outcome::miss, "no record"};
  if (file.state == RecordFile::State::failed) return {Outcome::miss, file.reason};
  if (file.state == RecordFile::State::wrong) return {Outcome::reject, file.reason};
  Result<Head> head = read_head(file, key);
  if (!head.ok()) return {Outcome::reject, head.status().message()};
  void *const at = ::mmap(nullptr, file.length, PROT_READ, MAP_SHARED, file.file.get(), 0);
  if (at == MAP_FAILED) return {Outcome::miss, str_cat("cannot map ", path, ": ", errno_text(errno))};
  const std::shared_ptr<Mapped> mapped(new Mapped);
  mapped->path_ = path;
  mapped->device_ = file.identity.device;
  mapped->inode_ = file.identity.inode;
  mapped->file_ = {static_cast<const uint8_t *>(at), file.length};
  mapped->content_ = mapped->file_.subspan(head->begin, head->size);
  mapped->blocks_ = std::move(head->sums);
  touch(file.file);
  return {Outcome::hit, "hit", mapped};
}

PreparedRecords::Found PreparedRecords::find(const Digest &key, uint64_t size) {
  if (dir().empty()) return {Outcome::miss, "no cache folder"};
  const std::string path = path_of(key);
  RecordFile file;
  Found found = open(path, key, file);
  if (found.record && found.record->bytes().size() != size)
    found = {Outcome::reject, damaged("its parameters are of another size").message()};
  if (found.outcome == Outcome::reject) folder_.quarantine(path, file);
  const bool is_io_error = found.outcome == Outcome::miss && file.state != RecordFile::State::none;
  if (is_io_error || file.state == RecordFile::State::wrong) (void)folder_.note(error(Code::io, found.reason));
  ++(found.outcome == Outcome::hit ? hits_ : found.outcome == Outcome::miss ? misses_ : rejects_);
  return found;
}

Status PreparedRecords::publish(const Digest &key, ByteSpan bytes) {
  const std::vector<uint64_t> sums = block_sums(bytes);
  const uint64_t begin = (head_bytes + sums.size() * sizeof(uint64_t) + page_bytes - 1) / page_bytes * page_bytes;
  Bytes blocks(begin - head_bytes);
  std::memcpy(blocks.data(), sums.data(), sums.size() * sizeof(uint64_t));
  RecordWriter writer;
  const uint64_t checksum = checksum_of(blocks);
  writer.add(SectionKind::blocks, std::move(blocks));
  writer.add_outside(SectionKind::prepared, bytes.size(), checksum);
  const Bytes head = writer.finish(key);
  const ByteSpan parts[] = {head, bytes};
  return folder_.publish(path_of(key), parts);
}

bool PreparedRecords::reject(const Mapped &record) {
  if (record.is_rejected_.exchange(true)) return false;
  RecordFile file;
  file.identity = {record.device_, record.inode_};
  folder_.quarantine(record.path_, file);
  ++rejects_;
  return true;
}

Status PreparedRecords::check(const std::string &path, const std::string &key) {
  RecordFile file = open_record(path, SectionKind::blocks);
  if (file.state == RecordFile::State::none) return {};
  if (file.state != RecordFile::State::read) return error(Code::corrupt, file.reason);
  KILN_ASSIGN(const RecordReader reader, RecordReader::open(file.bytes, file.length));
  if (reader.key().hex() != key) return error(Code::corrupt, "header at offset 24: the key is not the file's");
  const Found found = open(path, reader.key(), file);
  const std::atomic<bool> never = false;
  return found.record ? found.record->verify(never) : error(Code::corrupt, found.reason);
}

}  // namespace kiln
