// kiln run --times and --profile: where a run's time went, as a table for a person and as a trace for Perfetto.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "handles.h"
#include "session.h"

namespace kiln::cli {

// The steps of a run as they end, by the texts of KILN_EVENT_STEP.
class StepSpans {
 public:
  StepSpans() : begin_(Clock::now()) {}
  void ended(std::string_view event);  // throws nothing that a callback may not

  struct Span {
    std::string plan;  // as kiln_call_report has it
    int64_t step = 0;
    double begin_us = 0, end_us = 0;  // since the run's begin
  };
  const std::vector<Span> &spans() const { return spans_; }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin_;
  std::vector<Span> spans_;  // in the order of their ends
};

// The report of a run with the times of its steps (KILN_RUN_STEPS); the call has run before. What a run writes to its
// inputs is written again.
Report timed_run(kiln_call *call);

// What this machine does at most, as Kiln itself does it: a pass over 128 MiB, and a
// product of 1024 by 1024 matrices. 0: not known.
struct Roof {
  double bytes_per_second = 0, flops_per_second = 0;
  // Which part of `seconds`, which it took, so much would take at the roof. 0: the roof is not known.
  double share(double bytes, double flops, double seconds) const;
};
Roof measure_roof(const Session &session, const std::string &backend);

// "'y' [softmax] (debug.line=model.py:12), 'z' [exp] and 2 more": the nodes of a step of a report, or of a kernel.
std::string nodes_text(const Report &report, const std::string &list);

// A step of the plan of a run; of a kernel also what it moved and computed. All of all its runs.
struct StepTime {
  std::string name;
  bool is_outermost = false;  // of no plan within the plan, whose time is its step's, too
  bool is_kernel = false;
  double ns = 0, bytes = 0, flops = 0;
  int64_t runs = 0;
};
// `call` is the report of a timed_run.
std::vector<StepTime> step_times(const Report &call);
// Lines, the longest steps first, at most so many.
std::string profile_table(std::vector<StepTime> steps, const Roof &roof, size_t most = SIZE_MAX);
// In the JSON format of Chrome's traces. `compile` may be empty: an artifact was run.
std::string trace_json(const Report &call, const StepSpans &spans, const Report &compile);

}  // namespace kiln::cli
