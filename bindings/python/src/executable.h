// Programs, and where they come from.
#pragma once
#include <algorithm>
#include <memory>

#include "context.h"
#include "signature.h"

namespace kiln_python {
class Graph;
class Runner;

/// What all calls of a program share.
struct Program {
  nb::object context;
  ExecutableHandle handle;
  Signature signature;
  ReportHandle compile_report;  // null of what was loaded
  // Runs may call back: into host functions, ops and backends, which may want the interpreter; or may loop.
  bool may_wait = false;
  // Runs are none that may be in flight: they call the host's own ops.
  bool stays_here = false;
  // Inputs that are written by runs, by their place.
  std::vector<size_t> written;
  bool writes(size_t input) const { return std::ranges::find(written, input) != written.end(); }

  Program(nb::object context, ExecutableHandle handle, ReportHandle report, nb::handle description);
  static std::shared_ptr<Program> make(nb::object context, ExecutableHandle handle, ReportHandle report);
  nb::object describe() const;
};

/// kiln.Executable: callable, by vectorcall, whose function must come first.
struct Executable {
  vectorcallfunc vectorcall;
  std::shared_ptr<Program> program;
  std::vector<std::unique_ptr<Runner>> idle;  // as many as were in use at once
  explicit Executable(std::shared_ptr<Program> of);
  Executable(const Executable &) = delete;
  Executable &operator=(const Executable &) = delete;
  ~Executable();
};

nb::object compile(nb::handle context, Graph &graph, const nb::object &options, const nb::kwargs &keywords);
nb::object load(nb::handle context, nb::handle source, const std::string &expect_key);

/// An instance whose C++ object lies in the Python object, at `vectorcall_offset`.
template <class T, class... Arguments>
nb::object make_inline(Arguments &&...arguments) {
  nb::object made = nb::inst_alloc(nb::type<T>());
  new (nb::inst_ptr<T>(made)) T(std::forward<Arguments>(arguments)...);
  nb::inst_mark_ready(made);
  return made;
}

/// Lets instances be called by the function that is their first member: a tenth of the time of a method's call.
template <class T>
void set_vectorcall(nb::class_<T> &type) {
  nb::object probe = nb::inst_alloc(type);  // never made ready: nothing is destroyed
  auto *object = reinterpret_cast<PyTypeObject *>(type.ptr());
  object->tp_vectorcall_offset =
      reinterpret_cast<char *>(nb::inst_ptr<T>(probe)) - reinterpret_cast<char *>(probe.ptr());
  object->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
}
}  // namespace kiln_python
