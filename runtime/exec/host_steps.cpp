#include "runtime/exec/host_steps.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>

namespace kiln {
namespace {

constexpr uint64_t piece_bytes = 256 << 10;  // of a copy: some µs of work

struct Copy {
  uint8_t *to;
  const uint8_t *from;
  uint64_t bytes;
};

void copy_pieces(void *user, uint32_t, int64_t begin, int64_t end) {
  const Copy &copy = *static_cast<const Copy *>(user);
  const uint64_t first = static_cast<uint64_t>(begin) * piece_bytes,
                 last = std::min(static_cast<uint64_t>(end) * piece_bytes, copy.bytes);
  std::memcpy(copy.to + first, copy.from + first, last - first);
}

// What the pool's threads share while they run one kernel.
struct Launch {
  kiln_kernel_fn entry;
  kiln_kernel_args args;
  const Areas &scratch;
  const LoopWatch *watch;  // null: nobody cancels it
};

void run_range(void *user, uint32_t worker, int64_t begin, int64_t end) {
  const Launch &launch = *static_cast<const Launch *>(user);
  if (launch.watch && launch.watch->is_cancelled()) return;
  kiln_kernel_args args = launch.args;
  args.begin = begin;
  args.end = end;
  args.scratch = launch.scratch.count() > 0 ? launch.scratch[worker] : nullptr;
  launch.entry(&args);
}

// The same of a run that may be ended inside of the kernel.
struct Watched {
  const Launch &launch;
  LoopWatch &watch;
  uint32_t kernel;
  Status status = {};  // of the caller's thread
  std::atomic<bool> ends = false;
};

// A range in pieces of some ms. How a range is cut changes no result.
void run_pieces(void *user, uint32_t worker, int64_t begin, int64_t end) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds enough(5);
  Watched &watched = *static_cast<Watched *>(user);
  int64_t piece = std::max<int64_t>(1, (end - begin) / 64);
  while (begin < end && !watched.ends.load(std::memory_order_relaxed)) {
    const int64_t last = begin + std::min(piece, end - begin);
    const Clock::time_point started = Clock::now();
    run_range(const_cast<Launch *>(&watched.launch), worker, begin, last);
    if (Clock::now() - started < enough) piece = std::min(2 * piece, end - begin);
    begin = last;
    if (worker != 0) continue;  // not the thread that the host is told on
    watched.status = watched.watch.inside(watched.kernel);
    if (!watched.status.ok()) watched.ends.store(true, std::memory_order_relaxed);
  }
}

}  // namespace

HostSteps::HostSteps(const Executable &executable, std::span<const kiln_kernel_fn> kernels, const Plan &plan,
                     const PlanSizes &sizes, std::span<const Plan::Step> steps,
                     std::span<const PlanSizes::Step> numbers)
    : ready_(plan, sizes, steps, numbers), pool_(executable.pool()) {
  for (const Plan::Step &step : steps)
    entries_.push_back(step.kind == Plan::Step::Kind::launch ? kernels[step.kernel] : nullptr);
  std::vector<void *> constants;
  for (const TensorData &constant : executable.artifact().constants)
    constants.push_back(const_cast<uint8_t *>(constant.bytes.data()));  // kernels only read them
  ready_.set(Plan::Slot::Kind::constant, constants);
}

Status HostSteps::place_scratch() {
  uint64_t scratch = 0;
  for (const ReadySteps::Step &step : ready_.steps()) scratch = std::max(scratch, step.scratch_bytes);
  if (scratch == 0) return {};
  return scratch_.resize(std::vector(pool_.threads(), scratch), "scratch of kernels");
}

Status HostSteps::launch(size_t number, Watching watching) {
  const ReadySteps::Step &step = ready_.steps()[number];
  if (step.tasks <= 0) return {};
  Launch launch{entries_[number], {}, scratch_, watching.watch};
  launch.args.buffers = ready_.operands(step);
  launch.args.sizes = ready_.kernel_sizes(step);
  launch.args.error_word = &error_word_;
  if (step.tasks == 1) {
    run_range(&launch, 0, 0, 1);
  } else if (watching.asks) {
    Watched watched{launch, *watching.watch, ready_.planned(number).kernel};
    pool_.run(step.tasks, run_pieces, &watched);
    return std::move(watched.status);
  } else {
    pool_.run(step.tasks, run_range, &launch);
  }
  return {};
}

void HostSteps::copy(void *to, const void *from, uint64_t bytes) {
  Copy copy{static_cast<uint8_t *>(to), static_cast<const uint8_t *>(from), bytes};
  const auto pieces = static_cast<int64_t>((bytes + piece_bytes - 1) / piece_bytes);
  if (pieces == 1) copy_pieces(&copy, 0, 0, 1);
  if (pieces > 1) pool_.run(pieces, copy_pieces, &copy);
}

Status HostSteps::error_of(size_t step) const {
  const Plan::Step &planned = ready_.planned(step);
  return ready_.error_of(error_word_, &planned, str_cat(" (first in step ", step, ", kernel ", planned.kernel, ")"));
}

}  // namespace kiln
