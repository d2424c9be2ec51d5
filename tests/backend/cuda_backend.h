// The backend `cuda` on the stand-ins for NVRTC and the driver: all of Kiln's own way from a graph to outputs that a
// GPU would go.
#pragma once
#include <gtest/gtest.h>

#include <set>

#include "jit/cuda/nvrtc.h"
#include "runtime/cache/key.h"
#include "tests/backend/backends.h"
#include "tests/standin/standin.h"
#include "tests/temporary_folder.h"

namespace kiln::testing {

inline CompileOptions cuda_options(bool fuse = true) {
  CompileOptions options;
  options.backend = "cuda";
  options.fuse = fuse;
  options.arch = "sm_90";
  return options;
}

// The host's threads run no kernels.
inline std::vector<Setting> device_settings() {
  return {{1, GuardedBytes::Place::end}, {1, GuardedBytes::Place::begin}};
}

// The distinct kernels that graphs compile to, serialised.
inline Result<std::vector<Bytes>> kernels_of(std::span<const GraphPtr> graphs, bool fuse = true) {
  CompileOptions options = cuda_options(fuse);
  options.code = false;
  std::set<Bytes> distinct;
  for (const GraphPtr &graph : graphs) {
    KILN_ASSIGN(const Compiled compiled, compile_alone(graph, options));
    const std::vector<Bytes> &kernels = compiled.executable->artifact().kernels;
    distinct.insert(kernels.begin(), kernels.end());
  }
  return std::vector<Bytes>(distinct.begin(), distinct.end());
}

inline Result<std::vector<CodegenModule::Output>> compile_for(std::string_view arch, std::span<const Bytes> kernels) {
  CodegenModule::Request request;
  request.kernels.assign(kernels.begin(), kernels.end());
  request.target = Target::device(arch);
  request.threads = 2;
  KILN_ASSIGN(const BackendInfo *cuda, find_backend("cuda"));
  return modules()->of(*cuda).compile(request);
}

// A cache of kernels alone, as long as the process lives.
class KernelCache {
 public:
  Cache &cache() { return cache_; }

 private:
  const test::TemporaryFolder folder_;
  Cache cache_{folder_.path(), 0};
};

// Compiling a program takes a process of the C++ compiler: the kernels of all cases are compiled together, and found by
// their keys when a case is compiled.
inline Status compile_together(std::span<const Case> cases, Cache &cache, bool fuse) {
  std::vector<GraphPtr> graphs;
  for (const Case &made : cases) graphs.push_back(made.graph);
  KILN_ASSIGN(const std::vector<Bytes> kernels, kernels_of(graphs, fuse));
  const CompileOptions options = cuda_options(fuse);
  KILN_ASSIGN(std::vector<CodegenModule::Output> outputs, compile_for(options.arch, kernels));
  std::vector<Image> images;
  for (size_t i = 0; i < outputs.size(); ++i) {
    images.push_back(std::move(outputs[i].image));
    images.back().kernel_key =
        kernel_key(kernels[i], options.backend, Target::device(options.arch), build_id(), images.back().compiler);
  }
  return cache.publish_kernels(images);
}

inline Backend cuda_on_standins(bool fuse = true) {
  standin::use_nvrtc();
  (void)standin::use_driver();
  static KernelCache kernels;
  return {fuse ? "cuda on stand-ins" : "cuda on stand-ins, not fused",
          [fuse](const Case &c) { return run_compiled(c, cuda_options(fuse), device_settings(), &kernels.cache()); },
          {},
          [fuse](std::span<const Case> cases) { return compile_together(cases, kernels.cache(), fuse); }};
}

// Why `cuda` cannot run on what this machine has, for a SKIP; empty where it can. Only the absence of a driver, a GPU
// or NVRTC is a reason: what fails later is a failure.
inline std::string no_gpu() {
  unsetenv("KILN_NVRTC");
  unsetenv("KILN_LIBCUDA");
  const Status device = modules()->device(**find_backend("cuda"), 0).take_status();
  if (device.code() == Code::no_device) return "SKIP: " + device.message();
  const Status nvrtc = cuda::Nvrtc::open().take_status();
  return nvrtc.ok() ? "" : "SKIP: " + nvrtc.message();
}

// Who has it keeps the GPU open, where each case would open it anew: a driver takes longer for that than most cases
// take.
inline std::shared_ptr<Device> the_gpu() { return modules()->device(**find_backend("cuda"), 0).value(); }

// The same without stand-ins: what this machine has.
inline Backend cuda_on_this_machine() {
  unsetenv("KILN_NVRTC");
  unsetenv("KILN_LIBCUDA");
  CompileOptions options = cuda_options();
  options.arch = "native";
  return {"cuda", [options](const Case &c) { return run_compiled(c, options, device_settings()); }, {}, {}};
}

// Tests of a backend by its name: "cpu", "reference", or "cuda", which is run on stand-ins.
class OnABackend : public ::testing::TestWithParam<const char *> {
 protected:
  void SetUp() override {
    options_.backend = GetParam();
    if (options_.backend != "cuda") return;
    if (!standin::has_compiler()) GTEST_SKIP() << standin::no_compiler;
    (void)cuda_on_standins();
    options_ = cuda_options();
  }

  CompileOptions options_;
};

}  // namespace kiln::testing
