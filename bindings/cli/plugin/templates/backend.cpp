// A backend of Kiln in C++17: it takes add, mul and relu of f32 arrays of known sizes, without broadcasting, makes
// steps of a region, and runs them one after another. Change what is marked 1 to 5. host->backend->NAME is documented
// in kiln/backend.h as kiln_backend_NAME. `guarded` makes an error for the host of what is thrown.
#include <kiln/op.hpp>

#include <algorithm>

namespace {

using kiln::op::Error;
using kiln::op::guarded;
using kiln::pass::node_of;
using kiln::pass::result_of;

// 1. The name of the plugin, and of the backend.
constexpr std::string_view name = "template";
KILN_PLUGIN_NOTE(0, KILN_FEATURE_BACKENDS, "template");

// 2. Its identity: 16 random bytes of your own (kiln plugin uuid). Raise the version when what compile makes changes.
constexpr uint8_t uuid[16] = {0x21, 0xf4, 0x7d, 0x8b, 0x36, 0x0e, 0x49, 0xc2,
                              0xa5, 0x17, 0x68, 0xd3, 0x9c, 0xb0, 0x52, 0xef};
constexpr std::string_view version = "1";

constexpr std::array<std::string_view, 3> op_names = {"add", "mul", "relu"};
struct Backend {  // `user` of its functions
  const kiln_host *host;
  std::array<kiln_op, op_names.size()> ops;
};

const Backend &backend_of(void *user) { return *static_cast<const Backend *>(user); }
void *host_of(void *user) { return const_cast<kiln_host *>(backend_of(user).host); }  // read only

void check(const kiln_host &host, kiln_error *error) {
  if (!error) return;
  kiln_text text{};
  host.error->message(error, &text);
  const Error thrown(host.error->code(error), std::string(text.data, text.size));
  host.error->destroy(error);
  throw thrown;
}

// Asks how many there are, then for all of them, which are of the type of `empty`.
constexpr auto list = [](const kiln_host &host, auto empty, auto ask) {
  uint64_t count = 0;
  check(host, ask(nullptr, 0, &count));
  std::vector<decltype(empty)> items(count);
  check(host, ask(items.data(), count, &count));
  return items;
};

// 3. What a region becomes: steps over slots, which are the region's inputs and parameters, then the steps' results.
struct Step {
  uint32_t op, operands[2];  // of relu one, twice
};
struct Program {
  std::vector<Step> steps;
  std::vector<uint32_t> outputs;  // slots
};

// How many elements a value has, if it is f32; else 0. Its sizes are known: there is no flag KILN_BACKEND_SYMBOLIC.
int64_t size_of(const kiln_host &host, const kiln_graph *graph, kiln_value value) {
  kiln_dtype dtype = 0;
  check(host, host.value->dtype(graph, value, &dtype));
  if (dtype != KILN_F32) return 0;
  const auto dims = list(host, kiln_dim{}, [&](kiln_dim *buffer, uint64_t capacity, uint64_t *count) {
    return host.value->dims(graph, value, buffer, capacity, count);
  });
  int64_t size = 1;
  for (const kiln_dim &dim : dims) size *= dim.value;
  return size;
}

uint32_t index_in(const std::vector<kiln_value> &slots, kiln_value value) {
  return static_cast<uint32_t>(std::find(slots.begin(), slots.end(), value) - slots.begin());
}

// 4. What it takes.
kiln_error *takes(void *user, kiln_backend_call *call, const kiln_graph *graph, kiln_node node, uint32_t *out) {
  return guarded(host_of(user), [&](const kiln_host &host) {
    const auto &ops = backend_of(user).ops;
    const int64_t size = size_of(host, graph, result_of(node));
    bool fits = size > 0 && std::find(ops.begin(), ops.end(), host.node->op(graph, node)) != ops.end();
    for (uint32_t i = 0; i < host.node->input_count(graph, node); i++) {
      const kiln_value x = host.node->input(graph, node, i);
      fits = fits && host.node->kind(graph, node_of(x)) != KILN_NODE_CONSTANT && size_of(host, graph, x) == size;
    }
    *out = fits;
    constexpr std::string_view why = "it takes add, mul and relu of f32 arrays of one known size";
    if (!fits) check(host, host.backend->refuse(call, why.data(), why.size()));
  });
}

// 5. What it makes of a region: numbers of 32 bits.
kiln_error *compile(void *user, kiln_backend_call *call, const kiln_graph *region) {
  return guarded(host_of(user), [&](const kiln_host &host) {
    const auto side = [&](uint32_t which) {
      return list(host, kiln_value{}, [&](kiln_value *buffer, uint64_t capacity, uint64_t *count) {
        return host.graph->signature(region, which, buffer, capacity, count);
      });
    };
    const auto nodes = list(host, kiln_node{}, [&](kiln_node *buffer, uint64_t capacity, uint64_t *count) {
      return host.graph->nodes(region, buffer, capacity, count);
    });
    std::vector<kiln_value> slots = side(KILN_SIDE_INPUTS);
    for (kiln_value parameter : side(KILN_SIDE_PARAMETERS)) slots.push_back(parameter);
    std::vector<uint32_t> words = {0};
    const auto &ops = backend_of(user).ops;
    for (kiln_node node : nodes) {
      if (host.node->kind(region, node) != KILN_NODE_OP) continue;
      const auto op = std::find(ops.begin(), ops.end(), host.node->op(region, node)) - ops.begin();
      const uint32_t last = host.node->input_count(region, node) - 1;
      words.insert(words.end(), {static_cast<uint32_t>(op), index_in(slots, host.node->input(region, node, 0)),
                                 index_in(slots, host.node->input(region, node, last))});
      words[0]++;
      slots.push_back(result_of(node));
    }
    for (kiln_value output : side(KILN_SIDE_OUTPUTS)) words.push_back(index_in(slots, output));
    check(host, host.backend->blob(call, words.data(), words.size() * sizeof words[0]));
  });
}

// The bytes may come from a file that somebody changed.
kiln_error *load(void *user, const void *blob, uint64_t size, void **out_program) {
  return guarded(host_of(user), [&](const kiln_host &) {
    std::vector<uint32_t> words(size / sizeof(uint32_t));
    std::memcpy(words.data(), blob, words.size() * sizeof(uint32_t));
    if (words.empty() || (words.size() - 1) / 3 < words[0]) throw Error(KILN_CORRUPT, "the bytes are no program");
    Program program;
    const auto outputs = words.begin() + 1 + 3 * static_cast<ptrdiff_t>(words[0]);
    for (auto at = words.begin() + 1; at < outputs; at += 3) program.steps.push_back({at[0], {at[1], at[2]}});
    program.outputs.assign(outputs, words.end());
    *out_program = new Program(std::move(program));
  });
}
void unload(void *, void *program) { delete static_cast<Program *>(program); }

float result_of_step(uint32_t op, float a, float b) {
  if (op_names[op] == "add") return a + b;
  if (op_names[op] == "mul") return a * b;
  return a < 0 ? 0 : a;
}

// `args` are the region's inputs, parameters and outputs.
kiln_error *run(void *user, void *of, void *, void *, const DLTensor *const *args, uint64_t count,
                const kiln_run_options *) {
  return guarded(host_of(user), [&](const kiln_host &) {
    const Program &program = *static_cast<const Program *>(of);
    const kiln::op::Arrays arrays(args, count);
    const auto size = [&](uint64_t index) {
      size_t product = 1;
      for (int64_t dim : arrays.shape(index)) product *= static_cast<size_t>(dim);
      return product;
    };
    const auto require = [](bool fits) {
      if (!fits) throw Error(KILN_CORRUPT, "the program is of another region");
    };
    require(program.outputs.size() <= count);
    const uint64_t results = count - program.outputs.size();
    std::vector<std::vector<float>> slots;
    for (uint64_t i = 0; i < results; i++) slots.emplace_back(arrays.data<float>(i), arrays.data<float>(i) + size(i));
    for (const Step &step : program.steps) {
      require(step.op < op_names.size() && std::max(step.operands[0], step.operands[1]) < slots.size());
      const std::vector<float> &a = slots[step.operands[0]], &b = slots[step.operands[1]];
      require(a.size() == b.size());
      std::vector<float> made(a.size());
      for (size_t i = 0; i < made.size(); i++) made[i] = result_of_step(step.op, a[i], b[i]);
      slots.push_back(std::move(made));
    }
    for (uint64_t i = results; i < count; i++) {
      const uint32_t slot = program.outputs[i - results];
      require(slot < slots.size() && slots[slot].size() == size(i));
      std::copy(slots[slot].begin(), slots[slot].end(), arrays.data<float>(i));
    }
  });
}

void destroy(void *user) { delete static_cast<Backend *>(user); }

kiln_error *setup(const kiln_host *host, kiln_context *context, void **) {
  return guarded(const_cast<kiln_host *>(host), [&](const kiln_host &) {
    auto backend = std::make_unique<Backend>();
    backend->host = host;
    for (size_t i = 0; i < op_names.size(); i++)
      check(*host, host->op->find(context, op_names[i].data(), op_names[i].size(), &backend->ops[i]));
    kiln_backend table{};
    table.struct_size = sizeof table;
    table.name = name.data();
    table.name_size = name.size();
    table.version = version.data();
    table.version_size = version.size();
    table.uuid = uuid;
    table.device_type = kDLCPU;
    table.user = backend.get();
    table.takes = takes;
    table.compile = compile;
    table.load = load;
    table.unload = unload;
    table.run = run;
    table.destroy = destroy;
    check(*host, host->context->add_backend(context, &table));
    static_cast<void>(backend.release());  // the context's now
  });
}

constexpr kiln_plugin plugin = {sizeof(kiln_plugin),
                                KILN_ABI_MAJOR,
                                KILN_PLUGIN_MAGIC,
                                0,
                                0,
                                KILN_FEATURE_BACKENDS,
                                0,
                                name.data(),
                                name.size(),
                                setup,
                                nullptr};

}  // namespace

const kiln_plugin *kiln_plugin_entry_v1(void) { return &plugin; }
