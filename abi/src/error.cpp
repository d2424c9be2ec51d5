#include "abi/src/error.h"

#include "abi/src/entry.h"
#include "jit/base/utf8.h"

namespace kiln::abi {

namespace {

// Handed out when there is no memory for another one. Immutable; destroying it does nothing.
kiln_error out_of_memory_error;

thread_local std::string sink_failure;  // empty: none
constexpr size_t longest_message = 10000;

// Messages are one line of UTF-8, whatever names and paths they tell.
std::unique_ptr<kiln_error> make_error(std::shared_ptr<ErrorInfo> info) {
  auto made = std::make_unique<kiln_error>();
  if (std::string shown = printable(info->message, longest_message); shown != info->message) {
    info = std::make_shared<ErrorInfo>(*info);
    info->message = std::move(shown);
  }
  if (info->cause) made->cause = make_error(std::make_shared<ErrorInfo>(*info->cause));
  if (!info->report.empty()) made->report = make_report(info->report);
  made->info = std::move(info);
  return made;
}

}  // namespace

kiln_error *out_of_memory() noexcept { return &out_of_memory_error; }

kiln_error *to_error(const Status &status) noexcept {
  try {
    return make_error(status.info()).release();
  } catch (...) {
    return out_of_memory();
  }
}

Status take_status(kiln_error *error) {
  if (!error) return {};
  if (!error->magic.ok()) return kiln::error(Code::plugin_failed, "returned what is not a kiln_error");
  Status status = error->info ? Status(error->info) : kiln::error(Code::out_of_memory, "out of memory");
  kiln_error_destroy(error);
  return status;
}

void note_sink_failure(std::string text) { sink_failure = std::move(text); }

Status sink_failure_or(Status status) {
  if (status.code() != Code::cancelled || sink_failure.empty()) return status;
  return kiln::error(Code::plugin_failed, std::exchange(sink_failure, {}));
}

std::string thrown_by(const std::function<void()> &callback, std::string_view of) {
  try {
    const HostFloats floats;
    callback();
    return "";
  } catch (const std::exception &exception) {
    return str_cat(of, " threw an exception: ", printable(exception.what()));
  } catch (...) {
    return str_cat(of, " threw an exception");
  }
}

Status call_back(const std::function<kiln_error *()> &callback) {
  bool threw = false;
  return call_back(callback, threw);
}

Status call_back(const std::function<kiln_error *()> &callback, bool &threw) {
  threw = true;
  try {
    const HostFloats floats;
    const InCallback in_callback;
    kiln_error *failure = callback();
    threw = false;
    return take_status(failure);
  } catch (const std::bad_alloc &) {
    return kiln::error(Code::out_of_memory, "out of memory");
  } catch (const std::exception &exception) {
    return kiln::error(Code::plugin_failed, "it threw an exception: ", printable(exception.what()));
  } catch (...) {
    return kiln::error(Code::plugin_failed, "it threw an exception");
  }
}

}  // namespace kiln::abi

using namespace kiln;
using namespace kiln::abi;

kiln_error *kiln_error_create(uint32_t code, const char *message, uint64_t message_size, kiln_error *cause) {
  return answer(out_of_memory(), [&] {
    auto info = std::make_shared<ErrorInfo>();
    info->code = code ? static_cast<Code>(code) : Code::internal;
    if (message) info->message.assign(message, message_size);
    if (Status below = take_status(cause); !below.ok()) info->cause = below.info();
    return to_error(Status(std::move(info)));
  });
}

uint32_t kiln_error_code(const kiln_error *error) {
  if (!error) return KILN_OK;
  if (!error->magic.ok()) return KILN_INTERNAL;
  return error->info ? static_cast<uint32_t>(error->info->code) : KILN_OUT_OF_MEMORY;
}

void kiln_error_message(const kiln_error *error, kiln_text *out) {
  if (!out) return;
  *out = text_view("");
  if (error && error->magic.ok())
    *out = text_view(error->info ? std::string_view(error->info->message) : "out of memory");
}

void kiln_error_plugin(const kiln_error *error, kiln_text *out) {
  if (!out) return;
  *out = text_view("");
  if (error && error->magic.ok() && error->info) *out = text_view(error->info->plugin);
}

void kiln_error_node(const kiln_error *error, kiln_text *out) {
  if (!out) return;
  *out = text_view("");
  if (error && error->magic.ok() && error->info) *out = text_view(error->info->node);
}

const kiln_error *kiln_error_cause(const kiln_error *error) {
  return error && error->magic.ok() ? error->cause.get() : nullptr;
}

const kiln_report *kiln_error_report(const kiln_error *error) {
  return error && error->magic.ok() ? error->report.get() : nullptr;
}

void kiln_error_destroy(kiln_error *error) {
  if (error && error != out_of_memory() && error->magic.ok()) delete error;
}
