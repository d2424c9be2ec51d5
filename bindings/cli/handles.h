// kiln.h for C++: handles that destroy themselves, errors as exceptions, reports read by path.
#pragma once
#include <kiln/kiln.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::cli {

// What a user is told when a command fails: exit code 1.
struct Failure : std::runtime_error {
  explicit Failure(const std::string &what, uint32_t of = KILN_OK) : std::runtime_error(what), code(of) {}
  uint32_t code;  // KILN_* where an error of the library's is told
};

// Throws what the error says, with its causes, and destroys it. Does nothing for NULL.
void check(kiln_error *error);

template <auto destroy>
struct Destroy {
  template <class T>
  void operator()(T *handle) const {
    destroy(handle);
  }
};
template <class T, auto destroy>
using Handle = std::unique_ptr<T, Destroy<destroy>>;

using Context = Handle<kiln_context, kiln_context_destroy>;
using Graph = Handle<kiln_graph, kiln_graph_destroy>;
using Executable = Handle<kiln_executable, kiln_executable_destroy>;
using Call = Handle<kiln_call, kiln_call_destroy>;
using Tensors = Handle<kiln_tensors, kiln_tensors_destroy>;
using Blob = Handle<kiln_blob, kiln_blob_destroy>;

// make<Graph>(kiln_graph_parse, context, json, size): for functions whose last argument is the handle that they make.
template <class H, class Function, class... Arguments>
H make(Function function, Arguments... arguments) {
  typename H::pointer handle = nullptr;
  check(function(arguments..., &handle));
  return H(handle);
}

inline std::string_view view(const kiln_text &text) { return {text.data, text.size}; }
std::string_view view(const Blob &blob);

class Options {
 public:
  Options();
  void set(std::string_view name, int64_t value);
  void set(std::string_view name, bool value);
  void set(std::string_view name, std::string_view value);
  void set(std::string_view name, const std::vector<std::string> &values);
  void set(std::string_view name, const char *value) { set(name, std::string_view(value)); }
  const kiln_options *get() const { return handle_.get(); }

 private:
  Handle<kiln_options, kiln_options_destroy> handle_;
};

// Paths are names and indices joined by dots; see kiln_report in kiln.h. What is not there is a Failure.
class Report {
 public:
  Report() = default;
  explicit Report(kiln_report *owned) : handle_(owned) {}
  explicit operator bool() const { return handle_ != nullptr; }

  std::string text(std::string_view path) const;
  int64_t i64(std::string_view path) const;
  double f64(std::string_view path) const;
  bool boolean(std::string_view path) const;
  bool has(std::string_view path) const;
  bool has_member(std::string_view path, std::string_view key) const;  // of an object, whatever it is
  size_t count(std::string_view path) const;
  std::string key(std::string_view path, size_t index) const;
  // Of a number or a text, as a person would write it.
  std::string shown(std::string_view path) const;
  std::string json() const;

 private:
  Handle<kiln_report, kiln_report_destroy> handle_;
};

template <class Function, class... Arguments>
Report report_of(Function function, Arguments... arguments) {
  kiln_report *report = nullptr;
  check(function(arguments..., &report));
  return Report(report);
}

// Binds each tensor of the file, which stays open as long as the call is used, to the slot of its name.
void bind_all(const Call &call, const Tensors &file);

// "inputs.0.shape.1"
std::string path_of(std::string_view list, size_t index, std::string_view member = {});

}  // namespace kiln::cli
