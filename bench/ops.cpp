// What it costs to run a node by a function of its op, beyond the function.
#include <array>

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

// A call of 32 such nodes, one after another, beside 32 calls of the function and a call of none, which is one copy.
void op_step_ns(benchmark::State &state) {
  constexpr int nodes = 32;
  static constexpr std::string_view schema =
      R"({"name": "bench.add_one", "args": [{"name": "x", "dtypes": ["f32"]}], "results": ["y"]})";
  kiln_op_def op = {};
  op.struct_size = sizeof op;
  op.schema = schema.data();
  op.schema_size = schema.size();
  op.infer = infer;
  op.run = add_one;
  const auto graph = [](int count) {
    std::string list, value = "a";
    for (int i = 0; i < count; ++i) {
      const std::string name = "s" + std::to_string(i);
      list += (i ? ", " : "") + ("{\"name\": \"" + name) + "\", \"op\": \"bench.add_one\", \"inputs\": [\"" + value +
              "\"]}";
      value = name;
    }
    return "{\"kiln\": 1, \"inputs\": [" + f32_json("a", "[16]") + "], \"nodes\": [" + list +
           "], \"outputs\": [{\"name\": \"c\", \"value\": \"" + value + "\"}]}";
  };
  Program one(graph(1), 1, "all", {}, &op), all(graph(nodes), 1, "all", {}, &op);
  for (Program *program : {&one, &all})
    for (const char *name : {"a", "c"}) program->bind(name, {elements});
  const int calls = effort().size(10'000, 100);
  const auto seconds = [&](Program &program) {
    return fastest(20, [&] {
      for (int i = 0; i < calls; ++i) program.run();
    });
  };
  std::array<float, elements> from = {}, to = {};
  DLTensor x = {}, y = {};
  int64_t shape = elements;
  x.data = from.data(), y.data = to.data();
  x.shape = y.shape = &shape;
  x.ndim = y.ndim = 1;
  const DLTensor *arrays[] = {&x, &y};
  auto *volatile function = add_one;  // called as Kiln calls it, by its address
  for (auto _ : state) {
    const double bare = fastest(20, [&] {
      for (int i = 0; i < calls; ++i) (void)function(nullptr, nullptr, arrays, 2, nullptr);
    });
    const double step = (seconds(all) - seconds(one)) / (nodes - 1);
    for (size_t i = 0; i < elements; ++i)
      expect_close(all.values("c")[i], all.values("a")[i] + double{nodes}, "a value that 32 functions added to");
    report(state, (step - bare) / calls * 1e9, "ns", 100, Better::lower);
  }
}

KILN_FIGURE(op_step_ns)

}  // namespace
}  // namespace kiln::bench
