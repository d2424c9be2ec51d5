// What the stand-in for the driver knows: handles and memory that are live, records, and the failure to come.
#pragma once
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/guarded_bytes.h"
#include "tests/standin/driver.h"

namespace kiln::standin {

struct Module {
  void *handle = nullptr;  // null: bytes that nobody can run; launches are recorded alone
  int file = -1;           // that it was opened from
};
struct Function {
  uint64_t module;
  std::string name;
};

class StandinDriver final : public DriverControl {
 public:
  void reset(const Settings &to) override {
    const std::lock_guard lock(mutex_);
    settings = to;
    records_.clear();
    misuse_.clear();
    until_failure_.reset();
  }
  std::vector<Record> records() override {
    const std::lock_guard lock(mutex_);
    return records_;
  }
  void fail(uint64_t after, int error) override {
    const std::lock_guard lock(mutex_);
    until_failure_ = after;
    failure_ = error;
  }
  std::vector<std::string> live() override {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> names;
    for (const auto &[handle, kind] : handles_) names.push_back(kind + " " + std::to_string(handle));
    for (const auto &[address, memory] : memory_)
      names.push_back("memory of " + std::to_string(memory.bytes) + " bytes");
    return names;
  }
  std::vector<std::string> misuse() override {
    const std::lock_guard lock(mutex_);
    return misuse_;
  }

  // A call that can fail: the injected error, or what `body` says. What fails does nothing.
  template <class Body>
  int call(Record record, Body body) {
    const std::lock_guard lock(mutex_);
    if (until_failure_ && (*until_failure_)-- == 0) {
      until_failure_.reset();
      record.function += " (failed)";
      records_.push_back(std::move(record));
      return failure_;
    }
    const int result = body(record);
    records_.push_back(std::move(record));
    return result;
  }
  // One that frees or destroys.
  template <class Body>
  int release(Record record, Body body) {
    const std::lock_guard lock(mutex_);
    const int result = body(record);
    records_.push_back(std::move(record));
    return result;
  }

  // ---- of bodies: the lock is held

  uint64_t make(const char *kind) {
    handles_[++last_handle_] = kind;
    return last_handle_;
  }
  bool is(uint64_t handle, const char *kind, const char *function) {
    if (handle != 0 && handle <= default_streams && std::string_view(kind) == "stream") return true;
    const auto found = handles_.find(handle);
    if (found != handles_.end() && found->second == kind) return true;
    misuse_.push_back(std::string(function) + " of " + kind + " " + std::to_string(handle) + ", which is not live");
    return false;
  }
  bool drop(uint64_t handle, const char *kind, const char *function) {
    return is(handle, kind, function) && handles_.erase(handle) == 1;
  }
  // The primary context of a device is one, however often it is retained.
  uint64_t retain_context(int device) {
    Primary &primary = primaries_[device];
    if (primary.retained++ == 0) primary.context = make("context");
    return primary.context;
  }
  bool release_context(int device) {
    Primary &primary = primaries_[device];
    if (!is(primary.context, "context", "cuDevicePrimaryCtxRelease_v2")) return false;
    if (--primary.retained == 0) handles_.erase(primary.context);
    return true;
  }
  bool in_context(const char *function) {
    if (!current.empty()) return true;
    misuse_.push_back(std::string(function) + " without a current context");
    return false;
  }
  uint64_t allocate(uint64_t bytes) {
    using kiln::testing::GuardedBytes;
    const size_t rounded = (bytes + alignment - 1) / alignment * alignment;
    auto memory = std::make_unique<GuardedBytes>(rounded, GuardedBytes::Place::end);
    const auto address = reinterpret_cast<uint64_t>(memory->begin());
    memory_[address] = {bytes, std::move(memory)};
    return address;
  }
  bool free(uint64_t address, const char *function) {
    if (memory_.erase(address) == 0) {
      misuse_.push_back(std::string(function) + " of memory that is not live");
      return false;
    }
    return true;
  }
  bool holds(uint64_t address, uint64_t bytes, const char *function) {
    auto above = memory_.upper_bound(address);
    if (above != memory_.begin()) {
      const auto &[begin, memory] = *--above;
      if (address + bytes <= begin + memory.bytes) return true;
    }
    misuse_.push_back(std::string(function) + " of " + std::to_string(bytes) + " bytes outside of device memory");
    return false;
  }

  Settings settings;
  std::map<uint64_t, Module> modules;                 // by handle
  std::map<uint64_t, Function> functions;             // likewise
  static thread_local std::vector<uint64_t> current;  // contexts, as pushed

 private:
  std::mutex mutex_;
  std::vector<Record> records_;
  std::vector<std::string> misuse_;
  std::optional<uint64_t> until_failure_;
  int failure_ = 0;
  static constexpr uint64_t default_streams = 2;
  uint64_t last_handle_ = 100;
  struct Primary {
    uint64_t context = 0, retained = 0;
  };
  std::map<int, Primary> primaries_;  // by device
  std::map<uint64_t, std::string> handles_;
  static constexpr size_t alignment = 256;
  struct DeviceMemory {
    uint64_t bytes;
    std::unique_ptr<kiln::testing::GuardedBytes> pages;  // of which the last ends before a guard
  };
  std::map<uint64_t, DeviceMemory> memory_;  // by address
};

}  // namespace kiln::standin
