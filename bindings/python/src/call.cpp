#include "call.h"

#include <algorithm>

#include "attrs.h"
#include "dtypes.h"
#include "numpy.h"
#include "overlap.h"

namespace kiln_python {
namespace {
// Larger results lie in Kiln's memory, which is recycled: fresh pages cost more than the arithmetic.
constexpr size_t kSmall = 64 << 10;

// Names of keywords are interned, but for those that a program makes.
bool is(PyObject *name, PyObject *interned) { return name == interned || PyUnicode_Compare(name, interned) == 0; }

CallHandle open_call(const Program &program, int64_t device) {
  nb::dict options;
  if (device) options["device"] = device;
  kiln_call *call = nullptr;
  check(kiln_call_open(program.handle.get(), to_options(options, nb::handle()).get(), &call));
  return CallHandle(call);
}
}  // namespace

Runner::Runner(const std::shared_ptr<Program> &program, int64_t device)
    : Runner(program, open_call(*program, device), {}) {}

// First of all the call, which waits for a run in flight: that still uses the arrays.
Runner::~Runner() { call_.reset(); }

Runner::Runner(std::shared_ptr<Program> program, CallHandle call,
               const std::vector<std::unique_ptr<BorrowedArray>> &bound)
    : program_(std::move(program)), call_(std::move(call)) {
  const Signature &signature = program_->signature;
  bound_.resize(signature.size());
  given_.resize(signature.size());
  shapes_.resize(signature.outputs.size());
  inputs_ = std::make_unique<Argument[]>(signature.inputs.size());
  outputs_ = std::make_unique<Argument[]>(signature.outputs.size());
  for (size_t i = 0; i < bound.size(); ++i)  // a clone has the parameters, and not what else is bound
    if (bound[i] && i >= signature.inputs.size() && i < signature.inputs.size() + signature.parameters.size())
      bound_[i] = std::make_unique<BorrowedArray>(bound[i]->object(), signature.slot(i).dtype, signature.slot(i).name);
  for (size_t i = 0; i < signature.inputs.size(); ++i) free_inputs_.push_back(i);
  for (size_t i = 0; i < signature.outputs.size(); ++i)
    if (signature.outputs[i].view_of < 0) free_outputs_.push_back(i);
}

void Runner::bind_all(nb::handle arrays, nb::handle keywords) {
  settle();
  for (nb::handle each : {arrays, keywords}) {
    if (each.is_none()) continue;
    nb::object items = each.attr("items")();
    for (nb::handle item : items) {
      const std::string_view name = utf8(item[0], "a slot's name");
      const int slot = program_->signature.find(name);
      if (slot < 0) raise(KILN_UNKNOWN_NAME, "there is no input, parameter or output '" + std::string(name) + "'");
      bind(static_cast<size_t>(slot), item[1]);
    }
  }
}

void Runner::bind(size_t slot, nb::handle array) {
  const Signature &signature = program_->signature;
  const Slot &told = signature.slot(slot);
  std::unique_ptr<BorrowedArray> bound;
  const bool is_output = slot >= signature.inputs.size() + signature.parameters.size();
  if (!array.is_none()) {
    bound = std::make_unique<BorrowedArray>(array, told.dtype, told.name);
    if (told.row_major && slot >= signature.inputs.size() && !is_output) bound->pack();
    if (is_output || (slot < signature.inputs.size() && bound->argument().read_only() && program_->writes(slot)))
      bound->argument().require_writable(told.name);
  }
  check(kiln_call_bind(call_.get(), static_cast<uint32_t>(slot), bound ? &bound->tensor() : nullptr));
  bound_[slot] = std::move(bound);
  descriptors_.set_known(false);
  quick_runs_ = 0;
  free_inputs_.clear();
  free_outputs_.clear();
  for (size_t i = 0; i < signature.inputs.size(); ++i)
    if (!bound_[i]) free_inputs_.push_back(i);
  const size_t first = signature.inputs.size() + signature.parameters.size();
  for (size_t i = 0; i < signature.outputs.size(); ++i)
    if (signature.outputs[i].view_of < 0 && !bound_[first + i]) free_outputs_.push_back(i);
}

void Runner::take_arguments(PyObject *const *args, size_t count, PyObject *names) {
  const Signature &signature = program_->signature;
  if (count > free_inputs_.size())
    raise(KILN_TYPE_MISMATCH, std::to_string(count) + " arrays are given, and " + std::to_string(free_inputs_.size()) +
                                  " inputs are to be given");
  for (size_t i = 0; i < count; ++i) given_[free_inputs_[i]] = args[i];
  static PyObject *out_name = PyUnicode_InternFromString("out");
  static PyObject *library_name = PyUnicode_InternFromString("library");
  PyObject *out = nullptr;
  const size_t named = names ? static_cast<size_t>(PyTuple_GET_SIZE(names)) : 0;
  for (size_t i = 0; i < named; ++i) {
    PyObject *name = PyTuple_GET_ITEM(names, static_cast<Py_ssize_t>(i)), *value = args[count + i];
    if (is(name, out_name)) {
      out = value;
    } else if (is(name, library_name)) {
      if (value != Py_None) library_ = &library_by_name(value);
    } else {
      const std::string_view text = utf8(name, "a name");
      const int slot = signature.find(text);
      if (slot < 0 || static_cast<size_t>(slot) >= signature.inputs.size() + signature.parameters.size())
        raise(KILN_UNKNOWN_NAME, "there is no input or parameter '" + std::string(text) + "'");
      const auto number = static_cast<size_t>(slot);
      if (number >= signature.inputs.size()) {
        bind(number, value);
        passing_.push_back(number);
      } else if (given_[number] || bound_[number]) {
        raise(KILN_TYPE_MISMATCH, "'" + std::string(text) + "' is given twice");
      } else {
        given_[number] = value;
      }
    }
  }
  for (size_t slot = signature.inputs.size(); slot < signature.inputs.size() + signature.parameters.size(); ++slot)
    if (!bound_[slot] && !signature.slot(slot).stored)
      raise(KILN_INVALID_ARGUMENT, "parameter '" + signature.slot(slot).name + "' is not bound: executable.bind(" +
                                       signature.slot(slot).name + "=...) gives a call that has it");
  descriptors_.begin();
  args_.clear();
  for (size_t input : free_inputs_) {
    const Slot &slot = signature.inputs[input];
    if (!given_[input]) raise(KILN_TYPE_MISMATCH, "input '" + slot.name + "' is not given");
    Argument &argument = inputs_[input];
    argument.borrow(given_[input], slot.dtype, slot.name, grad_mode_);
    if (slot.row_major) argument.pack(true);
    check_in_place(argument, slot, input);
    if (!library_) library_ = argument.library();
    descriptors_.add(argument.tensor());
    args_.push_back(&argument.tensor());
  }
  given_out_ = out && out != Py_None;
  if (given_out_) take_outputs(out);
}

// What is written, or given back as a view, must be the caller's memory itself.
void Runner::check_in_place(const Argument &argument, const Slot &slot, size_t input) {
  const bool ours = argument.packed() || !argument.library();  // a copy, or a number
  if (ours && (slot.viewed || program_->writes(input)))
    raise(KILN_INVALID_ARGUMENT,
          "'" + slot.name + "' is written or viewed where it lies: an array that is row-major was expected");
  if (argument.read_only() && program_->writes(input)) argument.require_writable(slot.name);
}

void Runner::take_outputs(PyObject *out) {
  const Signature &signature = program_->signature;
  const size_t first = signature.inputs.size() + signature.parameters.size();
  const bool is_sequence = PyTuple_Check(out) || PyList_Check(out);
  PyObject **items = is_sequence ? PySequence_Fast_ITEMS(out) : &out;
  const auto count = is_sequence ? static_cast<size_t>(PySequence_Fast_GET_SIZE(out)) : 1;
  if (count != free_outputs_.size())
    raise(KILN_TYPE_MISMATCH, "out has " + std::to_string(count) + " arrays, and there are " +
                                  std::to_string(free_outputs_.size()) + " outputs");
  for (size_t i = 0; i < count; ++i) {
    const size_t output = free_outputs_[i];
    PyObject *object = items[i];
    if (object == Py_None) {
      args_.push_back(nullptr);
      descriptors_.add_none();
      continue;
    }
    const Slot &slot = signature.outputs[output];
    Argument &argument = outputs_[output];
    argument.borrow(object, 0, slot.name, grad_mode_);
    argument.require_writable(slot.name);
    if (slot.row_major) argument.pack(false);
    if (argument.packed()) argument.require_apart(slot.name, object);  // of others, Kiln asks
    given_[first + output] = object;  // the tuple is the caller's, and so is what it holds
    descriptors_.add(argument.tensor());
    args_.push_back(&argument.tensor());
  }
  for (size_t i = 0; i < count; ++i)
    if (items[i] != Py_None && outputs_[free_outputs_[i]].packed()) check_packed(free_outputs_[i]);
}

// What Kiln asks of all that a run writes, of an output that is written after the run: it is alone where it lies.
// Inputs that are only read are done with then.
void Runner::check_packed(size_t output) {
  const Signature &signature = program_->signature;
  const size_t first = signature.inputs.size() + signature.parameters.size();
  for (size_t slot = 0; slot < signature.size(); ++slot) {
    const bool is_input = slot < signature.inputs.size();
    if (slot == first + output || (is_input && !program_->writes(slot))) continue;
    const Argument *other = bound_[slot] ? &bound_[slot]->argument() : nullptr;
    if (!other && given_[slot]) other = is_input ? &inputs_[slot] : &outputs_[slot - first];
    if (other && may_overlap(outputs_[output].borrowed(), other->borrowed()))
      raise(KILN_INVALID_ARGUMENT, "output '" + signature.outputs[output].name + "' overlaps '" +
                                       signature.slot(slot).name + "'; a run writes it");
  }
}

// Small results of NumPy's lie in memory of its own, if their shapes are known from the last run.
bool Runner::makes_outputs() const {
  const Signature &signature = program_->signature;
  if (library_ && library_->kind != Library::Kind::kNumpy) return false;
  if (!descriptors_.same_so_far()) return false;
  return std::ranges::all_of(free_outputs_, [&](size_t output) {
    if (shapes_[output].empty() || !signature.outputs[output].sized_by_inputs) return false;
    size_t bytes = dtype_of(signature.outputs[output].dtype).bytes;
    for (size_t i = 1; i < shapes_[output].size(); ++i) bytes *= static_cast<size_t>(shapes_[output][i]);
    return bytes <= kSmall;
  });
}

// Outputs that the caller does not give: memory of NumPy's, or Kiln's own.
void Runner::make_outputs() {
  const Signature &signature = program_->signature;
  const size_t first = signature.inputs.size() + signature.parameters.size();
  const bool make = makes_outputs();
  for (size_t output : free_outputs_) {
    if (!make) {
      args_.push_back(nullptr);
      descriptors_.add_none();
      continue;
    }
    const std::vector<int64_t> &shape = shapes_[output];  // its rank comes first
    made_.push_back(numpy::make(signature.outputs[output].dtype, static_cast<int>(shape.size() - 1), shape.data() + 1));
    given_[first + output] = made_.back().ptr();
    outputs_[output].borrow(made_.back().ptr(), 0, signature.outputs[output].name, grad_mode_);
    descriptors_.add(outputs_[output].tensor());
    args_.push_back(&outputs_[output].tensor());
  }
}

bool Runner::same_as_last() {
  if (!descriptors_.end() || args_.size() != free_inputs_.size() + free_outputs_.size()) return false;
  data_.clear();
  for (const DLTensor *tensor : args_)
    data_.push_back(tensor ? static_cast<char *>(tensor->data) + tensor->byte_offset : nullptr);
  return true;
}

// Torch's tensors that the run writes say so, as they do when torch writes them: what was saved of them for a gradient,
// or bound, is known to be stale.
void Runner::count_versions() {
  const size_t first = program_->signature.inputs.size() + program_->signature.parameters.size();
  const auto count = [](const Argument &argument, PyObject *object) {
    if (argument.library() && argument.library()->is_torch) increment_version(object);
  };
  for (const size_t input : program_->written)
    bound_[input] ? count(bound_[input]->argument(), bound_[input]->object().ptr())
                  : count(inputs_[input], given_[input]);
  for (size_t i = 0; i < program_->signature.outputs.size(); ++i) {
    if (bound_[first + i])
      count(bound_[first + i]->argument(), bound_[first + i]->object().ptr());
    else if (given_out_ && given_[first + i])
      count(outputs_[i], given_[first + i]);
  }
}

void Runner::execute(uint32_t flags, uint64_t stream) {
  count_versions();
  const bool same = same_as_last();
  if (!same) quick_runs_ = 0;
  const auto run = [&](uint32_t how) {
    kiln_run_options options{};
    options.struct_size = sizeof options;
    options.flags = how;
    options.stream = stream;
    const kiln_run_options *given = how || stream ? &options : nullptr;
    return same ? kiln_call_run_data(call_.get(), data_.data(), data_.size(), given)
                : kiln_call_run(call_.get(), args_.data(), args_.size(), given);
  };
  kiln_error *error = nullptr;
  if (same && quick_runs_ >= 2 && !flags) {
    error = run(0);
  } else {
    forget_exception();
    const bool is_long = expects_long(same);
    const bool may_leave = is_long && !flags && !stream && !program_->stays_here;
    begun_ = Clock::now();
    if (!may_leave || !run_apart(run, error)) {
      patient_ = is_long || !has_run_;
      {
        nb::gil_scoped_release unlocked;
        begun_ = Clock::now();
        error = run(flags | (patient_ && !(flags & KILN_RUN_ASYNC) ? KILN_RUN_STEPS : 0));
      }
      if (may_leave && !error) program_->stays_here = true;
    }
    if (!(flags & KILN_RUN_ASYNC)) note_time();
  }
  if (error) {
    descriptors_.set_known(false);
    quick_runs_ = 0;
    raise(error);
  }
  if (given_out_ && !(flags & KILN_RUN_ASYNC))
    for (size_t output : free_outputs_)
      if (outputs_[output].packed()) outputs_[output].unpack();
  if (same) return;
  descriptors_.set_known(true);
  for (auto &shape : shapes_) shape.clear();
  if (flags & KILN_RUN_ASYNC) return;  // whose shapes are not known yet
  const size_t first = program_->signature.inputs.size() + program_->signature.parameters.size();
  for (size_t output : free_outputs_) {
    const auto dims = list<int64_t>(kiln_call_dims, call_.get(), static_cast<uint32_t>(first + output));
    shapes_[output].assign(1, static_cast<int64_t>(dims.size()));
    shapes_[output].insert(shapes_[output].end(), dims.begin(), dims.end());
  }
}

nb::object Runner::result(size_t index) {
  const Signature &signature = program_->signature;
  const size_t slot = signature.inputs.size() + signature.parameters.size() + index;
  if (bound_[slot]) return bound_[slot]->object();
  if (given_[slot]) return nb::borrow(given_[slot]);
  const Library &library = library_ ? *library_ : default_library();
  const int view_of = signature.outputs[index].view_of;
  if (view_of >= 0) {
    const auto input = static_cast<size_t>(view_of);
    const DLTensor *tensor = nullptr;
    check(kiln_call_output(call_.get(), static_cast<uint32_t>(slot), &tensor));
    const Argument &argument = bound_[input] ? bound_[input]->argument() : inputs_[input];
    nb::object owner = bound_[input] ? bound_[input]->object() : nb::borrow(given_[input]);
    return hand_over(viewed(*tensor, owner, argument.read_only() ? DLPACK_FLAG_BITMASK_READ_ONLY : 0), library);
  }
  DLManagedTensorVersioned *tensor = nullptr;
  check(kiln_call_take(call_.get(), static_cast<uint32_t>(slot), &tensor));
  return hand_over(managed(tensor), library);
}

nb::object Runner::results() {
  const size_t count = program_->signature.outputs.size();
  if (count == 1) return result(0);
  nb::object all = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(count)));
  for (size_t i = 0; i < count; ++i) PyTuple_SET_ITEM(all.ptr(), static_cast<Py_ssize_t>(i), result(i).release().ptr());
  return all;
}

void Runner::forget() noexcept {
  for (size_t i = 0; i < program_->signature.inputs.size(); ++i) inputs_[i].release();
  for (size_t i = 0; i < program_->signature.outputs.size(); ++i) outputs_[i].release();
  std::fill(given_.begin(), given_.end(), nullptr);
  made_.clear();
  library_ = nullptr;
  grad_mode_ = {};
  while (!passing_.empty()) {
    const size_t slot = passing_.back();
    passing_.pop_back();
    kiln_error_destroy(kiln_call_bind(call_.get(), static_cast<uint32_t>(slot), nullptr));
    bound_[slot] = nullptr;
  }
}

nb::object Runner::run(PyObject *const *args, size_t count, PyObject *names, uint32_t flags) {
  // All is bound, and the last runs were quick: nothing is to be looked at.
  if (!count && !names && !flags && quick_runs_ >= 2 && free_inputs_.empty() && free_outputs_.empty() && !busy_ &&
      descriptors_.is_known()) {
    count_versions();
    if (kiln_error *error = kiln_call_run_data(call_.get(), nullptr, 0, nullptr)) {
      descriptors_.set_known(false);
      raise(error);
    }
    return results();
  }
  Given given(*this);
  take_arguments(args, count, names);
  if (!given_out_) make_outputs();
  execute(flags);
  return results();
}

namespace {
// Calls of C's have no exceptions: those of C++ become Python's here.
template <class Body>
PyObject *barrier(Body body) noexcept {
  try {
    return body().release().ptr();
  } catch (nb::python_error &error) {
    error.restore();
  } catch (const std::bad_alloc &) {
    PyErr_NoMemory();
  } catch (const std::exception &error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

PyObject *call_call(PyObject *self, PyObject *const *args, size_t count, PyObject *names) {
  return barrier([&] { return nb::inst_ptr<Call>(self)->runner.run(args, PyVectorcall_NARGS(count), names); });
}
}  // namespace

PyObject *call_executable(PyObject *self, PyObject *const *args, size_t count, PyObject *names) {
  return barrier([&] {
    Executable &executable = *nb::inst_ptr<Executable>(self);
    std::unique_ptr<Runner> runner;
    for (size_t idle = executable.idle.size(); idle-- > 0 && !runner;) {
      std::unique_ptr<Runner> last = std::move(executable.idle.back());
      executable.idle.pop_back();
      if (last->is_free())
        runner = std::move(last);
      else
        executable.idle.insert(executable.idle.begin(), std::move(last));
    }
    if (!runner) runner = std::make_unique<Runner>(executable.program);
    struct Back {
      Executable &to;
      std::unique_ptr<Runner> &runner;
      ~Back() { to.idle.push_back(std::move(runner)); }
    } back{executable, runner};
    return runner->run(args, PyVectorcall_NARGS(count), names);
  });
}

Call::Call(const std::shared_ptr<Program> &program, int64_t device) : vectorcall(call_call), runner(program, device) {}
Call::Call(std::shared_ptr<Program> program, CallHandle clone, const std::vector<std::unique_ptr<BorrowedArray>> &bound)
    : vectorcall(call_call), runner(std::move(program), std::move(clone), bound) {}

void add_call(nb::module_ &module) {
  static const PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void *>(PyVectorcall_Call)}, {0, nullptr}};
  nb::class_<Call> type(module, "Call", nb::is_final(), nb::is_weak_referenceable(), nb::type_slots(slots),
                        "A program with arrays bound to some of its slots: parameters once, inputs and outputs if one "
                        "likes. Calling it with the other inputs gives its outputs. One thread at a time.");
  const auto split = [](const nb::args &args, const nb::kwargs &keywords) {
    std::vector<PyObject *> all;
    for (nb::handle each : args) all.push_back(each.ptr());
    nb::list names;
    for (auto [name, value] : keywords) {
      names.append(name);
      all.push_back(value.ptr());
    }
    return std::pair(all, nb::tuple(names));
  };
  type.def(
          "bind",
          [](Call &self, const nb::object &arrays, const nb::kwargs &keywords) {
            self.runner.bind_all(arrays, keywords);
          },
          nb::arg("arrays").none() = nb::none(), nb::arg("keywords"),
          "Binds arrays by the names of slots, without a copy: they must stay as they are, parameters with their "
          "values. "
          "None unbinds.")
      .def(
          "clone",
          [](Call &self) {
            kiln_call *clone = nullptr;
            check(kiln_call_clone(self.runner.settled(), &clone));
            nb::object made = nb::inst_alloc(nb::type<Call>());
            new (nb::inst_ptr<Call>(made)) Call(self.runner.shared_program(), CallHandle(clone), self.runner.bound());
            nb::inst_mark_ready(made);
            return made;
          },
          "A call for another thread, which shares the parameters and what was prepared of them.")
      .def(
          "save",
          [](Call &self, nb::handle path) {
            const auto text = nb::cast<std::string>(package("os").attr("fspath")(path));
            kiln_call *call = self.runner.settled();
            kiln_error *error = nullptr;
            {
              nb::gil_scoped_release unlocked;
              error = kiln_call_save(call, text.data(), text.size(), nullptr);
            }
            check(error);
          },
          nb::arg("path"),
          "Writes the artifact and the bound parameters, as kernels take them, into one file: calls of what kiln.load "
          "makes of it have them bound.")
      .def(
          "start",
          [split](Call &self, const nb::args &args, uint64_t stream, const nb::kwargs &keywords) {
            auto [all, names] = split(args, keywords);
            self.runner.start(all.data(), args.size(), names.ptr(), stream);
          },
          nb::arg("inputs"), nb::kw_only(), nb::arg("stream") = 0, nb::arg("keywords"),
          "Begins a run, and returns while it is in flight; wait() gives its outputs. `stream`: a CUstream's number, "
          "of a GPU's.")
      .def(
          "wait", [](Call &self) { return self.runner.wait(); },
          "Waits for the run in flight; its outputs. Ctrl-C ends the wait at once, and the run as soon as it can be.")
      .def(
          "done", [](Call &self) { return self.runner.poll(); }, "Whether no run is in flight any more.")
      .def(
          "times",
          [split](Call &self, const nb::args &args, const nb::kwargs &keywords) {
            auto [all, names] = split(args, keywords);
            self.runner.run(all.data(), args.size(), names.ptr(), KILN_RUN_STEPS);
            kiln_report *report = nullptr;
            check(kiln_call_report(self.runner.settled(), &report));
            return nb::object(to_python(ReportHandle(report))["steps"]);
          },
          "Runs, and tells how long each step took: what, runs and ns of each.")
      .def(
          "report",
          [](Call &self) {
            kiln_report *report = nullptr;
            check(kiln_call_report(self.runner.settled(), &report));
            return to_python(ReportHandle(report));
          },
          "Memory, entry, and after times() those of the steps, as a dict.")
      .def("__reduce__", [](Call &) -> nb::object {
        raise(KILN_INVALID_ARGUMENT,
              "a kiln.Call cannot be pickled: it has memory bound. Pickle its executable and bind anew");
      });
  set_vectorcall(type);
}
}  // namespace kiln_python
