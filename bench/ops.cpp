// What it costs to run a node by a function, of its op or of the host, beyond the function.
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

constexpr int nodes = 32;

// `count` nodes that add one, one after another; `node` is what each has besides name and inputs.
std::string chain(int count, const std::string &node) {
  std::string list, value = "a";
  for (int i = 0; i < count; ++i) {
    const std::string name = "s" + std::to_string(i);
    list += (i ? ", " : "") + ("{\"name\": \"" + name) + "\", \"inputs\": [\"" + value + "\"], " + node + "}";
    value = name;
  }
  return "{\"kiln\": 1, \"inputs\": [" + f32_json("a", "[16]") + "], \"nodes\": [" + list +
         "], \"outputs\": [{\"name\": \"c\", \"value\": \"" + value + "\"}]}";
}

// A call of 32 such nodes beside 32 calls of `bare`, and a call of one node, which has what every call costs.
template <class Bare>
void report_step(benchmark::State &state, const std::string &node, const std::function<void(kiln_context *)> &prepare,
                 double target, const Bare &bare) {
  Program one(chain(1, node), 1, "all", {}, prepare), all(chain(nodes, node), 1, "all", {}, prepare);
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
  std::array<float, elements> from = {}, to = {};
  DLTensor x = {}, y = {};
  int64_t shape = elements;
  x.data = from.data(), y.data = to.data();
  x.shape = y.shape = &shape;
  x.ndim = y.ndim = 1;
  const DLTensor *arrays[] = {&x, &y};
  auto *volatile function = add_one;  // called as Kiln calls it, by its address
  report_step(
      state, R"("op": "bench.add_one")",
      [&](kiln_context *context) { cli::check(kiln_op_register(context, &op, nullptr)); }, 100,
      [&] { (void)function(nullptr, nullptr, arrays, 2, nullptr); });
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

KILN_FIGURE(op_step_ns)
KILN_FIGURE(function_step_ns)

}  // namespace
}  // namespace kiln::bench
