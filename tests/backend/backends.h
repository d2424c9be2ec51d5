// The backends that the conformance tests run, each with what it does not run and why.
#pragma once
#include "runtime/compile.h"
#include "runtime/passes/builtin.h"
#include "runtime/passes/pipeline.h"
#include "runtime/regions/lower.h"
#include "tests/backend/harness.h"
#include "tests/unit/jit/kernel/interpreter.h"

namespace kiln::testing {

// Without calls and composite ops: what a region is lowered from.
inline Result<GraphPtr> flat_and_decomposed(GraphPtr graph) {
  PassRun run;
  KILN_ASSIGN(graph, run_pass(inline_calls_pass(), graph, builtin_ops(), run));
  KILN_ASSIGN(graph, decompose(graph, builtin_ops(), {}));
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

// Lowers, fuses, and interprets kernel IR by its definition: what an emitter is given, without one.
inline Backend interpreted_kernels(const char *name, bool fuse) {
  return {name,
          [fuse](const Case &c) -> Result<std::vector<TensorData>> {
            KILN_ASSIGN(GraphPtr graph, flat_and_decomposed(c.graph));
            KILN_ASSIGN(const Lowered lowered, lower(*graph));
            KILN_ASSIGN(const kernel::Fused fused,
                        kernel::fuse(lowered.program, *Target::by_name("v3"), {.fuse = fuse}));
            std::vector<kernel::testing::Array> tensors(fused.tensors.size());
            auto fill = [&](uint32_t tensor, const TensorData &data) {
              const RefTensor t = to_reference(data);
              for (double x : t.f) tensors[tensor].push_back({.f = x});
              for (int64_t x : t.i) tensors[tensor].push_back({.i = x});
            };
            for (size_t k = 0; k < lowered.inputs.size(); ++k) fill(lowered.inputs[k], c.arguments[k]);
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
          {}};
}

inline std::vector<Backend> backends() {
  return {decomposed_reference(), interpreted_kernels("kernels, one a compute", false),
          interpreted_kernels("fused kernels", true)};
}

}  // namespace kiln::testing
