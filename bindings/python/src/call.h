// One call object of Kiln's and the arrays that it is given: the way of every run.
#pragma once
#include <chrono>

#include "arrays.h"
#include "descriptors.h"
#include "executable.h"

namespace kiln_python {
/// One thread at a time: a second one is refused.
class Runner {
 public:
  explicit Runner(const std::shared_ptr<Program> &program, int64_t device = 0);
  Runner(std::shared_ptr<Program> program, CallHandle clone, const std::vector<std::unique_ptr<BorrowedArray>> &bound);

  ~Runner();
  Runner(const Runner &) = delete;
  Runner &operator=(const Runner &) = delete;

  /// Inputs that are not bound by place, then by name; `out` and `library` by name.
  nb::object run(PyObject *const *args, size_t count, PyObject *names, uint32_t flags = 0);
  /// Binds arrays by the names of slots; None unbinds.
  void bind_all(nb::handle arrays, nb::handle keywords);
  void bind(size_t slot, nb::handle array);
  void start(PyObject *const *args, size_t count, PyObject *names, uint64_t stream);
  nb::object wait();
  bool poll();

  /// Whether nothing that Ctrl-C left is under way any more.
  bool is_free();
  /// The call; first, what Ctrl-C left is waited for.
  kiln_call *settled() {
    settle();
    return call_.get();
  }
  const std::shared_ptr<Program> &shared_program() const { return program_; }
  const std::vector<std::unique_ptr<BorrowedArray>> &bound() const { return bound_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Given;
  void take_arguments(PyObject *const *args, size_t count, PyObject *names);
  void check_in_place(const Argument &argument, const Slot &slot, size_t input);
  void take_outputs(PyObject *out);
  void check_packed(size_t output);
  bool makes_outputs() const;
  void make_outputs();
  bool same_as_last();
  void count_versions();
  void execute(uint32_t flags, uint64_t stream = 0);

  // flight.cpp
  bool expects_long(bool same);
  void note_time();
  // On Kiln's thread for runs in flight, so that Ctrl-C can leave it there. False: that refuses, and nothing has run.
  template <class Run>
  bool run_apart(Run run, kiln_error *&error);
  kiln_error *land();
  void settle();
  [[noreturn]] void leave();
  nb::object results();
  nb::object result(size_t index);
  void forget() noexcept;

  std::shared_ptr<Program> program_;
  CallHandle call_;
  std::vector<std::unique_ptr<BorrowedArray>> bound_;  // by slot; null: not bound
  std::vector<size_t> free_inputs_, free_outputs_;     // that are not bound, by their place in the signature
  std::unique_ptr<Argument[]> inputs_, outputs_;
  std::vector<PyObject *> given_;       // objects of inputs and outputs by slot, borrowed but for those in made_
  std::vector<nb::object> made_;        // outputs that we made for this run
  std::vector<size_t> passing_;         // parameters that are bound for this run alone
  std::vector<const DLTensor *> args_;  // as kiln_call_run takes them
  std::vector<void *> data_;            // as kiln_call_run_data takes them
  Descriptors descriptors_;
  std::vector<std::vector<int64_t>> shapes_;  // of outputs, in the last run; empty: not known
  const Library *library_ = nullptr;
  GradMode grad_mode_;       // of torch, in this run
  int quick_runs_ = 0;       // of these descriptors, one after the other, that took less than kQuick
  Clock::time_point begun_;  // the last one
  bool has_run_ = false;
  bool long_run_ = false;         // the last one took so long that one may want to end it
  bool patient_ = false;          // the one in flight may
  uint64_t bytes_ = 0;            // of the last one's arrays
  uint64_t short_bytes_ = 32768;  // as many were over soon
  bool busy_ = false, given_out_ = false, in_flight_ = false;
  bool left_ = false;  // Ctrl-C came while a run was in flight, which is not over
};

// While a run is under way: what it was given is let go at its end, however it ends.
struct Runner::Given {
  explicit Given(Runner &runner);
  /// Of a run in flight, for who waits for it.
  struct Lands {};
  Given(Runner &runner, Lands);
  Given(const Given &) = delete;
  Given &operator=(const Given &) = delete;
  ~Given() {
    if (!runner_.in_flight_) runner_.forget();
    runner_.busy_ = false;
  }
  Runner &runner_;
};

template <class Run>
bool Runner::run_apart(Run run, kiln_error *&error) {
  {
    nb::gil_scoped_release unlocked;
    error = run(KILN_RUN_ASYNC);
  }
  if (error && kiln_error_code(error) == KILN_INVALID_ARGUMENT) {
    // An op of the host's that wants its threads; or what a run here says as well.
    kiln_error_destroy(std::exchange(error, nullptr));
    return false;
  }
  in_flight_ = !error;
  if (in_flight_) error = land();
  return true;
}

/// kiln.Call: callable, by vectorcall, whose function must come first.
struct Call {
  vectorcallfunc vectorcall;
  Runner runner;
  explicit Call(const std::shared_ptr<Program> &program, int64_t device = 0);
  Call(std::shared_ptr<Program> program, CallHandle clone, const std::vector<std::unique_ptr<BorrowedArray>> &bound);
};

/// Of kiln.Executable: takes an idle runner, or makes one.
PyObject *call_executable(PyObject *self, PyObject *const *args, size_t count, PyObject *names);
}  // namespace kiln_python
