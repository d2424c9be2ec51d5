// What every file here needs: handles that destroy themselves, texts both ways, errors raised.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/kiln.h"

namespace kiln_python {
namespace nb = nanobind;

/// Raises the error as the kiln.Error that its code stands for, and destroys it. An exception that a callback of ours
/// kept (keep_exception) is its cause; one that only ends programs (KeyboardInterrupt, SystemExit) is raised in its
/// place.
[[noreturn]] void raise(kiln_error *error);
inline void check(kiln_error *error) {
  if (error) raise(error);
}
/// Raises kiln.InvalidArgument, kiln.TypeMismatch, ...: the class of `code`.
[[noreturn]] void raise(uint32_t code, const std::string &message);

/// Inside a callback: an error of the exception that is being handled, which is kept for whoever called Kiln.
kiln_error *keep_exception(nb::python_error &error);
/// The same for any exception; to be called in a catch block.
kiln_error *keep_current_exception();
/// Raises, as Python's error, what a callback kept if that only ends programs.
bool restore_signal();
/// Before a call that may run callbacks: forgets what an earlier one kept.
void forget_exception();

template <auto destroy>
struct Destroy {
  template <class T>
  void operator()(T *handle) const {
    destroy(handle);
  }
};
/// Executables, contexts and calls end callbacks of Python's, and may wait for threads that want the interpreter.
template <auto destroy>
struct DestroyUnlocked {
  template <class T>
  void operator()(T *handle) const {
    nb::gil_scoped_release unlocked;
    destroy(handle);
  }
};
using OptionsHandle = std::unique_ptr<kiln_options, Destroy<kiln_options_destroy>>;
using ReportHandle = std::unique_ptr<kiln_report, Destroy<kiln_report_destroy>>;
using BlobHandle = std::unique_ptr<kiln_blob, Destroy<kiln_blob_destroy>>;
using GraphHandle = std::unique_ptr<kiln_graph, Destroy<kiln_graph_destroy>>;
using EditHandle = std::unique_ptr<kiln_edit, Destroy<kiln_edit_destroy>>;
using TensorsHandle = std::unique_ptr<kiln_tensors, Destroy<kiln_tensors_destroy>>;
using ContextHandle = std::unique_ptr<kiln_context, DestroyUnlocked<kiln_context_destroy>>;
using ExecutableHandle = std::unique_ptr<kiln_executable, DestroyUnlocked<kiln_executable_destroy>>;
using CallHandle = std::unique_ptr<kiln_call, DestroyUnlocked<kiln_call_destroy>>;

inline std::string_view view(const kiln_text &text) { return {text.data, text.size}; }
inline nb::str str(std::string_view text) { return nb::str(text.data(), text.size()); }
inline nb::str str(const kiln_text &text) { return str(view(text)); }
inline kiln_text text(std::string_view text) { return {text.data(), text.size()}; }
/// The text of a str, which lives as long as the object; TypeError for another type, saying what it is of.
std::string_view utf8(nb::handle object, const char *what);

/// Functions that fill (buffer, capacity, out_count).
template <class T, class... Owner, class... Arguments>
std::vector<T> list(kiln_error *(*function)(Owner...), Arguments... arguments) {
  uint64_t count = 0;
  check(function(arguments..., nullptr, 0, &count));
  std::vector<T> all(count);
  if (count) check(function(arguments..., all.data(), count, &count));
  return all;
}

/// The report as dicts, lists, str, int, float and bool.
nb::object to_python(const kiln_report *report);
nb::object to_python(const ReportHandle &report);
nb::bytes to_bytes(const BlobHandle &blob);
std::string_view view(const BlobHandle &blob);

/// A module of the package, imported when it is first needed: "kiln._errors".
nb::module_ package(const char *module);

// What each file adds to the module.
void add_errors(nb::module_ &module);
void add_dtypes(nb::module_ &module);
void add_dims(nb::module_ &module);
void add_events(nb::module_ &module);
void add_context(nb::module_ &module);
void add_graph(nb::module_ &module);
void add_values(nb::module_ &module);
void add_executable(nb::module_ &module);
void add_call(nb::module_ &module);
void add_arrays(nb::module_ &module);
void add_tensors(nb::module_ &module);
void add_passes(nb::module_ &module);
void add_host_ops(nb::module_ &module);
void add_functions(nb::module_ &module);
}  // namespace kiln_python
