// The device table: on the stand-in, which records and fails when told to, and on a GPU where there is one.
#include "jit/cuda/device_functions.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "jit/base/dynamic_library.h"
#include "jit/base/kernel_args.h"
#include "jit/cuda/launch.h"
#include "tests/unit/jit/cuda/standin_device.h"

namespace kiln::cuda {
namespace {

using standin::DriverControl;
using standin::Record;
using testing::Checked;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// out[i] = x[i] + s0, and the error word when x[i] is negative; with whole groups: sums of rows of 3 as well, by way of
// scratch and shared memory.
constexpr const char *kernels_source = R"(
struct add_args { void *buffers[2]; kiln_i64 sizes[1]; kiln_i64 points; unsigned char *scratch; unsigned *error_word; };
extern "C" __global__ void __launch_bounds__(256) add(const add_args args) {
  for (kiln_i64 i = blockIdx.x * (kiln_i64)blockDim.x + threadIdx.x; i < args.points; i += (kiln_i64)gridDim.x * blockDim.x) {
    const float x = ((const float *)args.buffers[0])[i];
    if (x < 0) atomicOr(args.error_word, 2u);
    ((float *)args.buffers[1])[i] = x + args.sizes[0];
  }
}
struct rows_args { void *buffers[2]; kiln_i64 sizes[1]; kiln_i64 points; unsigned char *scratch; unsigned *error_word; };
extern "C" __global__ void __launch_bounds__(256) rows(const rows_args args) {
  __shared__ float sums[256];
  float *own = (float *)(args.scratch + blockIdx.x * 64);
  for (kiln_i64 row = blockIdx.x; row < args.points; row += gridDim.x) {
    for (kiln_i64 k = threadIdx.x; k < 3; k += blockDim.x) own[k] = ((const float *)args.buffers[0])[row * 3 + k];
    __syncthreads();
    sums[threadIdx.x] = threadIdx.x < 3 ? own[threadIdx.x] : 0;
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
      __syncthreads();
      if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    __syncthreads();
    if (threadIdx.x == 0) ((float *)args.buffers[1])[row] = sums[0];
    __syncthreads();
  }
}
)";

kiln_kernel_use use(bool whole_group) {
  return {.group_threads = block_threads,
          .whole_group = whole_group,
          .registers = 0,
          .spill_bytes = 0,
          .shared_bytes = 0,
          .reserved0 = 0};
}

// Bytes that no stand-in can run: launches are recorded, and change nothing.
const Bytes no_code = {'n', 'o', ' ', 'c', 'o', 'd', 'e', 0};

struct Outcome {
  Status status;
  std::vector<float> added, sums;
  uint32_t error_word = 0;
};

// All that the table does, once: two kernels of one image, two queues of which one follows the other, memory that
// grows.
Outcome run_everything(const Bytes &image, std::vector<float> x) {
  Checked check;
  Outcome out;
  const auto device = testing::open_device(check);
  const auto program =
      testing::load(check, device.get(),
                    {{image.data(), image.size(), "add", use(false)}, {image.data(), image.size(), "rows", use(true)}});
  const auto first = testing::open_queue(check, device.get());
  const auto second = testing::open_queue(check, device.get());
  if (check.status.ok()) {
    const uint64_t bytes = x.size() * sizeof(float);
    const int64_t points = static_cast<int64_t>(x.size()), seven = 7;
    testing::DeviceArray input(check, first.get(), bytes), copied(check, second.get(), bytes),
        added(check, second.get(), bytes), sums(check, second.get(), bytes);
    input.copy_in(check, x.data());
    check(device_table.follow, second.get(), first.get());
    check(device_table.copy, second.get(), copied.address(), input.address(), bytes);
    const uint64_t to_add[] = {copied.address(), added.address()}, to_sum[] = {added.address(), sums.address()};
    const kiln_device_launch add{program.get(), 0, to_add, 2, &seven, 1, points, 0};
    const kiln_device_launch rows{program.get(), 1, to_sum, 2, &seven, 1, points / 3, 64};
    check(device_table.launch, second.get(), &add);
    check(device_table.launch, second.get(), &rows);
    out.added.resize(x.size());
    out.sums.resize(x.size());
    added.copy_out(check, out.added.data());
    sums.copy_out(check, out.sums.data());
    check(device_table.finish, second.get(), &out.error_word);
  }
  out.status = check.status;
  return out;
}

class StandinDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    control_ = standin::use_driver();
    ASSERT_NE(control_, nullptr);
    control_->reset({});
  }
  std::vector<std::string> functions() {
    std::vector<std::string> names;
    for (const Record &record : control_->records())
      if (record.function.find("Ctx") == std::string::npos && record.function.find("Attribute") == std::string::npos)
        names.push_back(record.function);
    return names;
  }
  std::vector<Record> records_of(std::string_view function) { return standin::records_of(*control_, function); }
  void expect_all_given_back() { standin::expect_all_given_back(*control_); }

  DriverControl *control_ = nullptr;
};

TEST_F(StandinDevice, DoesItsWorkInOrderAndGivesEverythingBackOnce) {
  ASSERT_TRUE(run_everything(no_code, {1, 2, 3}).status.ok());
  EXPECT_THAT(functions(),
              ElementsAre("cuInit", "cuDeviceGetCount", "cuDeviceGet", "cuModuleLoadData", "cuModuleGetFunction",
                          "cuModuleGetFunction",                                    // one image, loaded once
                          "cuStreamCreate", "cuMemAllocAsync", "cuMemsetD32Async",  // a queue and its error word
                          "cuStreamCreate", "cuMemAllocAsync", "cuMemsetD32Async",  //
                          "cuMemAllocAsync", "cuMemAllocAsync", "cuMemAllocAsync", "cuMemAllocAsync",
                          "cuMemcpyHtoDAsync_v2",                                                      //
                          "cuEventCreate", "cuEventRecord", "cuStreamWaitEvent", "cuEventDestroy_v2",  // follow
                          "cuMemcpyDtoDAsync_v2", "cuLaunchKernel", "cuMemAllocAsync",                 // scratch
                          "cuLaunchKernel", "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoHAsync_v2",            //
                          "cuMemcpyDtoHAsync_v2", "cuStreamSynchronize",                               // the error word
                          "cuMemFreeAsync", "cuMemFreeAsync", "cuMemFreeAsync", "cuMemFreeAsync",      //
                          "cuStreamSynchronize", "cuMemFreeAsync", "cuMemFreeAsync", "cuStreamDestroy_v2",  // second
                          "cuStreamSynchronize", "cuMemFreeAsync", "cuStreamDestroy_v2", "cuModuleUnload"));
  expect_all_given_back();
}

TEST_F(StandinDevice, KeepsEachQueueToItsStream) {
  ASSERT_TRUE(run_everything(no_code, {1, 2, 3}).status.ok());
  const std::vector<Record> streams = records_of("cuStreamCreate");
  ASSERT_EQ(streams.size(), 2u);
  const uint64_t first = streams[0].stream, second = streams[1].stream;
  EXPECT_NE(first, second);
  EXPECT_EQ(records_of("cuMemcpyHtoDAsync_v2")[0].stream, first);
  EXPECT_EQ(records_of("cuEventRecord")[0].stream, first);
  EXPECT_EQ(records_of("cuStreamWaitEvent")[0].stream, second);
  EXPECT_EQ(records_of("cuStreamWaitEvent")[0].object, records_of("cuEventRecord")[0].object);
  for (const char *function : {"cuMemcpyDtoDAsync_v2", "cuLaunchKernel", "cuMemcpyDtoHAsync_v2"})
    for (const Record &record : records_of(function)) EXPECT_EQ(record.stream, second) << function;
  // What is freed in a stream's order was allocated in it.
  for (const Record &freed : records_of("cuMemFreeAsync")) {
    for (const Record &allocated : records_of("cuMemAllocAsync")) {
      if (allocated.object == freed.object) {
        EXPECT_EQ(allocated.stream, freed.stream);
      }
    }
  }
}

TEST_F(StandinDevice, LaunchesWithTheParameterThatTheSourceDeclares) {
  ASSERT_TRUE(run_everything(no_code, std::vector<float>(30, 1.0f)).status.ok());
  const std::vector<Record> launches = records_of("cuLaunchKernel"), memory = records_of("cuMemAllocAsync");
  ASSERT_EQ(launches.size(), 2u);
  // In order of allocation: two error words; input, copied, added, sums; scratch.
  const uint64_t error_word = memory[1].object, copied = memory[3].object, added = memory[4].object,
                 sums = memory[5].object, scratch = memory[6].object;
  const auto words = [](const Record &launch) {
    std::vector<uint64_t> out(launch.parameter.size() / 8);
    std::memcpy(out.data(), launch.parameter.data(), out.size() * 8);
    return out;
  };
  EXPECT_EQ(launches[0].name, "add");
  EXPECT_EQ(launches[0].blocks, 4u);  // of 8 threads, for 30 points
  EXPECT_EQ(launches[0].threads, 8u);
  EXPECT_THAT(words(launches[0]), ElementsAre(copied, added, 7, 30, 0, error_word));
  EXPECT_EQ(launches[1].name, "rows");
  EXPECT_EQ(launches[1].blocks, 10u);
  EXPECT_THAT(words(launches[1]), ElementsAre(added, sums, 7, 10, scratch, error_word));
  EXPECT_EQ(memory[6].bytes, 10 * 64u);
}

TEST_F(StandinDevice, WithoutMemoryPoolsAllocatesAtOnce) {
  control_->reset({.memory_pools = false});
  ASSERT_TRUE(run_everything(no_code, {1, 2, 3}).status.ok());
  EXPECT_TRUE(records_of("cuMemAllocAsync").empty());
  EXPECT_EQ(records_of("cuMemAlloc_v2").size(), records_of("cuMemFree_v2").size());
  expect_all_given_back();
}

// Whichever call fails, the error names it, and all that was made is given back once.
TEST_F(StandinDevice, GivesEverythingBackWhicheverCallFails) {
  constexpr int out_of_memory = 2;
  for (const bool pools : {true, false}) {
    uint64_t failures = 0;
    for (;; ++failures) {
      control_->reset({.memory_pools = pools});
      control_->fail(failures, out_of_memory);
      const Outcome outcome = run_everything(no_code, {1, 2, 3});
      std::string failed;
      for (const Record &record : control_->records())
        if (const size_t at = record.function.find(" (failed)"); at != std::string::npos)
          failed = record.function.substr(0, at);
      ASSERT_THAT(control_->live(), IsEmpty()) << "call " << failures << ", " << failed;
      ASSERT_THAT(control_->misuse(), IsEmpty()) << "call " << failures << ", " << failed;
      if (failed.empty()) break;  // more calls than there are
      // Closing a queue waits for it; that it cannot is nobody's error any more.
      if (outcome.status.ok() && failed == "cuStreamSynchronize") continue;
      ASSERT_FALSE(outcome.status.ok()) << "call " << failures << ", " << failed;
      EXPECT_EQ(outcome.status.code(), Code::out_of_memory);
      const std::string base = failed.substr(0, failed.find("_v2"));
      EXPECT_THAT(outcome.status.message(), HasSubstr("[cuda]"));
      EXPECT_THAT(outcome.status.message(), HasSubstr(base));
      EXPECT_THAT(outcome.status.message(), HasSubstr("CUDA_ERROR_OUT_OF_MEMORY: out of memory"));
    }
    EXPECT_GT(failures, 30u);
  }
}

TEST_F(StandinDevice, AContextThatCannotBeMadeCurrentIsAnError) {
  control_->reset({.push_error = 2});
  const Outcome outcome = run_everything(no_code, {1, 2, 3});
  EXPECT_THAT(outcome.status.message(), HasSubstr("cuCtxPushCurrent: CUDA_ERROR_OUT_OF_MEMORY"));
  expect_all_given_back();
}

TEST_F(StandinDevice, TellsTheArchitectureOfTheDevice) {
  control_->reset({.major = 12, .minor = 1});
  Checked check;
  const auto device = testing::open_device(check);
  ASSERT_TRUE(check.status.ok()) << check.status.message();
  EXPECT_STREQ(device_table.arch(device.get()), "sm_121");
}

TEST_F(StandinDevice, ADriverWithoutADeviceIsNoDevice) {
  control_->reset({.devices = 0});
  Checked check;
  const auto device = testing::open_device(check);
  EXPECT_EQ(check.status.code(), Code::no_device);
  EXPECT_THAT(check.status.message(), HasSubstr("cuInit: CUDA_ERROR_NO_DEVICE"));
}

TEST(Driver, AMissingLibraryIsNoDeviceAndNamed) {
  setenv("KILN_LIBCUDA", "/nowhere/libcuda.so.1", 1);
  Checked check;
  const auto device = testing::open_device(check);
  EXPECT_EQ(check.status.code(), Code::no_device);
  for (const char *part : {"/nowhere/libcuda.so.1", "KILN_LIBCUDA"})
    EXPECT_THAT(check.status.message(), HasSubstr(part));
}

TEST(Driver, ALibraryThatIsNoDriverIsNoDevice) {
  setenv("KILN_LIBCUDA", standin::nvrtc_path().c_str(), 1);
  Checked check;
  const auto device = testing::open_device(check);
  EXPECT_EQ(check.status.code(), Code::no_device);
  EXPECT_THAT(check.status.message(), HasSubstr("has no symbol 'cuInit'"));
}

TEST(Launch, AFewBlocksForEachMultiprocessorStrideOverThePoints) {
  const auto of = [](bool whole_group, int64_t points, uint32_t max_threads) {
    const Dimensions d = dimensions_of(use(whole_group), points, max_threads, 10);
    return std::pair(d.blocks, d.threads);
  };
  EXPECT_EQ(of(false, 1, 1024), std::pair(1u, 256u));
  EXPECT_EQ(of(false, 257, 1024), std::pair(2u, 256u));
  EXPECT_EQ(of(false, int64_t{1} << 40, 1024), std::pair(80u, 256u));
  EXPECT_EQ(of(true, 5, 1024), std::pair(5u, 256u));
  EXPECT_EQ(of(true, 1000, 1024), std::pair(80u, 256u));
  EXPECT_EQ(of(true, 5, 200), std::pair(5u, 128u)) << "a power of two";
}

// ---- real values: on the stand-in with its compiler, and on a GPU with NVRTC

void expect_real_values() {
  const Result<Nvrtc> nvrtc = Nvrtc::open();
  ASSERT_TRUE(nvrtc.ok()) << nvrtc.status().message();
  Checked check;
  const auto device = testing::open_device(check);
  ASSERT_TRUE(check.status.ok()) << check.status.message();
  const Result<Cubin> cubin = nvrtc->compile(std::string(prelude()) + kernels_source, device_table.arch(device.get()));
  ASSERT_TRUE(cubin.ok()) << cubin.status().message();
  std::vector<float> x(3000);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 50);
  Outcome out = run_everything(cubin->code, x);
  ASSERT_TRUE(out.status.ok()) << out.status.message();
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(out.added[i], x[i] + 7) << i;
  for (size_t i = 0; i < x.size() / 3; ++i) ASSERT_EQ(out.sums[i], x[3 * i] + x[3 * i + 1] + x[3 * i + 2] + 21) << i;
  EXPECT_EQ(out.error_word, 0u);
  x[100] = -1;
  out = run_everything(cubin->code, x);
  EXPECT_EQ(out.error_word, KILN_ERROR_INDEX_OUT_OF_RANGE);
}

TEST_F(StandinDevice, ComputesRealValues) {
  if (!standin::has_compiler()) GTEST_SKIP() << standin::no_compiler;
  standin::use_nvrtc();
  expect_real_values();
  expect_all_given_back();
}

TEST(RealDevice, ComputesRealValues) {
  unsetenv("KILN_LIBCUDA");
  unsetenv("KILN_NVRTC");
  Checked check;
  testing::open_device(check);
  if (check.status.code() == Code::no_device) GTEST_SKIP() << "SKIP: " << check.status.message();
  if (const Status nvrtc = Nvrtc::open().take_status(); !nvrtc.ok()) GTEST_SKIP() << "SKIP: " << nvrtc.message();
  expect_real_values();
}

}  // namespace
}  // namespace kiln::cuda
