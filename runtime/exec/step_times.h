// How long the steps of a run took, for a host that asks (KILN_RUN_STEPS).
#pragma once
#include <chrono>
#include <cstdint>
#include <map>
#include <span>
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
    int64_t runs = 0, ns = 0;             // of all its runs, with what plans in it took
    const Plan::Step *planned = nullptr;  // lives as long as the root
    std::vector<int64_t> symbols = {};    // of its plan, in its last run
    int64_t bytes = 0, flops = 0;         // of all its runs, by an estimate (Call::step_times); 0: there is none
  };

  // Of a run of `root`, which outlives this or the next clear.
  void clear(const Plan &root);
  // `plan` is the root, or nested in it; `symbols` are its, as far as they are known.
  void add(const Plan &plan, size_t step, Clock::duration time, std::span<const int64_t> symbols = {});
  const Plan *root() const { return root_; }
  std::string text_of_last() const;  // "plan 1.0 step 3, 4711 ns: kernel 2(x, arena 0)"
  std::vector<Row> rows() const;     // in the order in which steps first ended

 private:
  struct Entry {
    const Plan *plan = nullptr;
    size_t step = 0;
    int64_t runs = 0, ns = 0;
    std::vector<int64_t> symbols = {};
  };
  Row row_of(const Entry &entry) const;

  const Plan *root_ = nullptr;
  std::vector<Entry> entries_;
  std::map<std::pair<const Plan *, size_t>, size_t> numbers_;  // of entries
  size_t last_ = 0;
  int64_t last_ns_ = 0;
};

}  // namespace kiln
