// What the cache's folder holds, counted, in the file "ledger" beside the records. Writers take turns on it: whoever
// holds its lock is the only one in all processes that adds, evicts or tidies. Readers do not ask it. Internal to this
// folder.
//
// So the limit holds at any time, for any number of processes: a writer reserves the bytes of its record here, having
// evicted where they do not fit, before the record is there, and gives the lock back after. The total is never too low
// (a writer that is killed leaves a reservation without a record), and it is counted anew before anything is evicted,
// and whenever a sixteenth of the limit was written since.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>

#include "jit/base/file_descriptor.h"
#include "jit/base/status.h"

namespace kiln {

class Ledger {
 public:
  // Waits for other writers, at most `patience`. The lock goes with the object, and with the process. code io, or busy
  // where another writer has it all that time.
  static Result<Ledger> lock(const std::string &dir, std::chrono::milliseconds patience);
  Ledger(Ledger &&) noexcept = default;
  Ledger &operator=(Ledger &&) = delete;
  ~Ledger();

  // The bytes of all files of the cache. False: the file is new or damaged, or much was written since it was right.
  bool is_current(uint64_t max_bytes) const { return is_known_ && written_ <= max_bytes / 16; }
  uint64_t total() const { return total_; }
  void count(uint64_t total);      // as found in the folder
  Status reserve(uint64_t bytes);  // code io: it cannot be written down, so nothing may be added

 private:
  Ledger(FileDescriptor file, std::string path);

  FileDescriptor file_;
  std::string path_;
  bool is_known_ = false;
  uint64_t total_ = 0, written_ = 0;  // bytes; written_: since the last count
};

}  // namespace kiln
