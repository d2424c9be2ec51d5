// What was made of parameters that lie in files, as records that any number of processes map: a file each, under a key
// that says what was made of what (exec/prepare_parts.h). A record is immutable and is only ever unlinked. Its length
// and header are checked before it is mapped; its content, an XXH3 for each MiB, by whoever has time: never on the way
// to a hit.
//   DIR/prepared/p/KEY[0:2]/KEY.kprep   DIR/prepared/quarantine/...   DIR/prepared/ledger
// Threads: all methods from any thread.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "jit/base/hash.h"
#include "jit/base/status.h"
#include "runtime/cache/blocks.h"
#include "runtime/cache/outcome.h"
#include "runtime/cache/record_folder.h"

namespace kiln {

struct RecordFile;

class PreparedRecords {
 public:
  // Of the cache in `cache_dir`. max_bytes 0: a tenth of the disk.
  PreparedRecords(const std::string &cache_dir, uint64_t max_bytes);

  // A record, mapped read-only for the object's life, whatever becomes of the file's name.
  class Mapped : public SummedBytes {
   public:
    ~Mapped();

   private:
    friend class PreparedRecords;
    Mapped(std::string path, const RecordFile &file, ByteSpan map, BlocksHead head);
    const std::string path_;
    const uint64_t device_, inode_;  // its identity, which no other file gets meanwhile
    const ByteSpan map_;             // of the whole file
    mutable std::atomic<bool> is_rejected_ = false;
  };

  struct Found {
    Outcome outcome;  // hit, miss or reject
    std::string reason;
    std::shared_ptr<const Mapped> record = nullptr;  // hit
  };
  // A record of `size` bytes. What else lies in its place is quarantined. I/O errors are misses, and counted.
  Found find(const Digest &key, uint64_t size);
  // Ok also when another writer was first. Errors (code io) are counted.
  Status publish(const Digest &key, ByteSpan bytes);
  // It did not verify: it is quarantined. False: it was before.
  bool reject(const Mapped &record);
  // Reads and checks the record at `path`; ok where it is gone.
  static Status check(const std::string &path, const std::string &key);

  const std::string &dir() const { return folder_.dir(); }
  uint64_t max_bytes() const { return folder_.max_bytes(); }
  uint64_t saves() const { return folder_.saves(); }
  uint64_t io_errors() const { return folder_.io_errors(); }
  uint64_t hits() const { return hits_; }
  uint64_t misses() const { return misses_; }
  uint64_t rejects() const { return rejects_; }
  uint64_t verified() const { return verified_; }  // whose content was checked, and found to be right
  void note_verified() { ++verified_; }
  Result<uint64_t> clear() { return folder_.clear(); }  // as Cache's

 private:
  static Found open(const std::string &path, const Digest &key, RecordFile &file);
  std::string path_of(const Digest &key) const;

  RecordFolder folder_;
  std::atomic<uint64_t> hits_{0}, misses_{0}, rejects_{0}, verified_{0};
};

}  // namespace kiln
