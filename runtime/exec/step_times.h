// How long the steps of a run took, for a host that asks (KILN_RUN_STEPS).
#pragma once
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/plan/plan.h"

namespace kiln {

// Of one run at a time, by one thread.
class StepTimes {
 public:
  using Clock = std::chrono::steady_clock;
  struct Row {
    std::string plan;  // by its numbers from the outermost one on, "1.0"; that one's own: ""
    size_t step = 0;
    std::string what;
    int64_t runs = 0, ns = 0;  // of all its runs, with what plans in it took
  };

  // Of a run of `root`, which outlives this or the next clear.
  void clear(const Plan &root);
  // `plan` is the root, or nested in it.
  void add(const Plan &plan, size_t step, Clock::duration time);
  std::string text_of_last() const;  // "plan 1.0 step 3, 4711 ns: kernel 2(x, arena 0)"
  std::vector<Row> rows() const;     // in the order in which steps first ended

 private:
  struct Entry {
    const Plan *plan = nullptr;
    size_t step = 0;
    int64_t runs = 0, ns = 0;
  };
  Row row_of(const Entry &entry) const;

  const Plan *root_ = nullptr;
  std::vector<Entry> entries_;
  std::map<std::pair<const Plan *, size_t>, size_t> numbers_;  // of entries
  size_t last_ = 0;
  int64_t last_ns_ = 0;
};

}  // namespace kiln
