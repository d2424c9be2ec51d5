// The module's border: the C table of jit/base/codegen.h. Programs of several kernels are compiled by worker threads,
// the calling thread delivers.
#include <deque>
#include <exception>

#include "jit/base/build_id.h"
#include "jit/base/process.h"
#include "jit/cuda/device_functions.h"
#include "jit/cuda/nvrtc.h"
#include "jit/cuda/program.h"
#include "jit/cuda/source.h"

namespace kiln::cuda {
namespace {

// Of a program: large, because each pays for the prelude and for NVRTC's start; not so large that one thread has all.
// The same for any number of threads, so that equal requests make equal images.
constexpr size_t program_kernels = 16;

using Deliver = void (*)(void *user, const kiln_codegen_result *);

// A program under way: the thread writes `program`. It is joined before the others go.
struct Running {
  explicit Running(std::span<Entry> of) : entries(of) {}
  std::span<Entry> entries;
  Program program;
  std::exception_ptr thrown;
  Thread thread;
};

class Batch {
 public:
  // `delivered` counts the kernels that `to` was called for, also when run throws.
  Batch(const kiln_codegen_request &request, Deliver to, void *user, uint64_t &delivered)
      : request_(request), to_(to), user_(user), delivered_(delivered) {}

  // As kiln_codegen_table::compile.
  int32_t run() {
    std::vector<ByteSpan> kernels;
    for (uint64_t i = 0; i < request_.kernel_count; ++i)
      kernels.emplace_back(request_.kernels[i], request_.kernel_sizes[i]);
    entries_ = emit_entries(kernels);
    for (; delivered_ < request_.kernel_count; ++delivered_) {
      if (request_.cancelled && request_.cancelled(request_.user)) return 1;
      const size_t entry = entries_.of_kernel[delivered_];
      if (!(request_.want & KILN_CODEGEN_TEXT_ONLY)) wait_for(entry / program_kernels);
      deliver(entry);
    }
    return 0;
  }

 private:
  std::span<Entry> entries_of(size_t program) {
    const size_t first = program * program_kernels;
    return std::span(entries_.distinct).subspan(first, std::min(program_kernels, entries_.distinct.size() - first));
  }

  // Programs up to `program` are finished; as many as there may be threads are under way. A program is known to be
  // needed when one of its kernels is: they are asked for in order.
  void wait_for(size_t program) {
    const size_t count = (entries_.distinct.size() + program_kernels - 1) / program_kernels;
    while (programs_.size() <= program) {
      while (running_.size() < std::max(request_.threads, 1u) && programs_.size() + running_.size() < count) {
        Running &next = running_.emplace_back(entries_of(programs_.size() + running_.size()));
        next.thread = Thread::start("kiln-nvrtc", [this, &next] { compile(next); });
        if (!next.thread) compile(next);  // the system gives none
      }
      running_.front().thread.join();
      if (running_.front().thrown) std::rethrow_exception(running_.front().thrown);
      programs_.push_back(std::move(running_.front().program));
      running_.pop_front();
    }
  }

  void compile(Running &running) const {
    try {
      running.program = compile_program(running.entries, {request_.target, request_.target_size});
    } catch (...) {  // nothing may leave a thread
      running.thrown = std::current_exception();
    }
  }

  void deliver(size_t number) {
    const Entry &entry = entries_.distinct[number];
    kiln_codegen_result result{};
    result.kernel = delivered_;
    if (!entry.status.ok()) return deliver_error(entry.status, result);
    if (!(request_.want & KILN_CODEGEN_TEXT_ONLY)) {
      const Program &program = programs_[number / program_kernels];
      if (!program.status.ok()) return deliver_error(program.status, result);
      result.image = program.code.data();
      result.image_size = program.code.size();
      result.compiler = program.compiler.data();
      result.compiler_size = program.compiler.size();
    }
    result.image_number = number / program_kernels;
    result.entry = entry.name.data();
    result.entry_size = entry.name.size();
    result.use = &entry.use;
    std::string text;
    if (request_.want & KILN_CODEGEN_SOURCE) {  // together the texts are a program
      if (delivered_ == 0) text = prelude();
      text += entry.source;
    }
    result.text = text.data();
    result.text_size = text.size();
    to_(user_, &result);
  }

  void deliver_error(const Status &status, kiln_codegen_result &result) {
    result.error = status.message().data();
    result.error_size = status.message().size();
    result.error_code = static_cast<uint32_t>(status.code());
    result.error_report = status.info()->report.data();
    result.error_report_size = status.info()->report.size();
    to_(user_, &result);
  }

  const kiln_codegen_request &request_;
  const Deliver to_;
  void *const user_;
  uint64_t &delivered_;
  Entries entries_;
  std::vector<Program> programs_;  // finished, in order
  std::deque<Running> running_;    // those after them; joined by their destructors
};

int32_t compile(const kiln_codegen_request *request, Deliver deliver, void *user) {
  uint64_t delivered = 0;
  try {
    return Batch(*request, deliver, user, delivered).run();
  } catch (const std::exception &) {  // no memory
  }
  constexpr std::string_view why = "not enough memory to compile it";
  for (; delivered < request->kernel_count; ++delivered) {
    kiln_codegen_result result{};
    result.kernel = delivered;
    result.error = why.data();
    result.error_size = why.size();
    result.error_code = static_cast<uint32_t>(Code::out_of_memory);
    deliver(user, &result);
  }
  return 0;
}

uint32_t compiler(char *out, uint64_t capacity) {
  std::string name;
  try {
    if (const Result<Nvrtc> nvrtc = Nvrtc::open(); nvrtc.ok()) name = nvrtc->name();
  } catch (const std::exception &) {  // no memory
  }
  if (name.size() >= capacity) name.clear();
  std::copy_n(name.c_str(), name.size() + 1, out);
  return name.empty();
}

}  // namespace
}  // namespace kiln::cuda

extern "C" __attribute__((visibility("default"))) const kiln_codegen_table *kiln_codegen_entry(void) {
  static const kiln_codegen_table table{kiln::build_id_text, kiln::cuda::compile, &kiln::cuda::device_table,
                                        kiln::cuda::compiler};
  return &table;
}
