#include "abi/src/error.h"

#include <unordered_set>

#include "abi/src/entry.h"
#include "jit/base/process.h"
#include "jit/base/utf8.h"

namespace kiln::abi {

namespace {

// Handed out when there is no memory for another one. Immutable; destroying it does nothing.
kiln_error out_of_memory_error;

// All others. It holds no pointers, so that a leak checker sees what a host forgets.
struct Living {
  std::mutex mutex;
  std::unordered_set<uintptr_t> hidden;
  const AtFork at_fork{{.before = [this] { mutex.lock(); },
                        .in_parent = [this] { mutex.unlock(); },
                        .in_child = [this] { mutex.unlock(); }}};

  static uintptr_t hide(const void *at) { return ~reinterpret_cast<uintptr_t>(at); }
};
Living &living = *new Living;  // made as the library is loaded, when no lock is held; never destroyed

thread_local std::string sink_failure;  // empty: none
constexpr size_t longest_message = 10000;
constexpr std::string_view no_error = "this is no kiln_error, or one that was destroyed";

// Messages are one line of UTF-8, whatever names and paths they tell. Its cause becomes one when it is asked for: there
// may be many below, and few ask.
std::unique_ptr<kiln_error> make_error(std::shared_ptr<ErrorInfo> info) {
  auto made = std::make_unique<kiln_error>();
  if (std::string shown = printable(info->message, longest_message); shown != info->message) {
    info = std::make_shared<ErrorInfo>(*info);
    info->message = std::move(shown);
  }
  if (!info->report.empty()) {
    made->report = make_report(info->report);
    made->report->is_view = true;
  }
  made->info = std::move(info);
  return made;
}

const kiln_error *cause_of(const kiln_error &error) {
  if (!error.info || !error.info->cause) return nullptr;
  kiln_error *known = error.cause;
  if (known) return known;
  std::unique_ptr<kiln_error> made = make_error(std::make_shared<ErrorInfo>(*error.info->cause));
  made->is_cause = true;
  return error.cause.compare_exchange_strong(known, made.get()) ? made.release() : known;
}

// One after the other: a chain may be longer than the stack is deep.
void destroy(kiln_error *error) {
  while (error) {
    std::shared_ptr<const ErrorInfo> info = std::move(error->info);
    delete std::exchange(error, error->cause.load());
    while (info && info.use_count() == 1) info = std::shared_ptr<const ErrorInfo>(info->cause);
  }
}

}  // namespace

kiln_error *out_of_memory() noexcept { return &out_of_memory_error; }

bool is_error(const kiln_error *error) noexcept {
  if (error == &out_of_memory_error) return true;
  const std::lock_guard lock(living.mutex);
  return living.hidden.contains(Living::hide(error));
}

kiln_error *to_error(const Status &status) noexcept {
  try {
    return make_error(status.info()).release();
  } catch (...) {
    return out_of_memory();
  }
}

Status take_status(kiln_error *error) {
  if (!error) return {};
  if (!is_error(error))
    return kiln::error(Code::plugin_failed, "returned what is not a kiln_error, or one that was destroyed");
  if (error->is_cause)
    return kiln::error(Code::plugin_failed, "returned the cause of another error, which is that one's");
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
  Status status = call_pass(callback);
  if (status.code() == Code::exception) {
    auto info = std::make_shared<ErrorInfo>(*status.info());
    info->code = Code::plugin_failed;
    return Status(std::move(info));
  }
  return status;
}

Status call_pass(const std::function<kiln_error *()> &callback) {
  try {
    const HostFloats floats;
    const InCallback in_callback;
    return take_status(callback());
  } catch (const std::bad_alloc &) {
    return kiln::error(Code::out_of_memory, "out of memory");
  } catch (const std::exception &exception) {
    return kiln::error(Code::exception, "it threw an exception: ", printable(exception.what()));
  } catch (...) {
    return kiln::error(Code::exception, "it threw an exception");
  }
}

}  // namespace kiln::abi

using namespace kiln;
using namespace kiln::abi;

void *kiln_error::operator new(size_t bytes) {
  std::unique_ptr<void, void (*)(void *)> made(Kept::operator new(bytes), Kept::operator delete);
  const std::lock_guard lock(living.mutex);
  living.hidden.insert(Living::hide(made.get()));
  return made.release();
}

void kiln_error::operator delete(void *at) noexcept {
  {
    const std::lock_guard lock(living.mutex);
    living.hidden.erase(Living::hide(at));
  }
  Kept::operator delete(at);  // so that the next error is not where this one was
}

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
  if (!is_error(error)) return KILN_INTERNAL;
  return error->info ? static_cast<uint32_t>(error->info->code) : KILN_OUT_OF_MEMORY;
}

void kiln_error_message(const kiln_error *error, kiln_text *out) {
  if (!out) return;
  *out = text_view("");
  if (!error) return;
  if (!is_error(error)) return void(*out = text_view(no_error));
  *out = text_view(error->info ? std::string_view(error->info->message) : "out of memory");
}

void kiln_error_plugin(const kiln_error *error, kiln_text *out) {
  if (out) *out = text_view(error && is_error(error) && error->info ? std::string_view(error->info->plugin) : "");
}

void kiln_error_node(const kiln_error *error, kiln_text *out) {
  if (out) *out = text_view(error && is_error(error) && error->info ? std::string_view(error->info->node) : "");
}

const kiln_error *kiln_error_cause(const kiln_error *error) {
  return answer<const kiln_error *>(out_of_memory(),
                                    [&] { return error && is_error(error) ? cause_of(*error) : nullptr; });
}

const kiln_report *kiln_error_report(const kiln_error *error) {
  return error && is_error(error) ? error->report.get() : nullptr;
}

void kiln_error_destroy(kiln_error *error) {
  if (error && error != out_of_memory() && is_error(error) && !error->is_cause) destroy(error);
}
