#include "runtime/cache/prepared.h"

#include <sys/mman.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "jit/base/file.h"
#include "runtime/cache/files.h"
#include "runtime/cache/record.h"

namespace kiln {
namespace {

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

Status damaged(std::string_view what) { return error(Code::corrupt, "the record is damaged: ", what); }

}  // namespace

PreparedRecords::PreparedRecords(const std::string &cache_dir, uint64_t max_bytes)
    : folder_(cache_dir, "prepared", max_bytes || cache_dir.empty() ? max_bytes : tenth_of_disk(cache_dir)) {}

PreparedRecords::Mapped::Mapped(std::string path, const RecordFile &file, ByteSpan map, BlocksHead head)
    : SummedBytes(map.subspan(head.begin, head.size), std::move(head.sums)),
      path_(std::move(path)),
      device_(file.identity.device),
      inode_(file.identity.inode),
      map_(map) {}

PreparedRecords::Mapped::~Mapped() { ::munmap(const_cast<uint8_t *>(map_.data()), map_.size()); }

std::string PreparedRecords::path_of(const Digest &key) const {
  const std::string hex = key.hex();
  return str_cat(dir(), "/p/", hex.substr(0, 2), "/", hex, ".kprep");
}

namespace {

Result<BlocksHead> read_head(const RecordFile &file, const Digest &key) {
  if (file.state != RecordFile::State::read) return error(Code::corrupt, file.reason);
  KILN_ASSIGN(const RecordReader reader, RecordReader::open(file.bytes, file.length));
  if (reader.key() != key) return error(Code::corrupt, "header at offset 24: the key is not the file's");
  return read_blocks_head(reader);
}

}  // namespace

PreparedRecords::Found PreparedRecords::open(const std::string &path, const Digest &key, RecordFile &file) {
  file = open_record(path, SectionKind::blocks);
  if (file.state == RecordFile::State::none) return {Outcome::miss, "no record"};
  if (file.state == RecordFile::State::failed) return {Outcome::miss, file.reason};
  if (file.state == RecordFile::State::wrong) return {Outcome::reject, file.reason};
  Result<BlocksHead> head = read_head(file, key);
  if (!head.ok()) return {Outcome::reject, damaged(head.status().message()).message()};
  void *const at = ::mmap(nullptr, file.length, PROT_READ, MAP_SHARED, file.file.get(), 0);
  if (at == MAP_FAILED) return {Outcome::miss, str_cat("cannot map ", path, ": ", errno_text(errno))};
  const ByteSpan map(static_cast<const uint8_t *>(at), file.length);
  const std::shared_ptr<Mapped> mapped(new Mapped(path, file, map, std::move(head).value()));
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
  RecordWriter writer;
  const PlacedBytes all{0, bytes};
  add_blocks(writer, {&all, 1}, bytes.size());
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
  if (!found.record) return error(Code::corrupt, found.reason);
  return found.record->verify(never).with_prefix("the record is damaged: ");
}

}  // namespace kiln
