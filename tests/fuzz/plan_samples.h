// What the fuzz target `plan` forges plans of: artifacts whose code, instead of computing, does all that its contract
// lets it do, where the sanitizers see it.
#pragma once
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "jit/base/kernel_args.h"
#include "runtime/compile.h"
#include "runtime/graph/json.h"
#include "runtime/ops/op.h"
#include "runtime/plan/artifact.h"

namespace kiln::fuzz {

// Of the artifact that runs now. One thread.
inline const std::vector<Contract> *running = nullptr;

// Launches that are left before code writes zeros: a forged loop that goes on for ever ends then.
inline int launches_left = 0;

// Stands for the code of image `number`.
inline int32_t touch_all(const kiln_kernel_args *args, uint32_t number) {
  const Contract &c = (*running)[number];
  const auto value = [&](const Expr &e) {
    return e.evaluate([&](const std::string &name) {
      for (size_t i = 0; i < c.symbols.size(); ++i)
        if (c.symbols[i].name == name) return args->sizes[i];
      std::abort();
    });
  };
  for (size_t i = 0; i < c.symbols.size(); ++i) {
    const Contract::Symbol &s = c.symbols[i];
    if (args->sizes[i] < s.min || args->sizes[i] > s.max || args->sizes[i] % s.divisor != 0) std::abort();
  }
  for (const Contract::Equality &e : c.equalities)
    if (value(e.left) != value(e.right)) std::abort();
  if (args->begin < 0 || args->begin > args->end || args->end > value(c.tasks)) std::abort();
  static volatile uint8_t sink = 0;
  const int fill = launches_left > 0 ? 0x5a : 0;
  if (launches_left > 0) --launches_left;
  for (size_t b = 0; b < c.buffers.size(); ++b) {
    const int64_t bytes = value(c.buffers[b].size_bytes);
    auto *data = static_cast<uint8_t *>(args->buffers[b]);
    if (bytes > 0 && c.buffers[b].written) std::memset(data, fill, static_cast<size_t>(bytes));
    for (int64_t i = 0; i < bytes; ++i) sink = sink ^ data[i];
  }
  if (const int64_t scratch = value(c.scratch_bytes); scratch > 0)
    std::memset(args->scratch, 0x5a, static_cast<size_t>(scratch));
  return 0;
}

// mov esi, number; mov rax, touch_all; jmp rax
inline Bytes code_of(uint32_t number) {
  ByteWriter code;
  code.put<uint8_t>(0xbe);
  code.put(number);
  code.put<uint16_t>(0xb848);
  code.put(reinterpret_cast<uint64_t>(&touch_all));
  code.put<uint16_t>(0xe0ff);
  return code.take();
}

inline Artifact sample_of(std::string_view json, std::string_view backend = "cpu") {
  const PassList passes = PassList::built_in();
  const CompileEnvironment env{
      .ops = builtin_ops(), .passes = passes, .cache = nullptr, .pool = std::make_shared<ThreadPool>(1)};
  CompileOptions options;
  options.backend = backend;
  if (backend == "cpu") {
    options.cpu = "x86-64";
    options.code = false;
  }
  options.use_cache = false;
  CompileReport report;
  Result<GraphPtr> graph = read_json(json, builtin_ops());
  if (!graph.ok()) std::abort();
  const Result<Compiled> compiled = compile(env, *graph, options, report);
  if (!compiled.ok()) std::abort();
  Artifact artifact = compiled->executable->artifact();
  for (uint32_t i = 0; i < artifact.images.size(); ++i)
    artifact.images[i].code = std::make_shared<const Bytes>(code_of(i));
  return artifact;
}

// Every kind of slot, step, bound and symbol is in one of them.
inline const std::vector<Artifact> &samples() {
  constexpr std::string_view static_shapes =
      R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":"f32","shape":[3,4],"strides":[10,1]}}],
          "parameters":[{"name":"w","type":{"dtype":"f32","shape":[4,5]}}],
          "constants":[{"name":"c","type":{"dtype":"f32","shape":[5]},"data":[1,2,3,4,5]}],
          "nodes":[{"name":"p","op":"matmul","inputs":["x","w"]},{"name":"s","op":"softmax","inputs":["p"],"attrs":{"dim":1}},
                   {"name":"y","op":"add","inputs":["s","c"]},{"name":"z","op":"sum","inputs":["y"],"attrs":{"dims":[0]}}],
          "outputs":[{"name":"y","value":"y"},{"name":"z","value":"z"}]})";
  constexpr std::string_view symbols =
      R"({"kiln":1,"symbols":{"n":{"min":2,"max":64,"divisor":2}},
          "inputs":[{"name":"x","type":{"dtype":"f32","shape":["n",4]}},{"name":"y","type":{"dtype":"f32","shape":["m",4]}},
                    {"name":"i","type":{"dtype":"i64","shape":["k",8]}}],
          "parameters":[{"name":"w","type":{"dtype":"f32","shape":[4,8]}},{"name":"b","type":{"dtype":"f32","shape":[8]}}],
          "nodes":[{"name":"a","op":"add","inputs":["x","y"]},{"name":"l","op":"matmul","inputs":["a","w"]},
                   {"name":"e","op":"add","inputs":["l","b"]},{"name":"s","op":"softmax","inputs":["e"],"attrs":{"dim":1}},
                   {"name":"g","op":"gather","inputs":["s","i"],"attrs":{"dim":0}},
                   {"name":"t","op":"exp","inputs":["x"]},{"name":"q","op":"softmax","inputs":["t"],"attrs":{"dim":0}},
                   {"name":"u","op":"copy_","inputs":["y","q"]}],
          "outputs":[{"name":"g","value":"g"},{"name":"s","value":"s"},{"name":"x2","value":"x"}]})";
  // A size that a scalar tells, and a branch and a loop on what has it.
  constexpr std::string_view nested =
      R"({"kiln":1,"inputs":[{"name":"i","type":{"dtype":"i64","shape":[]}},{"name":"p","type":{"dtype":"bool","shape":[]}},
                    {"name":"x","type":{"dtype":"f32","shape":["n"]}}],
          "constants":[{"name":"c","type":{"dtype":"f32","shape":[1]},"data":[1]}],
          "nodes":[{"name":"r","op":"resolve","inputs":["i"],"attrs":{"bound":"n","symbol":"k"}},
                   {"name":"h","op":"slice","inputs":["x"],"attrs":{"dim":0,"end":"k"}},
                   {"name":"b","op":"cond","inputs":["p","h"],"attrs":{"then_graph":"twice","else_graph":"same"}},
                   {"name":"l","op":"while","inputs":["p","b"],"attrs":{"cond_graph":"go_on","body_graph":"turn"}},
                   {"name":"y","op":"exp","inputs":["l:1"]}],
          "outputs":[{"name":"y","value":"y"}],
          "graphs":{
            "twice":{"inputs":[{"name":"u","type":{"dtype":"f32","shape":["m"]}}],
                     "nodes":[{"name":"v","op":"add","inputs":["u","u"]},{"name":"w","op":"softmax","inputs":["v"]}],
                     "outputs":[{"name":"w","value":"w"}]},
            "same":{"inputs":[{"name":"u","type":{"dtype":"f32","shape":["m"]}}],"nodes":[],
                    "outputs":[{"name":"v","value":"u"}]},
            "go_on":{"inputs":[{"name":"p","type":{"dtype":"bool","shape":[]}},{"name":"u","type":{"dtype":"f32","shape":["m"]}}],
                     "nodes":[],"outputs":[{"name":"p","value":"p"}]},
            "turn":{"inputs":[{"name":"p","type":{"dtype":"bool","shape":[]}},{"name":"u","type":{"dtype":"f32","shape":["m"]}}],
                    "nodes":[{"name":"q","op":"not","inputs":["p"]},{"name":"v","op":"neg","inputs":["u"]}],
                    "outputs":[{"name":"q","value":"q"},{"name":"v","value":"v"}]}}})";
  // Turns that are steps, for they multiply matrices.
  constexpr std::string_view scanned =
      R"({"kiln":1,"inputs":[{"name":"h","type":{"dtype":"f32","shape":["b",4]}},{"name":"s","type":{"dtype":"f32","shape":["t","b",4]}},
                    {"name":"w","type":{"dtype":"f32","shape":[4,4]}}],
          "nodes":[{"name":"y","op":"scan","inputs":["h","s","w"],"attrs":{"body_graph":"turn","sequences":1}}],
          "outputs":[{"name":"last","value":"y:0"},{"name":"all","value":"y:1"}],
          "graphs":{"turn":{"inputs":[{"name":"h","type":{"dtype":"f32","shape":["k",4]}},
                                      {"name":"x","type":{"dtype":"f32","shape":["k",4]}},
                                      {"name":"w","type":{"dtype":"f32","shape":[4,4]}}],
                            "nodes":[{"name":"p","op":"matmul","inputs":["h","w"]},{"name":"n","op":"add","inputs":["p","x"]}],
                            "outputs":[{"name":"h","value":"n"},{"name":"made","value":"n"}]}}})";
  static const std::vector<Artifact> all = {sample_of(static_shapes), sample_of(symbols),
                                            sample_of(symbols, "reference"), sample_of(nested), sample_of(scanned)};
  return all;
}

}  // namespace kiln::fuzz
