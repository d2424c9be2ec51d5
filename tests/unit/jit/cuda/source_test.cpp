// The emitted CUDA C++ against the interpreter of kernel IR: built as C++ under a shim of thread indices, and
// run on the stand-in for a device.
#include "jit/cuda/source.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "tests/unit/jit/cuda/standin_device.h"
#include "tests/unit/jit/kernel/interpreter.h"
#include "tests/unit/jit/kernel/program_builder.h"

namespace kiln::cuda {
namespace {

using kernel::testing::Array;
using kernel::testing::ProgramBuilder;
using kernel::testing::Sizes;

int64_t value(const Expr &e, const Sizes &sizes) {
  return e.evaluate([&](const std::string &s) { return sizes.at(s); });
}

// Runs kernel `number` of the program on the device, on copies of the tensors; what it writes comes back.
void run_on_device(kiln_device_queue *queue, const kiln_device_program *program, uint64_t number,
                   const kernel::Launch &launch, std::vector<std::vector<float>> &tensors, const Sizes &sizes,
                   testing::Checked &check) {
  Sizes own;
  std::vector<int64_t> kernel_sizes;
  for (size_t i = 0; i < launch.symbols.size(); ++i)
    kernel_sizes.push_back(own[launch.kernel->symbols[i]] = sizes.at(launch.symbols[i]));
  std::map<uint32_t, std::unique_ptr<testing::DeviceArray>> arrays;  // a launch may name a tensor twice
  std::vector<uint64_t> buffers;
  for (uint32_t t : launch.buffers) {
    auto &array = arrays[t];
    if (!array) {
      array = std::make_unique<testing::DeviceArray>(check, queue, std::max<size_t>(tensors[t].size() * 4, 4));
      if (!tensors[t].empty()) array->copy_in(check, tensors[t].data());
    }
    buffers.push_back(array->address());
  }
  Expr points = 1;
  for (const kernel::Axis &axis : launch.kernel->parallel) points *= axis.extent;
  const kiln_device_launch request{
      .program = program,
      .kernel = number,
      .buffers = buffers.data(),
      .buffer_count = buffers.size(),
      .sizes = kernel_sizes.data(),
      .size_count = kernel_sizes.size(),
      .points = value(points, own),
      .scratch_bytes = static_cast<uint64_t>(value(kernel::scratch_layout(*launch.kernel).size_bytes, own))};
  check(device_table.launch, queue, &request);
  for (auto &[t, array] : arrays)
    if (!tensors[t].empty()) array->copy_out(check, tensors[t].data());
  uint32_t error_word = 0;
  check(device_table.finish, queue, &error_word);
  EXPECT_EQ(error_word, 0u);
}

// Scheduled for a CPU and for a device: the emitter takes the bytes of both.
class CudaSource : public ::testing::TestWithParam<Target> {};

TEST_P(CudaSource, ComputesWhatTheKernelSaysForRandomPrograms) {
  if (!standin::has_compiler()) GTEST_SKIP() << standin::no_compiler;
  standin::use_nvrtc();
  standin::DriverControl *driver = standin::use_driver();
  ASSERT_NE(driver, nullptr);
  driver->reset({.max_threads = 4});
  const Sizes sizes = {{"n", 3}, {"t", 2}};
  constexpr unsigned programs = 60;
  std::vector<kernel::Fused> fused;
  std::string source(prelude());
  std::vector<std::string> names;
  std::vector<kiln_kernel_use> uses;
  for (unsigned seed = 0; seed < programs; ++seed) {
    const ProgramBuilder b = kernel::testing::random_program(seed);
    Result<kernel::Fused> result = kernel::fuse(b.program, GetParam(), {});
    ASSERT_TRUE(result.ok()) << result.status().message();
    for (size_t l = 0; l < result->launches.size(); ++l) {
      const std::string name = str_cat("p", seed, "_", l);
      Result<std::string> text = emit_source(*result->launches[l].kernel, name);
      ASSERT_TRUE(text.ok()) << text.status().message();
      source += *text;
      names.push_back(name);
      uses.push_back({.group_threads = block_threads,
                      .whole_group = mapping_of(*result->launches[l].kernel) == Mapping::block,
                      .registers = 0,
                      .spill_bytes = 0,
                      .shared_bytes = 0,
                      .reserved0 = 0});
    }
    fused.push_back(std::move(*result));
  }
  const Result<Nvrtc> nvrtc = Nvrtc::open();
  ASSERT_TRUE(nvrtc.ok()) << nvrtc.status().message();
  const Result<Cubin> cubin = nvrtc->compile(source, "sm_90");
  ASSERT_TRUE(cubin.ok()) << cubin.status().info()->report.substr(0, 2000);
  std::vector<kiln_device_kernel> kernels;
  for (size_t i = 0; i < names.size(); ++i)
    kernels.push_back({cubin->code.data(), cubin->code.size(), names[i].c_str(), uses[i]});
  testing::Checked check;
  const auto device = testing::open_device(check);
  const auto program = testing::load(check, device.get(), kernels);
  const auto queue = testing::open_queue(check, device.get());
  ASSERT_TRUE(check.status.ok()) << check.status.message();
  uint64_t number = 0;
  int compared = 0;
  for (unsigned seed = 0; seed < programs; ++seed) {
    const kernel::Fused &f = fused[seed];
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::vector<Array> expected(f.tensors.size());
    std::vector<std::vector<float>> got(f.tensors.size());
    for (size_t t = 0; t < f.tensors.size(); ++t) {
      const size_t size = static_cast<size_t>(value(product_of(f.tensors[t].dims), sizes));
      expected[t].resize(size);
      for (size_t e = 0; e < size; ++e) {
        got[t].push_back(uniform(random));
        expected[t][e].f = got[t].back();
      }
    }
    kernel::testing::run(f, expected, sizes);
    for (size_t l = 0; l < f.launches.size(); ++l)
      run_on_device(queue.get(), program.get(), number++, f.launches[l], got, sizes, check);
    ASSERT_TRUE(check.status.ok()) << check.status.message();
    for (size_t t = 0; t < f.tensors.size(); ++t) {
      if (!f.tensors[t].is_output) continue;
      for (size_t e = 0; e < got[t].size(); ++e, ++compared) {
        ASSERT_NEAR(got[t][e], expected[t][e].f, 1e-4 * (1 + std::abs(expected[t][e].f)))
            << "program " << seed << " tensor " << t << " element " << e;
      }
    }
  }
  EXPECT_GT(compared, 1000);
  EXPECT_EQ(driver->misuse(), std::vector<std::string>());
}

INSTANTIATE_TEST_SUITE_P(Schedules, CudaSource, ::testing::Values(Target{}, Target::device("sm_90")),
                         [](const auto &instance) { return instance.param.on_device() ? "device" : "processor"; });

}  // namespace
}  // namespace kiln::cuda
