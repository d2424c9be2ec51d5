// A folder of records with a limit of its own: how they get there, are set aside, and go. What they hold is its owner's
// matter. Internal to this folder. Threads: all methods from any thread.
#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>

#include "jit/base/bytes.h"
#include "jit/base/status.h"

namespace kiln {

class Ledger;
struct RecordFile;

class RecordFolder {
 public:
  // The folder `part` of `root`, or all of it where that is empty; it is `root` that is marked as Kiln's.
  RecordFolder(std::string root, const std::string &part, uint64_t max_bytes);

  const std::string &dir() const { return dir_; }
  uint64_t max_bytes() const { return max_bytes_; }
  uint64_t saves() const { return saves_; }
  uint64_t io_errors() const { return io_errors_; }
  std::string last_io_error() const;
  std::string refusal() const;  // as Cache's
  Status note(Status status);   // counts an error, and returns it

  // A new record of these bytes, one after the other; ok also where one is there.
  Status publish(const std::string &path, std::span<const ByteSpan> bytes);
  Status publish(const std::string &path, ByteSpan bytes) { return publish(path, {&bytes, 1}); }
  // Another name of a record that is there.
  Status publish_name(const std::string &path, const std::string &same_as, uint64_t size);
  void quarantine(const std::string &path, const RecordFile &file);
  Result<uint64_t> clear();  // as Cache's
  Status evict();

 private:
  bool is_marked() const;
  Result<Ledger> begin_writing();
  Result<bool> prepare_place(Ledger &ledger, const std::string &path, uint64_t size);
  Status make_room(Ledger &ledger, uint64_t bytes);
  Status tidy(Ledger &ledger, uint64_t most);

  const std::string root_, dir_;
  const uint64_t max_bytes_;
  std::atomic<uint64_t> saves_{0}, io_errors_{0};
  std::atomic<bool> is_locked_out_{false};  // the last one who waited for a turn to write got none
  mutable std::mutex error_mutex_;
  std::string last_io_error_;
};

}  // namespace kiln
