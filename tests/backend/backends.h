// The backends that the conformance tests run, each with what it does not run and why.
#pragma once
#include "runtime/compile.h"
#include "runtime/passes/builtin.h"
#include "runtime/passes/pipeline.h"
#include "runtime/regions/lower.h"
#include "tests/backend/guarded_run.h"
#include "tests/backend/harness.h"
#include "tests/backend/levels.h"
#include "tests/unit/jit/kernel/interpreter.h"

namespace kiln::testing {

// Without calls and composite ops: what a region is lowered from.
inline Result<GraphPtr> flat_and_decomposed(GraphPtr graph) {
  KILN_ASSIGN(graph, inline_calls(graph, builtin_ops()));
  KILN_ASSIGN(graph, widen(graph, builtin_ops()));
  KILN_ASSIGN(graph, decompose(graph, builtin_ops()));
  KILN_ASSIGN(graph, convert_early(graph));
  KILN_TRY(verify(*graph));
  return graph;
}

// Decomposes fully and runs the parts on their reference kernels: holds each decomposition against the kernel that was
// written from the definition.
inline Backend decomposed_reference() {
  return {"decomposed reference",
          [](const Case &c) -> Result<std::vector<TensorData>> {
            KILN_ASSIGN(GraphPtr graph, flat_and_decomposed(c.graph));
            return run_on_reference(*graph, c.arguments);
          },
          {}};
}

// Whether kernels for the target are the same with fusion and without, as those of one op mostly are. False where
// another thing than kernels is run, too.
inline bool fusion_changes_nothing(const Case &c, const Target &target) {
  const Result<GraphPtr> graph = flat_and_decomposed(c.graph);
  if (!graph.ok()) return false;
  const Result<Lowered> lowered = lower(**graph);
  if (!lowered.ok()) return false;
  const auto launches = [&](bool fuse) -> std::string {
    const Result<kernel::Fused> fused = kernel::fuse(lowered->program, target, {.fuse = fuse});
    if (!fused.ok()) return str_cat(fuse, " fails");
    return join(fused->launches, "\n", [](const kernel::Launch &launch) {
      const auto base = [](const kernel::Launch::Base &of) { return str_cat(of.buffer, " in ", of.tensor); };
      return str_cat(kernel::print(*launch.kernel), launch.prepared, " of ",
                     join(launch.buffers, ", ", [](uint32_t tensor) { return str_cat(tensor); }), "; ",
                     join(launch.symbols, ", ", [](const std::string &symbol) { return symbol; }), "; ",
                     join(launch.bases, ", ", base));
    });
  };
  return launches(true) == launches(false);
}

// Lowers, fuses, and interprets kernel IR by its definition: what an emitter is given, without one.
inline Backend interpreted_kernels(const char *name, bool fuse) {
  const Target target = *Target::by_name("v3");
  return {name,
          [fuse, target](const Case &c) -> Result<std::vector<TensorData>> {
            KILN_ASSIGN(GraphPtr graph, flat_and_decomposed(c.graph));
            KILN_ASSIGN(const Lowered lowered, lower(*graph));
            KILN_ASSIGN(const kernel::Fused fused, kernel::fuse(lowered.program, target, {.fuse = fuse}));
            std::vector<kernel::testing::Array> tensors(fused.tensors.size());
            auto fill = [&](uint32_t tensor, const TensorData &data) {
              const RefTensor t = to_reference(data);
              for (double x : t.f) tensors[tensor].push_back({.f = x});
              for (int64_t x : t.i) tensors[tensor].push_back({.i = x});
            };
            for (size_t k = 0; k < lowered.inputs.size(); ++k) fill(lowered.inputs[k], c.arguments[k]);
            for (size_t k = 0; k < lowered.parameters.size(); ++k)
              fill(lowered.parameters[k], c.arguments[lowered.inputs.size() + k]);
            for (const Lowered::Constant &constant : lowered.constants) fill(constant.tensor, *constant.data);
            kernel::testing::run(fused, tensors, c.sizes);
            std::vector<TensorData> results;
            for (uint32_t output : lowered.outputs) {
              const kernel::Tensor &tensor = fused.tensors[output];
              RefTensor t{tensor.dtype, shape_at(tensor.dims, c.sizes), {}, {}};
              for (const kernel::testing::Scalar &x : tensors[output]) {
                if (t.is_float())
                  t.f.push_back(x.f);
                else
                  t.i.push_back(x.i);
              }
              results.push_back(from_reference(t));
            }
            return results;
          },
          {{"cond", "control flow is steps of a plan, no kernel"},
           {"while", "control flow is steps of a plan, no kernel"},
           {"resolve", "a step of a plan, no kernel"},
           {"scan", "control flow is steps of a plan; that its turns can be a kernel is shown by those of the cpu"},
           {"associative_scan", "it is a scan, control flow"},
           {"rnn", "it has a scan, control flow"},
           {"gru", "it has a scan, control flow"},
           {"lstm", "it has a scan, control flow"},
           {"nonzero", "a step of a plan lies between its kernels"},
           {"masked_select", "a step of a plan lies between its kernels"},
           {"unique", "a step of a plan lies between its kernels"},
           {"nms", "a step of a plan lies between its kernels"},
           {"det", "control flow is steps of a plan, no kernel"}},
          {},
          [fuse, target](const Case &c) { return !fuse && fusion_changes_nothing(c, target); }};
}

// ---- the cpu backend: what a host gets

inline const std::shared_ptr<Modules> &modules() {
  static const auto opened = std::make_shared<Modules>();
  return opened;
}

inline const PassList &built_in_passes() {
  static const PassList passes = PassList::built_in();
  return passes;
}

inline Result<Compiled> compile_alone(GraphPtr graph, const CompileOptions &options, Cache *cache = nullptr,
                                      const PassList &passes = built_in_passes()) {
  static const auto pool = std::make_shared<ThreadPool>(2);
  const CompileEnvironment environment{.ops = builtin_ops(),
                                       .passes = passes,
                                       .cache = cache,
                                       .pool = pool,
                                       .progress = {},
                                       .in_background = {},
                                       .modules = modules()};
  CompileReport report;
  return compile(environment, std::move(graph), options, report);
}

// In every setting. What copy_ writes beside the outputs is compared by tests of its own.
inline Result<std::vector<TensorData>> run_compiled(const Case &c, const CompileOptions &options,
                                                    const std::vector<Setting> &settings = all_settings(),
                                                    Cache *cache = nullptr) {
  const GraphCall call{c.sizes, c.arguments};
  KILN_ASSIGN(std::vector<Results> all, run_guarded(c.graph, {&call, 1}, options, settings, cache));
  all[0].resize(c.graph->outputs().size());
  return std::move(all[0]);
}

inline Backend compiled(std::string name, const std::string &cpu, bool fuse) {
  CompileOptions options;
  options.cpu = cpu;
  options.fuse = fuse;
  options.want_ir = true;
  const auto repeats = [fuse, target = *Target::by_name(cpu)](const Case &c) {
    return !fuse && fusion_changes_nothing(c, target);
  };
  return {std::move(name), [options](const Case &c) { return run_compiled(c, options); }, {}, {}, repeats};
}

// The cpu backend for each feature level that this machine runs, for all that it has, and once without fusion.
inline std::vector<Backend> compiled_backends() {
  std::vector<Backend> all = {compiled("cpu, not fused", "native", false)};
  for (const std::string &level : levels_and_native()) all.push_back(compiled(str_cat("cpu ", level), level, true));
  return all;
}

inline std::vector<Backend> backends() {
  std::vector<Backend> all = {decomposed_reference(), interpreted_kernels("kernels, one a compute", false),
                              interpreted_kernels("fused kernels", true)};
  for (Backend &backend : compiled_backends()) all.push_back(std::move(backend));
  return all;
}

// The graph as it is.
inline Backend reference() {
  return {"reference", [](const Case &c) { return run_on_reference(*c.graph, c.arguments); }, {}};
}
inline std::vector<Backend> backends_and_reference() {
  std::vector<Backend> all = backends();
  all.push_back(reference());
  return all;
}

}  // namespace kiln::testing
