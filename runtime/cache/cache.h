// The disk cache. A folder per graph for its records, of which there are several where passes asked of their
// surroundings (variants.h); a folder of kernel images. Keys are in hex.
//   DIR/CACHEDIR.TAG  DIR/a/GRAPH_KEY/artifact.kiln   DIR/k/KERNEL_KEY[0:2]/KERNEL_KEY.kimg   DIR/quarantine/...
//   DIR/prepared/...  what is made of parameters (prepared.h), with a limit of its own
// Readers take no lock. Writers take turns (ledger.h); a writer publishes by linking a finished file, never reads back,
// never overwrites. I/O errors are misses (counted, with the reason) and never deletions; a record that fails to load,
// and whatever else is in a record's place, is moved to quarantine. A folder that others may change is not used.
// Threads: all methods from any thread.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "jit/base/hash.h"
#include "jit/base/status.h"
#include "runtime/cache/artifact_bytes.h"
#include "runtime/cache/in_flight.h"
#include "runtime/cache/outcome.h"
#include "runtime/cache/prepared.h"
#include "runtime/cache/record_folder.h"
#include "runtime/cache/variants.h"

namespace kiln {

struct Lookup {
  Outcome outcome = Outcome::miss;
  std::string reason;  // "hit", "no record", "component 'target' differs from the nearest record", "cache off", ...
  std::shared_ptr<Artifact> artifact;                // hit
  std::shared_ptr<const RecordFile> file = nullptr;  // hit: that which was read, without its bytes
  std::string path = {};                             // likewise
};

class Cache {
 public:
  // dir empty: $KILN_CACHE, else $XDG_CACHE_HOME/kiln, else ~/.cache/kiln. Created 0700 on first write. max_bytes 0: 1
  // GiB. max_prepared_bytes 0: a tenth of the disk.
  Cache(std::string dir, uint64_t max_bytes, uint64_t max_prepared_bytes = 0);

  // `components` explain a miss: the nearest record is the one that shares most of them. A record under this key that
  // is of another build or target is a miss that names the component; a damaged one a reject. Both are quarantined, so
  // that what is compiled instead can be published. Of records whose passes asked something, the one is found that was
  // made after the answers that `questions` gives (null: none is).
  Lookup find(const Digest &graph_key, const std::vector<KeyComponent> &components, std::string_view build_id,
              std::string_view target, Questions *questions = nullptr);
  // What compiles with this cache are making or have to write: they look here before they look for a record.
  InFlight &in_flight() { return in_flight_; }
  // The record that find() gave did not load: it is quarantined, so that what is compiled instead can be published.
  void reject(const Lookup &found);
  // Ok also when another writer was first. Errors (code io) are counted; results do not depend on them. `files` are
  // those that the artifact's passes asked for (Questions::settled_files).
  Status publish(const Artifact &artifact, std::span<const FileDigests::Known> files = {});

  std::optional<Image> find_kernel(const Digest &kernel_key);  // also one that waits to be written
  // Images that share their code share a file, which is there under each one's kernel_key.
  Status publish_kernels(std::span<const Image> images);

  struct Entry {
    std::string path, kind, key;
    uint64_t size_bytes;
    int64_t modified_seconds;
  };
  Result<std::vector<Entry>> list() const;  // kind "artifact", "questions", "kernel" or "prepared"
  struct Problem {
    std::string path, what;
  };
  Result<std::vector<Problem>> verify() const;  // reads and checks every record
  // How many files were removed. code io, with nothing touched, for a folder that has no writer's CACHEDIR.TAG.
  Result<uint64_t> clear();
  // Counts and tidies; beyond the limit removes the oldest, down to 90 % of it. publish does so, too.
  Status evict() { return folder_.evict(); }
  // Why the folder is not to be used ("cache folder /tmp/k is not used: /tmp/k is writable by others"); empty: it may
  // be.
  std::string refusal() const { return folder_.refusal(); }
  const std::string &dir() const { return folder_.dir(); }
  uint64_t max_bytes() const { return folder_.max_bytes(); }
  uint64_t saves() const { return folder_.saves(); }  // records that were written; of kernels, too
  uint64_t io_errors() const { return folder_.io_errors(); }
  std::string last_io_error() const { return folder_.last_io_error(); }  // its reason; empty: there was none
  PreparedRecords &prepared() { return prepared_; }
  const PreparedRecords &prepared() const { return prepared_; }

 private:
  std::string folder_of(const Digest &graph_key) const;
  struct Wanted;
  Lookup read_record(const std::string &path, RecordFile file, const Wanted &wanted);
  Lookup find_variant(const Wanted &wanted, Questions &questions);
  std::optional<Lookup> find_answered(const Wanted &wanted, const Asked &asked, Questions &questions);
  std::string kernel_path(const Digest &kernel_key) const;

  RecordFolder folder_;
  PreparedRecords prepared_;
  InFlight in_flight_;
  KnownQuestions known_questions_;
};

}  // namespace kiln
