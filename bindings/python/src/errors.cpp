// kiln_error to exceptions and back.
#include "support.h"

namespace kiln_python {
namespace {
// What a callback raised, until the call that it ran in ends. Of the thread that is inside that call.
thread_local PyObject *kept = nullptr;

nb::object take_kept() { return nb::steal(std::exchange(kept, nullptr)); }

// What is raised in a callback, for the host. An error of Kiln's that passes through one stays an error.
kiln_error *raised(const nb::python_error *exception, std::string_view message) {
  const bool is_error = exception && exception->matches(package("kiln._errors").attr("Error"));
  return kiln_error_create(is_error ? KILN_PLUGIN_FAILED : KILN_EXCEPTION, message.data(), message.size(), nullptr);
}

bool ends_programs(nb::handle exception) { return !PyErr_GivenExceptionMatches(exception.ptr(), PyExc_Exception); }

nb::object exception_of(const kiln_error *error) {
  kiln_text message, plugin, node;
  kiln_error_message(error, &message);
  kiln_error_plugin(error, &plugin);
  kiln_error_node(error, &node);
  const kiln_report *report = kiln_error_report(error);
  const kiln_error *cause = kiln_error_cause(error);
  return package("kiln._errors")
      .attr("make")(kiln_error_code(error), str(message), str(plugin), str(node),
                    report ? to_python(report) : nb::object(nb::none()),
                    cause ? exception_of(cause) : nb::object(nb::none()));
}

[[noreturn]] void raise_object(nb::handle exception) {
  PyErr_SetObject(reinterpret_cast<PyObject *>(Py_TYPE(exception.ptr())), exception.ptr());
  throw nb::python_error();
}
}  // namespace

void raise(kiln_error *error) {
  std::unique_ptr<kiln_error, Destroy<kiln_error_destroy>> owned(error);
  nb::object cause = take_kept();
  if (cause.is_valid() && ends_programs(cause)) raise_object(cause);
  nb::object exception = exception_of(error);
  if (cause.is_valid()) PyException_SetCause(exception.ptr(), cause.release().ptr());
  raise_object(exception);
}

void raise(uint32_t code, const std::string &message) {
  raise(kiln_error_create(code, message.data(), message.size(), nullptr));
}

kiln_error *keep_exception(nb::python_error &error) {
  std::string message;
  try {
    message = nb::cast<std::string>(nb::str(error.type().attr("__name__"))) + ": " +
              nb::cast<std::string>(nb::str(error.value()));
  } catch (...) {
    PyErr_Clear();
    message = "an exception that has no text";
  }
  forget_exception();
  kept = error.value().inc_ref().ptr();
  return raised(&error, message);
}

kiln_error *keep_current_exception() {
  try {
    throw;
  } catch (nb::python_error &error) {
    return keep_exception(error);
  } catch (const std::exception &error) {
    return raised(nullptr, error.what());
  } catch (...) {
    return raised(nullptr, "an unknown exception");
  }
}

bool restore_signal() {
  if (!kept || !ends_programs(kept)) return false;
  const nb::object exception = take_kept();
  PyErr_SetObject(reinterpret_cast<PyObject *>(Py_TYPE(exception.ptr())), exception.ptr());
  return true;
}

void forget_exception() { Py_CLEAR(kept); }

std::string_view utf8(nb::handle object, const char *what) {
  Py_ssize_t size = 0;
  const char *data = PyUnicode_Check(object.ptr()) ? PyUnicode_AsUTF8AndSize(object.ptr(), &size) : nullptr;
  if (!data) {
    if (PyErr_Occurred()) throw nb::python_error();
    raise(KILN_TYPE_MISMATCH, std::string(what) + " is a " + Py_TYPE(object.ptr())->tp_name + ", a str was expected");
  }
  return {data, static_cast<size_t>(size)};
}

nb::module_ package(const char *module) { return nb::module_::import_(module); }

std::string_view view(const BlobHandle &blob) {
  uint64_t size = 0;
  const void *data = kiln_blob_data(blob.get(), &size);
  return {static_cast<const char *>(data), size};
}

nb::bytes to_bytes(const BlobHandle &blob) { return nb::bytes(view(blob).data(), view(blob).size()); }

nb::object to_python(const kiln_report *report) {
  kiln_blob *json = nullptr;
  check(kiln_report_json(report, &json));
  BlobHandle owned(json);
  return package("json").attr("loads")(str(view(owned)));
}

nb::object to_python(const ReportHandle &report) { return report ? to_python(report.get()) : nb::object(nb::none()); }
}  // namespace kiln_python
