// What it costs to run a node by a function, of its op or of the host, or by a registered backend, beyond that.
#include <array>
#include <string>

#include "figure.h"

namespace kiln::bench {
namespace {

using cli::Failure;

constexpr int64_t elements = 16;

kiln_error *infer(void *, kiln_op_call *call) {
  kiln_dim dim{elements, 0};
  kiln_type type = {};
  type.struct_size = sizeof type;
  type.dtype = KILN_F32;
  type.rank = 1;
  type.dims = &dim;
  return kiln_op_call_result(call, 0, &type);
}

kiln_error *add_one(void *, void *, const DLTensor *const *arrays, uint64_t, const kiln_run_options *) {
  const auto *x = static_cast<const float *>(arrays[0]->data);
  auto *y = static_cast<float *>(arrays[1]->data);
  for (int64_t i = 0; i < arrays[0]->shape[0]; ++i) y[i] = x[i] + 1;
  return nullptr;
}

// As a function of the host.
void add_one_to(const float *x, float *y, int64_t size) {
  for (int64_t i = 0; i < size; ++i) y[i] = x[i] + 1;
}

// What it is called on without Kiln.
struct Bare {
  std::array<float, elements> from = {}, to = {};
  int64_t shape = elements;
  DLTensor x{from.data(), {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &shape, nullptr, 0};
  DLTensor y{to.data(), {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &shape, nullptr, 0};
  const DLTensor *arrays[2] = {&x, &y};
};

constexpr int nodes = 32;

// `count` nodes that add one, one after another; `node` is what each has besides name and inputs, with # for its
// number.
std::string chain(int count, std::string_view node) {
  std::string list, value = "a";
  for (int i = 0; i < count; ++i) {
    const std::string number = std::to_string(i), name = "s" + number;
    list += (i ? ", " : "") + ("{\"name\": \"" + name) + "\", \"inputs\": [\"" + value + "\"], ";
    for (const char c : node) list += c == '#' ? number : std::string(1, c);
    list += "}";
    value = name;
  }
  return "{\"kiln\": 1, \"inputs\": [" + f32_json("a", "[16]") + "], \"nodes\": [" + list +
         "], \"outputs\": [{\"name\": \"c\", \"value\": \"" + value + "\"}]}";
}

// A call of 32 such nodes beside 32 calls of `bare`, and a call of one node, which has what every call costs.
template <class Function>
void report_step(benchmark::State &state, std::string_view node, const std::function<void(kiln_context *)> &prepare,
                 double target, const Function &bare, const std::string &mode = "all") {
  Program one(chain(1, node), 1, mode, {}, prepare), all(chain(nodes, node), 1, mode, {}, prepare);
  for (Program *program : {&one, &all})
    for (const char *name : {"a", "c"}) program->bind(name, {elements});
  const int calls = effort().size(10'000, 100);
  const auto seconds = [&](Program &program) {
    return fastest(20, [&] {
      for (int i = 0; i < calls; ++i) program.run();
    });
  };
  for (auto _ : state) {
    const double alone = fastest(20, [&] {
      for (int i = 0; i < calls; ++i) bare();
    });
    const double step = (seconds(all) - seconds(one)) / (nodes - 1);
    for (size_t i = 0; i < elements; ++i)
      expect_close(all.values("c")[i], all.values("a")[i] + double{nodes}, "a value that 32 functions added to");
    report(state, (step - alone) / calls * 1e9, "ns", target, Better::lower);
  }
}

void op_step_ns(benchmark::State &state) {
  static constexpr std::string_view schema =
      R"({"name": "bench.add_one", "args": [{"name": "x", "dtypes": ["f32"]}], "results": ["y"]})";
  kiln_op_def op = {};
  op.struct_size = sizeof op;
  op.schema = schema.data();
  op.schema_size = schema.size();
  op.infer = infer;
  op.run = add_one;
  Bare bare;
  auto *volatile function = add_one;  // called as Kiln calls it, by its address
  report_step(
      state, R"("op": "bench.add_one")",
      [&](kiln_context *context) { cli::check(kiln_op_register(context, &op, nullptr)); }, 100,
      [&] { (void)function(nullptr, nullptr, bare.arrays, 2, nullptr); });
}

void function_step_ns(benchmark::State &state) {
  static constexpr std::string_view name = "add_one", signature = "void (f32 data x, f32 data y, i64 size x 0)";
  kiln_function given = {};
  given.struct_size = sizeof given;
  given.name = name.data(), given.name_size = name.size();
  given.signature = signature.data(), given.signature_size = signature.size();
  given.pointer = reinterpret_cast<void (*)()>(add_one_to);
  std::array<float, elements> from = {}, to = {};
  auto *volatile function = add_one_to;
  report_step(
      state, R"("op": "neg", "annotations": {"kiln.fallback.function": {"text": "add_one"}})",
      [&](kiln_context *context) { cli::check(kiln_function_register(context, &given, nullptr)); }, 150,
      [&] { function(from.data(), to.data(), elements); });
}

// A backend that takes neg, and adds one; each node is a region of its own.
kiln_error *take_neg(void *, kiln_backend_call *call, const kiln_graph *graph, kiln_node node, uint32_t *out) {
  kiln_op neg = 0;
  kiln_error *error = kiln_op_find(kiln_backend_context(call), "neg", 3, &neg);
  *out = !error && kiln_node_op(graph, node) == neg;
  return error;
}

void backend_step_ns(benchmark::State &state) {
  kiln_backend backend = {};
  backend.struct_size = sizeof backend;
  backend.name = "bench", backend.name_size = 5;
  backend.device_type = kDLCPU;
  backend.takes = take_neg;
  backend.compile = [](void *, kiln_backend_call *call, const kiln_graph *) { return kiln_backend_blob(call, "1", 1); };
  backend.load = [](void *, const void *, uint64_t, void **) -> kiln_error * { return nullptr; };
  backend.run = [](void *, void *, void *, void *own, const DLTensor *const *arrays, uint64_t count,
                   const kiln_run_options *options) { return add_one(nullptr, own, arrays, count, options); };
  Bare bare;
  auto *volatile function = add_one;
  report_step(
      state, R"("op": "neg", "annotations": {"kiln.region": {"text": "r#"}, "kiln.region.backend": {"text": "bench"}})",
      [&](kiln_context *context) { cli::check(kiln_backend_register(context, &backend, nullptr)); }, 300,
      [&] { (void)function(nullptr, nullptr, bare.arrays, 2, nullptr); }, "marked");
}

KILN_FIGURE(op_step_ns)
KILN_FIGURE(function_step_ns)
KILN_FIGURE(backend_step_ns)

}  // namespace
}  // namespace kiln::bench
