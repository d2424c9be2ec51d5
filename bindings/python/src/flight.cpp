// Runs that are waited for where Ctrl-C is seen: it ends the wait at once, and the run as soon as that can be ended.
// Until then a run goes on by itself, and what it was given stays.
#include <algorithm>
#include <thread>

#include "call.h"

namespace kiln_python {
namespace {
// Below this the interpreter's lock is kept: to give it up and take it again costs as much as such a run.
constexpr auto kQuick = std::chrono::microseconds(10);
// From here on one may want to end a run.
constexpr auto kLong = std::chrono::milliseconds(20);
constexpr auto kBetweenSignals = std::chrono::milliseconds(50);

// Between two looks at a run that has lasted so long: little of it, and no core that it needs.
void pause(std::chrono::steady_clock::duration lasted) {
  using namespace std::chrono;
  if (lasted < microseconds(20)) return;
  std::this_thread::sleep_for(std::clamp<steady_clock::duration>(lasted / 256, microseconds(20), milliseconds(10)));
}
}  // namespace

Runner::Given::Given(Runner &runner, Lands) : runner_(runner) {
  if (runner.busy_) raise(KILN_BUSY, "this call is in use by another thread; each thread makes its own, by clone()");
  runner.busy_ = true;
}

Runner::Given::Given(Runner &runner) : Given(runner, Lands()) {
  runner.settle();
  if (runner.in_flight_) raise(KILN_BUSY, "a run of this call is in flight; wait() for it");
}

// Of other sizes it is not known: work may grow faster than the arrays do, but not by far.
bool Runner::expects_long(bool same) {
  if (same) return long_run_;
  bytes_ = 0;
  for (const DLTensor *tensor : args_) {
    uint64_t bytes = tensor ? tensor->dtype.bits / 8u : 0;
    for (int i = 0; tensor && i < tensor->ndim; ++i) bytes *= static_cast<uint64_t>(tensor->shape[i]);
    bytes_ += bytes;
  }
  return long_run_ || bytes_ > 8 * short_bytes_;
}

void Runner::note_time() {
  const Clock::duration took = Clock::now() - begun_;
  has_run_ = true;
  long_run_ = took > kLong;
  if (!long_run_) short_bytes_ = std::max(short_bytes_, bytes_);
  quick_runs_ = took < kQuick && !program_->may_wait ? quick_runs_ + 1 : 0;
}

// Until no run is in flight; what it came to. Raises what a signal's handler does, and leaves the run as it is.
kiln_error *Runner::land() {
  kiln_error *error = nullptr;
  for (uint32_t over = 0; !over && !error;) {
    {
      nb::gil_scoped_release unlocked;
      const Clock::time_point looked = Clock::now();
      for (Clock::time_point now = looked; now - looked < kBetweenSignals; now = Clock::now()) {
        error = kiln_call_poll(call_.get(), &over);
        if (error || over) break;
        pause(now - begun_);
      }
    }
    if (error || over) break;
    if (PyErr_CheckSignals() || restore_signal()) leave();
  }
  in_flight_ = false;
  return error;
}

void Runner::leave() {
  nb::python_error raised;  // what the handler did
  kiln_error_destroy(kiln_call_cancel(call_.get()));
  if (!left_)
    for (PyObject *object : given_) made_.push_back(nb::borrow(object));
  left_ = true;
  descriptors_.set_known(false);
  quick_runs_ = 0;
  throw raised;
}

void Runner::settle() {
  if (!left_) return;
  kiln_error_destroy(land());
  left_ = false;
  forget();
}

bool Runner::is_free() {
  if (!left_) return true;
  uint32_t over = 0;
  kiln_error *error = kiln_call_poll(call_.get(), &over);
  if (!error && !over) return false;
  kiln_error_destroy(error);
  in_flight_ = left_ = false;
  forget();
  return true;
}

void Runner::start(PyObject *const *args, size_t count, PyObject *names, uint64_t stream) {
  Given given(*this);
  take_arguments(args, count, names);
  for (size_t output : free_outputs_)
    if (outputs_[output].packed())
      raise(KILN_INVALID_ARGUMENT,
            "'" + program_->signature.outputs[output].name + "' is not row-major; a run in flight writes no copy");
  execute(KILN_RUN_ASYNC, stream);
  in_flight_ = true;
  for (PyObject *object : given_) made_.push_back(nb::borrow(object));  // until wait
}

nb::object Runner::wait() {
  Given given(*this, Given::Lands());
  if (!in_flight_ || left_) raise(KILN_INVALID_ARGUMENT, "no run of this call is in flight; start() begins one");
  forget_exception();
  kiln_error *error = nullptr;
  if (patient_) {
    error = land();
  } else {  // which runs it here, if nobody has begun to
    nb::gil_scoped_release unlocked;
    error = kiln_call_wait(call_.get());
  }
  in_flight_ = false;
  note_time();
  check(error);
  return results();
}

bool Runner::poll() {
  if (left_) return is_free();
  if (!in_flight_) return true;
  uint32_t done = 1;
  kiln_error *error = kiln_call_poll(call_.get(), &done);
  if (error) {
    in_flight_ = false;
    Given given(*this);
    raise(error);
  }
  return done;
}
}  // namespace kiln_python
