// The module's border: the C table of jit/base/codegen.h. Worker threads compile; the calling thread delivers.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <new>
#include <optional>
#include <string_view>
#include <vector>

#include "jit/base/build_id.h"
#include "jit/base/codegen.h"
#include "jit/base/process.h"
#include "jit/llvm/reserve.h"
#include "jit/llvm/session.h"

namespace kiln::codegen {
namespace {

// What a thread takes to compile a kernel of so many bytes, its session included: measured, and doubled.
uint64_t working_bytes(uint64_t kernel_size) { return (uint64_t{8} << 20) + 1024 * kernel_size; }

struct Outcome {
  Status status;
  bool out_of_memory = false;  // then there is no status: it would need memory, too
  Compiled compiled;
};

// The kernels of one request: workers take one after the other, the calling thread waits for each in order.
class Batch {
 public:
  explicit Batch(const kiln_codegen_request &request)
      : request_(request),
        target_(Target::by_name({request.target, request.target_size})),
        outcomes_(request.kernel_count) {
    for (uint64_t kernel = 0; kernel < request.kernel_count; ++kernel) order_.push_back(kernel);
    std::ranges::stable_sort(order_, std::greater(), [&](uint64_t kernel) { return request.kernel_sizes[kernel]; });
  }
  Batch(const Batch &) = delete;
  Batch &operator=(const Batch &) = delete;

  ~Batch() {
    stopped_ = true;
    for (Thread &worker : workers_) worker.join();
  }

  // As many threads as there is memory for; throws bad_alloc when that is none. Where the system gives fewer threads,
  // those that there are do the work; without any, wait() does.
  void start() {
    if (order_.empty()) return;
    const uint64_t each = working_bytes(request_.kernel_sizes[order_.front()]);
    uint64_t threads = std::min<uint64_t>(std::max(request_.threads, 1u), request_.kernel_count);
    for (;; threads /= 2) {
      if (threads == 0) throw std::bad_alloc();
      reserve_ = Reserve::hold(threads * each);
      if (reserve_) break;
    }
    workers_.reserve(threads);
    while (workers_.size() < threads) {
      workers_.push_back(Thread::start("kiln-compile", [this] { work(); }));
      if (workers_.back()) continue;
      workers_.pop_back();
      return;
    }
  }

  // What became of a kernel; nothing when it takes longer than a moment, or than another kernel.
  std::optional<Outcome> wait(uint64_t kernel) {
    if (workers_.empty() && !outcomes_[kernel]) compile_next(own_session_);
    std::unique_lock lock(mutex_);
    finished_.wait_for(lock, workers_.empty() ? std::chrono::milliseconds(0) : std::chrono::milliseconds(20),
                       [&] { return outcomes_[kernel].has_value(); });
    return std::move(outcomes_[kernel]);
  }

 private:
  void work() {
    std::unique_ptr<Session> session;
    while (!stopped_ && compile_next(session)) {
    }
  }

  // False: no kernel is left.
  bool compile_next(std::unique_ptr<Session> &session) {
    const uint64_t turn = next_++;
    if (turn >= order_.size()) return false;
    const uint64_t kernel = order_[turn];
    Outcome outcome;
    outcome.out_of_memory = !compile(kernel, session, outcome);
    {
      std::lock_guard lock(mutex_);
      outcomes_[kernel] = std::move(outcome);
    }
    finished_.notify_one();
    return true;
  }

  // Whether there was memory for it.
  bool compile(uint64_t kernel, std::unique_ptr<Session> &session, Outcome &outcome) {
    if (reserve_->is_low()) return false;
    try {
      outcome.status = compile_with(kernel, session, outcome.compiled);
    } catch (const std::exception &) {
      // Not even the reserve sufficed: LLVM was left in the middle of something, so that its objects cannot be
      // destroyed.
      (void)session.release();
      return false;
    }
    if (!reserve_->is_low()) return true;
    // Its memory goes back before the next kernel asks how much there is.
    if (reserve_->is_spent()) {
      (void)session.release();
    } else {
      session.reset();
    }
    return true;
  }

  Status compile_with(uint64_t kernel, std::unique_ptr<Session> &session, Compiled &out) {
    if (!target_.ok()) return target_.status();
    if (!session) {
      KILN_ASSIGN(session, Session::create(*target_));
    }
    KILN_ASSIGN(out, session->compile({request_.kernels[kernel], request_.kernel_sizes[kernel]}, request_.want));
    return {};
  }

  const kiln_codegen_request &request_;
  const Result<Target> target_;
  std::vector<uint64_t> order_;  // large ones first, so that no thread is left with one at the end
  std::vector<std::optional<Outcome>> outcomes_;
  std::optional<Reserve> reserve_;
  std::atomic<uint64_t> next_ = 0;
  std::atomic<bool> stopped_ = false;
  std::mutex mutex_;
  std::condition_variable finished_;
  std::vector<Thread> workers_;
  std::unique_ptr<Session> own_session_;  // of the calling thread, where it compiles
};

using Deliver = void (*)(void *user, const kiln_codegen_result *);

void deliver_error(uint64_t kernel, Code code, std::string_view why, Deliver deliver, void *user) {
  kiln_codegen_result result{};
  result.kernel = result.image_number = kernel;
  result.error = why.data();
  result.error_size = why.size();
  result.error_code = static_cast<uint32_t>(code);
  deliver(user, &result);
}

void deliver_outcome(uint64_t kernel, const Outcome &outcome, Deliver deliver, void *user) {
  if (outcome.out_of_memory)
    return deliver_error(kernel, Code::out_of_memory, "not enough memory to compile it", deliver, user);
  if (!outcome.status.ok())
    return deliver_error(kernel, outcome.status.code(), outcome.status.message(), deliver, user);
  const Compiled &compiled = outcome.compiled;
  kiln_codegen_result result{};
  result.kernel = result.image_number = kernel;
  result.image = compiled.image.bytes.data();
  result.image_size = compiled.image.bytes.size();
  result.entry_offset = compiled.image.entry_offset;
  result.text = compiled.text.data();
  result.text_size = compiled.text.size();
  deliver(user, &result);
}

int32_t compile(const kiln_codegen_request *request, Deliver deliver, void *user) {
  uint64_t delivered = 0;
  try {
    Batch batch(*request);
    batch.start();
    while (delivered < request->kernel_count) {
      if (request->cancelled && request->cancelled(request->user)) return 1;
      if (const std::optional<Outcome> outcome = batch.wait(delivered))
        deliver_outcome(delivered++, *outcome, deliver, user);
    }
    return 0;
  } catch (const std::exception &) {  // no memory, or no threads
  }
  for (; delivered < request->kernel_count; ++delivered)
    deliver_error(delivered, Code::out_of_memory, "neither memory nor threads to compile it", deliver, user);
  return 0;
}

}  // namespace
}  // namespace kiln::codegen

extern "C" __attribute__((visibility("default"))) const kiln_codegen_table *kiln_codegen_entry(void) {
  static const kiln_codegen_table table{kiln::build_id_text, kiln::codegen::compile, nullptr, nullptr};
  return &table;
}
