// The backend "onednn": regions of graphs by oneDNN's primitives. Here is what the host calls.
#include <pthread.h>

#include <atomic>
#include <cstring>

#include "plan.h"
#include "region.h"

#define NAME "onednn_backend"
KILN_PLUGIN_NOTE(0, KILN_FEATURE_BACKENDS, NAME);

namespace onednn {
namespace {

constexpr uint8_t uuid[16] = {0x6b, 0x1f, 0xd2, 0x90, 0x57, 0x3e, 0x4c, 0xa1,
                              0x9d, 0x44, 0x08, 0xe7, 0xb5, 0x2c, 0x71, 0xfa};

struct Backend {
  const kiln_host *host;
  Ops ops;
  bool has_bf16;
};
const Backend &of(void *user) { return *static_cast<const Backend *>(user); }

struct Loaded {
  explicit Loaded(Program made) : program(std::move(made)), constants(program, nullptr, 0) {}
  Program program;
  Weights constants;  // where nothing is bound
};

struct State {
  explicit State(const Loaded &of_loaded) : loaded(of_loaded) {}
  const Loaded &loaded;
  dnnl::stream stream{cpu()};
  std::unique_ptr<Plan> plan;  // of the last run's sizes
};

// OpenMP starts its threads at the first run, and waits for them in a child of a fork, which has none. The plugin is
// never unloaded, nor is what it tells the system.
std::atomic<bool> has_threads = false, lost_threads = false;
void note_forks() {
  static const int noted =
      pthread_atfork(nullptr, nullptr, [] { lost_threads = lost_threads.load() || has_threads.load(); });
  (void)noted;
}
void check_threads() {
  if (lost_threads)
    throw Failure(KILN_UNIMPLEMENTED,
                  "oneDNN's threads did not come along in a fork: a child whose parent has run onednn cannot");
  has_threads = true;
}

// What is thrown inside becomes the host's error.
template <class Body>
kiln_error *guarded(const kiln_host *host, const Body &body) {
  const auto error = [&](uint32_t code, const std::string &text) {
    return host->error->create(code, text.data(), text.size(), nullptr);
  };
  try {
    body();
    return nullptr;
  } catch (const HostError &failure) {
    return failure.error;
  } catch (const Failure &failure) {
    return error(failure.code, failure.what());
  } catch (const std::bad_alloc &) {
    return error(KILN_OUT_OF_MEMORY, "");
  } catch (const dnnl::error &failure) {
    const uint32_t code = failure.status == dnnl_out_of_memory   ? KILN_OUT_OF_MEMORY
                          : failure.status == dnnl_unimplemented ? KILN_UNIMPLEMENTED
                                                                 : KILN_INTERNAL;
    return error(code, std::string("oneDNN: ") + failure.what());
  } catch (const std::exception &failure) {
    return error(KILN_INTERNAL, failure.what());
  }
}

// Of this machine: without AVX-512 oneDNN has no product of bf16.
bool find_bf16() {
  const memory::desc square({16, 16}, memory::data_type::bf16, memory::format_tag::ab);
  try {
    const dnnl::matmul::primitive_desc description({square, square, square}, cpu());
    return true;
  } catch (const dnnl::error &) {
    return false;
  }
}

// ---- when a graph is compiled

kiln_error *target(void *user, kiln_backend_call *call) {
  return guarded(of(user).host, [&] {
    const dnnl_version_t &version = *dnnl::version();
    const std::string told = "oneDNN " + std::to_string(version.major) + "." + std::to_string(version.minor) + "." +
                             std::to_string(version.patch) + " " + version.hash + (of(user).has_bf16 ? ", bf16" : "");
    check(of(user).host->backend->key(call, told.data(), told.size()));
  });
}

// An option that has two values, of which the second is what is told.
bool is_second(const Backend &backend, kiln_backend_call *call, std::string_view name, std::string_view first,
               std::string_view second) {
  kiln_attr value{};
  check(backend.host->backend->option(call, name.data(), name.size(), &value));
  const auto *text = static_cast<const kiln_text *>(value.data);
  const std::string_view given(text->data, text->size);
  if (given == first || given == second) return given == second;
  throw Failure(KILN_INVALID_ARGUMENT, "option 'backend.onednn." + std::string(name) + "' is '" + std::string(given) +
                                           "', expected " + std::string(first) + " or " + std::string(second));
}
Options options_of(const Backend &backend, kiln_backend_call *call) {
  return {is_second(backend, call, "take", "products", "all"), is_second(backend, call, "not_finite", "kept", "lost"),
          is_second(backend, call, "kiln.rounding", "strict", "relaxed")};
}

kiln_error *takes(void *user, kiln_backend_call *call, const kiln_graph *graph, kiln_node node, uint32_t *out) {
  const Backend &backend = of(user);
  return guarded(backend.host, [&] {
    const Reader reader(backend.host, graph);
    const Why why = Taker(backend.ops, backend.has_bf16, options_of(backend, call), reader).not_taken(node);
    *out = why ? 0 : 1;
    if (why) check(backend.host->backend->refuse(call, why, std::string_view(why).size()));
  });
}

kiln_error *compile(void *user, kiln_backend_call *call, const kiln_graph *region) {
  const Backend &backend = of(user);
  return guarded(backend.host, [&] {
    const Reader reader(backend.host, region);
    const Taker taker(backend.ops, backend.has_bf16, options_of(backend, call), reader);
    const std::vector<unsigned char> bytes = write(build(taker, reader));
    check(backend.host->backend->blob(call, bytes.data(), bytes.size()));
  });
}

// ---- when it runs

kiln_error *load(void *user, const void *blob, uint64_t size, void **out_program) {
  return guarded(of(user).host, [&] {
    check_threads();  // constants are prepared
    *out_program = new Loaded(read(blob, size));
  });
}
void unload(void *, void *program) { delete static_cast<Loaded *>(program); }

kiln_error *prepare(void *user, void *program, const DLTensor *const *parameters, uint64_t count, void **out_prepared) {
  return guarded(of(user).host, [&] {
    check_threads();
    *out_prepared = new Weights(static_cast<Loaded *>(program)->program, parameters, count);
  });
}
void release(void *, void *prepared) { delete static_cast<Weights *>(prepared); }

kiln_error *open(void *user, void *program, void **out_state) {
  return guarded(of(user).host, [&] { *out_state = new State(*static_cast<Loaded *>(program)); });
}
void close(void *, void *state) { delete static_cast<State *>(state); }

bool is_planned(const State &state, const Weights &weights, const DLTensor *const *args, uint64_t count) {
  if (!state.plan || !state.plan->fits(weights)) return false;
  for (uint64_t i = 0; i < count; ++i) {
    const Dims &shape = state.plan->shapes()[i];
    if (!std::equal(shape.begin(), shape.end(), args[i]->shape, args[i]->shape + args[i]->ndim)) return false;
  }
  return true;
}

kiln_error *run(void *user, void *, void *prepared, void *opened, const DLTensor *const *args, uint64_t count,
                const kiln_run_options *) {
  return guarded(of(user).host, [&] {
    check_threads();
    State &state = *static_cast<State *>(opened);
    const Program &program = state.loaded.program;
    if (count != program.arrays()) misfit("it has other arrays");
    Weights &weights = prepared ? *static_cast<Weights *>(prepared) : const_cast<Weights &>(state.loaded.constants);
    if (!is_planned(state, weights, args, count)) {
      std::vector<Dims> shapes;
      for (uint64_t i = 0; i < count; ++i) {
        const DLTensor &array = *args[i];
        shapes.emplace_back(array.shape, array.shape + array.ndim);
        if (shapes[i].size() != program.slots[i].rank || array.dtype.bits != 8 * size_of(program.slots[i].dtype))
          misfit("an array is of another type");
      }
      state.plan = std::make_unique<Plan>(program, weights, std::move(shapes));
    }
    state.plan->run(weights, args, state.stream);
  });
}

// ---- registration

kiln_error *setup(const kiln_host *host, kiln_context *context, void **) {
  return guarded(host, [&] {
    note_forks();
    auto backend = std::make_unique<Backend>(Backend{host, find_ops(host, context), find_bf16()});
    constexpr kiln_text products{"products", 8}, kept{"kept", 4};
    const kiln_attr options[] = {{"take", 4, KILN_ATTR_TEXT, 0, 1, &products},
                                 {"not_finite", 10, KILN_ATTR_TEXT, 0, 1, &kept}};
    kiln_backend made{};
    made.struct_size = sizeof made;
    made.flags = KILN_BACKEND_SYMBOLIC | KILN_BACKEND_ANY_THREAD;
    made.name = "onednn";
    made.name_size = std::strlen(made.name);
    made.version = "1";
    made.version_size = 1;
    made.uuid = uuid;
    made.options = options;
    made.option_count = std::size(options);
    made.device_type = kDLCPU;
    made.user = backend.get();
    made.target = target, made.takes = takes, made.compile = compile, made.load = load, made.unload = unload;
    made.prepare = prepare, made.release = release, made.open = open, made.close = close, made.run = run;
    made.destroy = [](void *user) { delete static_cast<Backend *>(user); };
    check(host->context->add_backend(context, &made));
    backend.release();
  });
}

}  // namespace
}  // namespace onednn

const kiln_plugin *kiln_plugin_entry_v1(void) {
  static const kiln_plugin plugin = {
      sizeof plugin, KILN_ABI_MAJOR,  KILN_PLUGIN_MAGIC, 0,      0, KILN_FEATURE_BACKENDS, 0,
      NAME,          sizeof NAME - 1, onednn::setup,     nullptr};
  return &plugin;
}
