// A plan being run: what all places share of it. Its steps are run by the place (host_body.h, device_body.h); which
// nested plans a step runs, how often and on which arrays, is said here.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/exec/loop_watch.h"
#include "runtime/exec/place.h"
#include "runtime/exec/signature.h"
#include "runtime/exec/steps.h"

namespace kiln {

// One plan of an executable, with the numbers of its sizes.
struct PlanPart {
  const Plan &plan;
  const PlanSizes &numbers;
};

// One thread at a time.
class Body {
 public:
  // `sizes` are the plan's, and steps resolve some of them; all outlive this. They need not be resolved yet. `watch` is
  // one for all bodies of a call.
  Body(PlanPart part, const Signature &signature, ResolvedSizes &sizes, LoopWatch &watch);
  Body(const Body &) = delete;
  Body &operator=(const Body &) = delete;
  virtual ~Body();

  // Memory for a run at these sizes, also of nested plans. Errors: out_of_memory; corrupt, internal for a damaged plan.
  Status place();
  void set_array(uint32_t slot, void *data);  // of an input or output of the signature, where the place has it
  // Runs all steps. out_of_range: what a kernel found, told after the last step; outputs are defined even then. A
  // device tells it when it is waited for. cancelled: the host ended a loop; what outputs hold is not defined.
  virtual Status run() = 0;
  // The same of a nested plan, on operands: its inputs, then its outputs.
  virtual Status run_on(std::span<void *const> operands);
  uint64_t size_bytes() const;  // of memory that it holds, with nested ones

 protected:
  // A body of a nested plan.
  virtual std::unique_ptr<Body> make_nested(PlanPart part, const Signature &signature, ResolvedSizes &sizes) = 0;
  virtual ReadySteps &ready() = 0;
  virtual Status place_memory() = 0;
  virtual uint64_t own_bytes() const = 0;
  virtual Status copy(void *to, const void *from, uint64_t bytes) = 0;
  // What the steps so far make, out of the place's memory.
  virtual Status read(void *to, const void *from, uint64_t bytes) = 0;
  virtual void *flag() = 0;  // one byte of the place's memory, each body's own

  // Makes nested_: the last thing that a constructor of a derived class does.
  void make_all_nested();
  Status run_control(size_t step);  // a call, branch, loop, scan or resolve
  Body &nested_body(size_t step);   // that a call runs
  bool is_named() const;            // by the step that calls it: its errors there tell that step's node

  const PlanPart part_;
  const Signature &signature_;
  ResolvedSizes &sizes_;
  LoopWatch &watch_;

 private:
  struct Nested;
  Result<bool> is_true(const void *flag);
  Status place_nested();
  static Status place(Nested &n, const std::vector<int64_t> &symbols);
  Status resolve(size_t step);
  Status call(size_t step);
  Status named(size_t step, Status status) const;  // of a call, with its node's name
  Status branch(size_t step);
  Status loop(size_t step);
  Status run_turn(const Nested &n, size_t step, int64_t turn, Status &failed);
  Status scan(size_t step);

  const Plan::Step *caller_ = nullptr;                        // of the plan in which it is nested
  std::vector<std::vector<uint32_t>> plan_slots_;             // of each input and output of the signature
  std::vector<std::vector<std::unique_ptr<Nested>>> nested_;  // by step, as it numbers them
};

// Notes the first error that a kernel found; anything else that failed is returned, whatever its code.
inline Status first_of(Status &found, Status status, const LoopWatch &watch) {
  if (status.ok() || status.code() != Code::out_of_range || watch.stopped()) return status;
  if (found.ok()) found = std::move(status);
  return {};
}

}  // namespace kiln
