// Errors: kiln_error from Status, and back.
#pragma once
#include <kiln/kiln.h>

#include <functional>

#include "jit/base/status.h"

namespace kiln::abi {

// The caller owns the result; never null for an error.
kiln_error *to_error(const Status &status) noexcept;
kiln_error *out_of_memory() noexcept;
// Whether it is one that lives. Follows no pointer.
bool is_error(const kiln_error *error) noexcept;
// What a callback returned, as a Status; destroys the error. Null is ok.
Status take_status(kiln_error *error);
// The host's sink has thrown, on this thread: what it is called in ends as if the host had cancelled, but with this.
void note_sink_failure(std::string text);
Status sink_failure_or(Status status);
// Runs a callback that returns no error, in the host's floating-point environment. What it threw, as "OF threw an
// exception: text"; empty: nothing.
std::string thrown_by(const std::function<void()> &callback, std::string_view of);
// Runs a callback of a host's or plugin's, in the host's floating-point environment: what it returns or throws becomes
// the Status. What was thrown, there or before its language caught it (KILN_EXCEPTION), is plugin_failed.
Status call_back(const std::function<kiln_error *()> &callback);
// The same of a pass, of which it is told apart: `exception`.
Status call_pass(const std::function<kiln_error *()> &callback);

}  // namespace kiln::abi
