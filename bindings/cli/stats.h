// What --stats writes: how the compile ended, and where the time went.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "handles.h"

namespace kiln::cli {

class Stopwatch {
 public:
  // Milliseconds since the last lap, or since the beginning.
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    return milliseconds(now - std::exchange(last_, now));
  }
  double total() const { return milliseconds(std::chrono::steady_clock::now() - begin_); }

 private:
  using Clock = std::chrono::steady_clock;
  static double milliseconds(Clock::duration d) { return std::chrono::duration<double, std::milli>(d).count(); }
  Clock::time_point begin_ = Clock::now(), last_ = begin_;
};

struct Stats {
  Report compile;  // empty: an artifact was given, nothing was compiled or looked up
  std::vector<std::pair<std::string, double>> phases;  // the client's own, in milliseconds: ("read_ms", 1.2)
  double total_ms = 0;
  uint64_t call_bytes = 0;  // working memory, prepared parameters and outputs of the call
  std::string entry = {};   // of the executable: which one ran; empty: none did
};

// {"lookup", "reason", "key", "passes_run": {NAME: rewrites}, "kernels_compiled", "kernels_from_cache", "launches",
// "materialised", "in_place" (copies that were spared), "copies" (those that were not), "copied_bytes" (their size in a
// call, a text over the symbols), "llvm_loaded", "device_kernels": [{"entry", "registers", "spill_bytes",
// "shared_bytes"}] (of
// --backend cuda), "fallbacks": {OP: how many} (under a mode that cuts), "pieces": [{"lookup", "reason", "key", or
// "same_as"}] (of a graph that is cut into pieces, unless it is a HIT), "entries": [{"name", "state", "lookup"}] (of
// --specialize), "entry" (the one that ran, or "general"), "compile_ms", "phases": {"lookup_ms": …}, "total_ms",
// "call_bytes", "peak_bytes" (the process's)}.
// `members` (JSON members, each with a comma after it) come first.
std::string json_of(const Stats &stats, std::string_view members = {});

// The most memory that this process has had resident so far.
uint64_t peak_bytes();

}  // namespace kiln::cli
