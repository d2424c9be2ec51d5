// The border: every exported function that can fail runs its body in entry(), which lets no exception out and computes
// in the default floating-point environment, and checks what it was given with the Checks that it receives.
//
//   kiln_error *kiln_graph_nodes(const kiln_graph *graph, ...) {
//     return entry(__func__, [&](const Checks &check) -> Status {
//       KILN_TRY(check.handle(graph, "graph"));
//       ...
#pragma once
#include <algorithm>
#include <cstring>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "abi/src/error.h"
#include "abi/src/handles.h"
#include "jit/base/float_environment.h"
#include "jit/base/stack.h"

namespace kiln::abi {

class Checks {
 public:
  explicit Checks(const char *function) : function_(function) {}

  template <class... Parts>
  Status fail(const Parts &...parts) const {
    return invalid(function_, ": ", parts...);
  }
  const char *function() const { return function_; }
  Status no_stack() const;  // and no thread to be had with a larger one
  template <class Handle>
  Status handle(const Handle *handle, const char *name) const {
    if (!handle) return fail(name, " is NULL");
    if (!handle->magic.ok()) return fail(name, " is a handle of another type, or was destroyed");
    if constexpr (requires { handle->callback.what; }) return running(&handle->callback, name);
    if constexpr (requires { handle->callback->what; }) return running(handle->callback, name);
    return {};
  }
  // Whether the callback that a handle was given to, if it was to one, runs on this thread, and was not cancelled.
  Status running(const Callback *callback, const char *name) const {
    if (!callback) return {};
    if (!callback->is_here()) return fail(name, " is of a ", callback->what, " that runs on another thread");
    const std::string_view why = callback->cancelled_by();
    return why.empty() ? Status() : error(Code::cancelled, function_, ": ", why);
  }
  template <class Handle>
  Status optional_handle(const Handle *given, const char *name) const {
    return given ? handle(given, name) : Status();
  }
  // A graph whose ops and expressions are those of this context.
  Status own_graph(const kiln_graph *graph, const Context &context, const char *name) const {
    KILN_TRY(handle(graph, name));
    if (graph->context.get() == &context) return {};
    return fail(name, " is of another context; write it there and parse it here");
  }
  Status pointer(const void *pointer, const char *name) const { return pointer ? Status() : fail(name, " is NULL"); }
  // An array of `count`; NULL when there are none is fine.
  template <class T>
  Result<std::span<const T>> array(const T *data, uint64_t count, const char *name) const {
    if (!data && count) return fail(name, " is NULL, its count is ", count);
    return std::span<const T>(data, data ? count : 0);
  }
  // UTF-8, without NUL bytes: they would cut keys and paths short.
  Result<std::string_view> text(const char *data, uint64_t size, const char *name) const;
  Result<std::string_view> text(const kiln_text &t, const char *name) const { return text(t.data, t.size, name); }
  // UTF-8 of one line.
  Result<std::string_view> line(const char *data, uint64_t size, const char *name) const;
  // A file's name: any bytes but NUL, not empty.
  Result<std::string> path(const char *data, uint64_t size, const char *name) const;
  // A struct that may be shorter or longer than ours: copies what both know, refuses a non-zero tail.
  template <class T>
  Result<T> request(const T *in, const char *name) const {
    static_assert(offsetof(T, struct_size) == 0);
    KILN_TRY(pointer(in, name));
    T copy{};
    KILN_TRY(copy_request(in, in->struct_size, &copy, sizeof copy, name));
    if (in->struct_size % alignof(T) != 0)
      return fail(name, "->struct_size is ", in->struct_size, ", which ends within a member");
    return copy;
  }

 private:
  Status copy_request(const void *in, uint32_t in_size, void *out, size_t out_size, const char *name) const;
  const char *function_;
};

template <class Body>
kiln_error *entry(const char *function, Body &&body) noexcept {
  const DefaultFloats floats;
  try {
    Status status = body(Checks(function));
    return status.ok() ? nullptr : to_error(sink_failure_or(std::move(status)));
  } catch (const std::bad_alloc &) {
    return out_of_memory();
  } catch (const std::exception &exception) {
    try {
      return to_error(error(Code::internal, function, ": ", exception.what()));
    } catch (...) {
      return out_of_memory();
    }
  } catch (...) {
    return out_of_memory();
  }
}

// The same for what recurses over graphs or expressions: where the host's thread has a small stack, it waits while
// another one does the work.
template <class Body>
kiln_error *deep_entry(const char *function, Body &&body) noexcept {
  kiln_error *result = nullptr;
  const std::thread::id caller = Acting::id();
  const uint32_t compiles = Acting::here().compiles;
  const auto work = [&] {
    const ActingFor acting(caller, compiles);
    result = entry(function, body);
  };
  if (on_deep_stack(work)) return result;
  return entry(function, [](const Checks &check) { return check.no_stack(); });
}

// For functions that answer without an error: `fallback` when anything is wrong.
template <class T, class Body>
T answer(T fallback, Body &&body) noexcept {
  try {
    return body();
  } catch (...) {
    return fallback;
  }
}

inline kiln_text text_view(std::string_view text) { return {text.data(), text.size()}; }

// The protocol of (buffer, capacity, out_count): writes what fits, counts all.
template <class T>
Status write_list(const Checks &check, std::span<const T> items, T *buffer, uint64_t capacity, uint64_t *out_count) {
  KILN_TRY(check.pointer(out_count, "out_count"));
  if (capacity) KILN_TRY(check.pointer(buffer, "buffer"));
  std::copy_n(items.begin(), std::min<uint64_t>(items.size(), capacity), buffer);
  *out_count = items.size();
  return {};
}

}  // namespace kiln::abi
