#include "events.h"

namespace kiln_python {
namespace {
const char *kind_name(uint32_t kind) {
  constexpr const char *names[] = {"", "progress", "warning", "loop", "entry", "step"};
  return kind < std::size(names) ? names[kind] : "";
}

// Whether anybody reads what is told at this level; without `logging`, nobody configured it.
bool is_logged(uint32_t kind) {
  if (kind == KILN_EVENT_WARNING) return true;
  if (!PyDict_GetItemString(PyImport_GetModuleDict(), "logging")) return false;
  static PyObject *logger = nb::object(package("logging").attr("getLogger")("kiln")).release().ptr();
  return nb::cast<bool>(nb::handle(logger).attr("isEnabledFor")(10));
}

// Functions that see the events of all contexts; Python fills the list (kiln.progress).
PyObject *watchers = nullptr;

int32_t receive(void *user, uint32_t kind, const char *text, uint64_t size) {
  if (!Py_IsInitialized()) return 0;
  nb::gil_scoped_acquire locked;
  try {
    if (PyErr_CheckSignals()) throw nb::python_error();
    if (is_logged(kind))
      package("logging").attr("getLogger")("kiln").attr(kind == KILN_EVENT_WARNING ? "warning" : "debug")(
          "%s: %s", kind_name(kind), str(std::string_view(text, size)));
    for (Py_ssize_t i = 0; watchers && i < PyList_GET_SIZE(watchers); ++i)
      nb::borrow(PyList_GET_ITEM(watchers, i))(kind_name(kind), str(std::string_view(text, size)));
    nb::handle receiver(static_cast<PyObject *>(user));
    return !receiver.is_none() &&
           nb::cast<bool>(nb::bool_(receiver(kind_name(kind), str(std::string_view(text, size)))));
  } catch (...) {  // all that an event can say: cancel; raise() finds what was kept
    kiln_error_destroy(keep_current_exception());
    return 1;
  }
}

void let_go(void *user) {
  if (!Py_IsInitialized()) return;
  nb::gil_scoped_acquire locked;
  Py_DECREF(static_cast<PyObject *>(user));
}
}  // namespace

void add_events(nb::module_ &module) {
  watchers = nb::object(nb::list()).release().ptr();
  module.attr("watchers") = nb::handle(watchers);
}

Events::Events(nb::object receiver) : receiver_(std::move(receiver)) {
  sink_.struct_size = sizeof sink_;
  sink_.user = receiver_.ptr();
  sink_.event = receive;
  sink_.destroy = let_go;
}
}  // namespace kiln_python
