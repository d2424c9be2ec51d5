// Each function of the table: a scope of the device's context, a barrier for exceptions, and the call.
#include "jit/cuda/device_functions.h"

#include <cstring>
#include <exception>
#include <map>
#include <optional>
#include <vector>

#include "jit/cuda/context.h"
#include "jit/cuda/event.h"
#include "jit/cuda/launch.h"
#include "jit/cuda/loaded_module.h"
#include "jit/cuda/memory.h"

using namespace kiln;
using namespace kiln::cuda;

struct kiln_device {
  std::shared_ptr<const Context> context;
};

struct kiln_device_program {
  struct Kernel {
    FunctionHandle function;
    uint32_t max_threads;
    kiln_kernel_use use;
  };
  std::shared_ptr<const Context> context;
  std::vector<LoadedModule> modules;
  std::vector<Kernel> kernels;
};

struct kiln_device_queue {
  explicit kiln_device_queue(std::shared_ptr<const Context> on, Stream made)
      : context(std::move(on)), stream(std::move(made)), error_word(*context, stream), scratch(*context, stream) {}
  const std::shared_ptr<const Context> context;
  const Stream stream;  // before what is freed in its order
  Memory error_word, scratch;
};

namespace kiln::cuda {
namespace {

uint32_t fail(Code code, std::string_view message, kiln_device_error *error) {
  error->code = static_cast<uint32_t>(code);
  const size_t size = std::min(message.size(), sizeof error->message - 1);
  std::memcpy(error->message, message.data(), size);
  error->message[size] = 0;
  return 1;
}

// Runs `body` (to a Status) behind a barrier.
template <class Body>
uint32_t guarded(kiln_device_error *error, Body body) {
  try {
    const Status status = body();
    return status.ok() ? 0 : fail(status.code(), status.message(), error);
  } catch (const std::exception &exception) {
    return fail(Code::out_of_memory, exception.what(), error);
  }
}

// The same with the context current.
template <class Body>
uint32_t inside(const Context &context, kiln_device_error *error, Body body) {
  return guarded(error, [&]() -> Status {
    const ContextScope scope(context);
    KILN_TRY(scope.status());
    return body(context.driver());
  });
}

// Destroys what was made in a context, with it current.
template <class T>
void destroy(T *owned) {
  const std::shared_ptr<const Context> context = owned->context;
  const ContextScope scope(*context);
  delete owned;
}

uint32_t open(uint32_t ordinal, kiln_device **out, kiln_device_error *error) {
  return guarded(error, [&]() -> Status {
    KILN_ASSIGN(std::shared_ptr<const Driver> driver, Driver::open());
    KILN_ASSIGN(std::shared_ptr<const Context> context, Context::open(std::move(driver), ordinal));
    *out = new kiln_device{std::move(context)};
    return {};
  });
}

const char *arch(const kiln_device *device) { return device->context->arch().c_str(); }

Status load_kernel(const Driver &driver, const kiln_device_kernel &kernel, std::map<const uint8_t *, size_t> &modules,
                   kiln_device_program &program) {
  const auto [number, is_new] = modules.try_emplace(kernel.image, program.modules.size());
  if (is_new) {
    KILN_ASSIGN(LoadedModule module, LoadedModule::load(driver, kernel.image));
    program.modules.push_back(std::move(module));
  }
  KILN_ASSIGN(FunctionHandle function, program.modules[number->second].function(kernel.entry));
  int threads = 0;
  KILN_TRY(
      driver.check(driver.function_attribute(&threads, number::max_threads_per_block, function), "cuFuncGetAttribute"));
  program.kernels.push_back({function, static_cast<uint32_t>(std::max(threads, 1)), kernel.use});
  return {};
}

uint32_t load(kiln_device *device, const kiln_device_kernel *kernels, uint64_t count, kiln_device_program **out,
              kiln_device_error *error) {
  return inside(*device->context, error, [&](const Driver &driver) -> Status {
    auto program = std::make_unique<kiln_device_program>();
    program->context = device->context;
    std::map<const uint8_t *, size_t> modules;
    for (uint64_t i = 0; i < count; ++i) KILN_TRY(load_kernel(driver, kernels[i], modules, *program));
    *out = program.release();
    return {};
  });
}

uint32_t open_queue(kiln_device *device, kiln_device_queue **out, kiln_device_error *error) {
  return inside(*device->context, error, [&](const Driver &driver) -> Status {
    KILN_ASSIGN(Stream stream, Stream::create(driver));
    auto queue = std::make_unique<kiln_device_queue>(device->context, std::move(stream));
    KILN_TRY(queue->error_word.grow(sizeof(uint32_t)));
    KILN_TRY(driver.check(driver.fill(queue->error_word.address(), 0, 1, queue->stream.handle()), "cuMemsetD32Async"));
    *out = queue.release();
    return {};
  });
}

uint32_t allocate_memory(kiln_device_queue *queue, uint64_t bytes, uint64_t *out, kiln_device_error *error) {
  return inside(*queue->context, error, [&](const Driver &) -> Status {
    KILN_ASSIGN(*out, allocate(*queue->context, queue->stream, bytes));
    return {};
  });
}

void free_memory(kiln_device_queue *queue, uint64_t address) {
  const ContextScope scope(*queue->context);
  cuda::free(*queue->context, queue->stream, address);
}

uint32_t copy_in(kiln_device_queue *queue, uint64_t to, const void *from, uint64_t bytes, kiln_device_error *error) {
  return inside(*queue->context, error, [&](const Driver &driver) {
    return driver.check(driver.copy_in(to, from, bytes, queue->stream.handle()), "cuMemcpyHtoDAsync");
  });
}

uint32_t copy_out(kiln_device_queue *queue, void *to, uint64_t from, uint64_t bytes, kiln_device_error *error) {
  return inside(*queue->context, error, [&](const Driver &driver) {
    return driver.check(driver.copy_out(to, from, bytes, queue->stream.handle()), "cuMemcpyDtoHAsync");
  });
}

uint32_t copy(kiln_device_queue *queue, uint64_t to, uint64_t from, uint64_t bytes, kiln_device_error *error) {
  return inside(*queue->context, error, [&](const Driver &driver) {
    return driver.check(driver.copy(to, from, bytes, queue->stream.handle()), "cuMemcpyDtoDAsync");
  });
}

uint32_t launch(kiln_device_queue *queue, const kiln_device_launch *launch, kiln_device_error *error) {
  if (launch->points <= 0) return 0;
  return inside(*queue->context, error, [&](const Driver &driver) -> Status {
    const kiln_device_program::Kernel &kernel = launch->program->kernels[launch->kernel];
    const Dimensions dimensions =
        dimensions_of(kernel.use, launch->points, kernel.max_threads, queue->context->multiprocessors());
    uint64_t scratch = 0;
    if (__builtin_mul_overflow(uint64_t{dimensions.blocks}, launch->scratch_bytes, &scratch)) scratch = UINT64_MAX;
    if (kernel.use.whole_group) KILN_TRY(queue->scratch.grow(scratch));
    Bytes parameter = parameter_of(*launch, queue->scratch.address(), queue->error_word.address());
    size_t size = parameter.size();
    void *extra[] = {reinterpret_cast<void *>(number::launch_buffer), parameter.data(),
                     reinterpret_cast<void *>(number::launch_buffer_size), &size,
                     reinterpret_cast<void *>(number::launch_end)};
    return driver.check(driver.launch(kernel.function, dimensions.blocks, 1, 1, dimensions.threads, 1, 1, 0,
                                      queue->stream.handle(), nullptr, extra),
                        "cuLaunchKernel");
  });
}

// What `later` is given from here on waits for what `first` was given so far.
Status order(const Driver &driver, StreamHandle first, StreamHandle later) {
  KILN_ASSIGN(const Event event, Event::create(driver));
  KILN_TRY(event.record(first));
  return event.hold_back(later);
}

uint32_t follow(kiln_device_queue *queue, kiln_device_queue *first, kiln_device_error *error) {
  return inside(*queue->context, error,
                [&](const Driver &driver) { return order(driver, first->stream.handle(), queue->stream.handle()); });
}

// The driver's numbers for the default streams are DLPack's.
StreamHandle stream_numbered(uint64_t number) { return reinterpret_cast<StreamHandle>(static_cast<uintptr_t>(number)); }

uint32_t enter(kiln_device_queue *queue, uint64_t stream, kiln_device_error *error) {
  return inside(*queue->context, error, [&](const Driver &driver) {
    return order(driver, stream_numbered(stream), queue->stream.handle()).with_prefix(str_cat("stream ", stream, ": "));
  });
}

uint32_t leave(kiln_device_queue *queue, uint64_t stream, kiln_device_error *error) {
  return inside(*queue->context, error,
                [&](const Driver &driver) { return order(driver, queue->stream.handle(), stream_numbered(stream)); });
}

uint32_t is_over(kiln_device_queue *queue, uint32_t *out, kiln_device_error *error) {
  return inside(*queue->context, error, [&](const Driver &driver) -> Status {
    const int result = driver.stream_query(queue->stream.handle());
    *out = result != number::not_ready;
    return *out ? driver.check(result, "cuStreamQuery") : Status();
  });
}

uint32_t finish(kiln_device_queue *queue, uint32_t *out, kiln_device_error *error) {
  return inside(*queue->context, error, [&](const Driver &driver) -> Status {
    const Address word = queue->error_word.address();
    const StreamHandle stream = queue->stream.handle();
    *out = 0;
    const Status copied = driver.check(driver.copy_out(out, word, sizeof *out, stream), "cuMemcpyDtoHAsync");
    KILN_TRY(queue->stream.synchronize());  // in any case: the host's memory is free afterwards
    KILN_TRY(copied);
    if (*out == 0) return {};
    return driver.check(driver.fill(word, 0, 1, stream), "cuMemsetD32Async");
  });
}

// Its memory is freed in the stream's order; the stream then goes when all of it is done.
void close_queue(kiln_device_queue *queue) {
  (void)[&] {
    const ContextScope scope(*queue->context);
    return queue->stream.synchronize();
  }
  ();
  destroy(queue);
}

}  // namespace

const kiln_device_table device_table = {
    .open = open,
    .close = [](kiln_device *device) { delete device; },
    .arch = arch,
    .load = load,
    .unload = [](kiln_device_program *program) { destroy(program); },
    .open_queue = open_queue,
    .close_queue = close_queue,
    .allocate = allocate_memory,
    .free = free_memory,
    .copy_in = copy_in,
    .copy_out = copy_out,
    .copy = copy,
    .launch = launch,
    .follow = follow,
    .enter = enter,
    .leave = leave,
    .is_over = is_over,
    .finish = finish,
};

}  // namespace kiln::cuda
