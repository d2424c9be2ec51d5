// Errors as values: Status (ok or an error) and Result<T> (a value or an error). Kiln's core throws nothing; the only
// exceptions are the standard library's (bad_alloc), caught at the ABI's border.
#pragma once
#include <cassert>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "jit/base/str.h"

namespace kiln {

// Numbers are those of KILN_* in kiln.h; a static_assert in abi/src holds them together.
enum class Code : uint32_t {
  ok = 0,
  invalid_argument = 1,
  type_mismatch = 2,
  unknown_name = 3,
  unimplemented = 4,
  invariant = 5,
  not_cached = 6,
  cancelled = 7,
  out_of_memory = 8,
  busy = 9,
  plugin_failed = 10,
  io = 11,
  corrupt = 12,
  incompatible = 13,
  no_device = 14,
  out_of_range = 15,
  internal = 16,
  exception = 17,  // of a callback's
};

// The error's content. `plugin` names the plugin at fault, if one is; `node` the node at
// fault, as its graph calls it, behind those in whose graphs it is ("loop.body_graph.y"); `cause` is the error below; `report` is a JSON
// object with what explains the failure (a lookup's outcome, say), or empty.
struct ErrorInfo {
  Code code = Code::internal;
  std::string message;
  std::string plugin;
  std::string node;
  std::string report;
  std::shared_ptr<const ErrorInfo> cause;
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : info_(std::make_shared<ErrorInfo>()) {
    info_->code = code;
    info_->message = std::move(message);
  }
  explicit Status(std::shared_ptr<ErrorInfo> info) : info_(std::move(info)) {}

  bool ok() const { return !info_; }
  Code code() const { return info_ ? info_->code : Code::ok; }
  const std::string &message() const {
    static const std::string none;
    return info_ ? info_->message : none;
  }
  const std::shared_ptr<ErrorInfo> &info() const { return info_; }

  // The same error with words before its message ("input 'x': ...").
  Status with_prefix(std::string_view prefix) && {
    if (info_) info_->message.insert(0, prefix);
    return std::move(*this);
  }
  // The same error at a node, or in a graph of that node's; at_node has its message say so: "node 'y': ...".
  Status with_node(std::string_view name) && {
    if (info_) info_->node = info_->node.empty() ? std::string(name) : str_cat(name, ".", info_->node);
    return std::move(*this);
  }
  Status at_node(std::string_view name, std::string_view more = ": ") && {
    if (info_) info_->message = str_cat("node '", name, "'", more, info_->message);
    return std::move(*this).with_node(name);
  }

 private:
  std::shared_ptr<ErrorInfo> info_;  // null: ok
};

template <class... Parts>
Status error(Code code, const Parts &...parts) {
  return Status(code, str_cat(parts...));
}
template <class... Parts>
Status invalid(const Parts &...parts) {
  return Status(Code::invalid_argument, str_cat(parts...));
}

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T v) : value_(std::move(v)) {}
  Result(Status status) : status_(std::move(status)) { assert(!status_.ok()); }

  bool ok() const { return status_.ok(); }
  const Status &status() const { return status_; }
  Status take_status() { return std::move(status_); }
  T &value() & { return *value_; }
  const T &value() const & { return *value_; }
  T &&value() && { return std::move(*value_); }
  T *operator->() { return &*value_; }
  const T *operator->() const { return &*value_; }
  T &operator*() & { return *value_; }
  const T &operator*() const & { return *value_; }

 private:
  Status status_;
  std::optional<T> value_;
};

}  // namespace kiln

#define KILN_CONCAT_(a, b) a##b
#define KILN_CONCAT(a, b) KILN_CONCAT_(a, b)
// Returns from the enclosing function (of type Status or Result) when `expr` is an error.
#define KILN_TRY(expr)                                                  \
  do {                                                                  \
    if (::kiln::Status status_ = (expr); !status_.ok()) return status_; \
  } while (0)
// KILN_ASSIGN(auto x, f()): declares or assigns x from a Result, or returns its error.
#define KILN_ASSIGN(target, expr) KILN_ASSIGN_(KILN_CONCAT(result_, __LINE__), target, expr)
#define KILN_ASSIGN_(temporary, target, expr)          \
  auto temporary = (expr);                             \
  if (!temporary.ok()) return temporary.take_status(); \
  target = std::move(temporary).value()
