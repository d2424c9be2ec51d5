// One call object of Kiln's and the arrays that it is given: the way of every run.
#pragma once
#include "arrays.h"
#include "executable.h"

namespace kiln_python {
/// One thread at a time: a second one is refused.
class Runner {
 public:
  explicit Runner(std::shared_ptr<Program> program);
  Runner(std::shared_ptr<Program> program, CallHandle clone, const std::vector<std::unique_ptr<BorrowedArray>> &bound);

  /// Inputs that are not bound by place, then by name; `out` and `library` by name.
  nb::object run(PyObject *const *args, size_t count, PyObject *names);
  /// Binds arrays by the names of slots; None unbinds.
  void bind_all(nb::handle arrays, nb::handle keywords);
  void bind(size_t slot, nb::handle array);
  void start(PyObject *const *args, size_t count, PyObject *names);
  nb::object wait();
  bool poll();

  kiln_call *get() const { return call_.get(); }
  const std::shared_ptr<Program> &shared_program() const { return program_; }
  const std::vector<std::unique_ptr<BorrowedArray>> &bound() const { return bound_; }

 private:
  struct Given;
  void take_arguments(PyObject *const *args, size_t count, PyObject *names);
  void take_outputs(PyObject *out);
  void make_outputs();
  bool same_as_last();
  void execute(uint32_t flags);
  nb::object results();
  nb::object result(size_t index);
  void forget() noexcept;

  std::shared_ptr<Program> program_;
  CallHandle call_;
  std::vector<std::unique_ptr<BorrowedArray>> bound_;  // by slot; null: not bound
  std::vector<size_t> free_inputs_, free_outputs_;     // that are not bound, by their place in the signature
  std::unique_ptr<Argument[]> inputs_, outputs_;
  std::vector<PyObject *> given_;             // objects of inputs and outputs by slot, borrowed but for those in made_
  std::vector<nb::object> made_;              // outputs that we made for this run
  std::vector<size_t> passing_;               // parameters that are bound for this run alone
  std::vector<const DLTensor *> args_;        // as kiln_call_run takes them
  std::vector<void *> data_;                  // as kiln_call_run_data takes them
  std::vector<int64_t> last_, now_;           // descriptors, end to end
  std::vector<std::vector<int64_t>> shapes_;  // of outputs, in the last run; empty: not known
  bool known_ = false;                        // last_ is that of a run that succeeded
  const Library *library_ = nullptr;
  int quick_runs_ = 0;    // of these descriptors, one after the other, that took less than kQuick
  bool long_run_ = true;  // the last one took so long that one may want to end it, or none is known
  bool busy_ = false, given_out_ = false, in_flight_ = false;
};

/// kiln.Call: callable, by vectorcall, whose function must come first.
struct Call {
  vectorcallfunc vectorcall;
  Runner runner;
  explicit Call(std::shared_ptr<Program> program);
  Call(std::shared_ptr<Program> program, CallHandle clone, const std::vector<std::unique_ptr<BorrowedArray>> &bound);
};

/// Of kiln.Executable: takes an idle runner, or makes one.
PyObject *call_executable(PyObject *self, PyObject *const *args, size_t count, PyObject *names);
}  // namespace kiln_python
