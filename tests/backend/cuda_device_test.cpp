// What executables and calls do with a device: uploads, copies, lifetimes, failures. On the stand-ins, which compute
// and record; what a run gives is also shown on a GPU, where there is one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "runtime/graph/json.h"
#include "tests/backend/cuda_backend.h"

namespace kiln::testing {
namespace {

using standin::Record;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// y = x w' + table[i], and (c + c) w', which depends on parameters and constants alone.
constexpr std::string_view graph_json = R"({"kiln": 1,
  "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n", 2]}}],
  "parameters": [{"name": "w", "type": {"dtype": "f32", "shape": [2, 2]}}],
  "constants": [{"name": "c", "type": {"dtype": "f32", "shape": [1, 2]}, "data": [10, 20]}],
  "nodes": [{"name": "p", "op": "linear", "inputs": ["x", "w"]}, {"name": "cc", "op": "add", "inputs": ["c", "c"]},
            {"name": "q", "op": "linear", "inputs": ["cc", "w"]}, {"name": "y", "op": "add", "inputs": ["p", "q"]}],
  "outputs": [{"name": "y", "value": "y"}]})";

class CudaDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!standin::has_compiler()) GTEST_SKIP() << standin::no_compiler;
    standin::use_nvrtc();
    control_ = standin::use_driver();
    ASSERT_NE(control_, nullptr);
    compile("sm_90");
    control_->reset({});
  }
  void compile(const std::string &arch) {
    Result<GraphPtr> graph = read_json(graph_json, builtin_ops());
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    CompileOptions options = cuda_options();
    options.arch = arch;
    Result<Compiled> compiled = compile_alone(*graph, options);
    ASSERT_TRUE(compiled.ok()) << compiled.status().message();
    artifact_ = std::make_shared<const Artifact>(compiled->executable->artifact());
  }

  Result<std::shared_ptr<const Executable>> load() {
    static const auto pool = std::make_shared<ThreadPool>(1);
    return Executable::load(artifact_, builtin_ops(), pool, build_id(),
                            [](uint32_t index) { return modules()->device(**find_backend("cuda"), index); });
  }
  std::vector<Record> records_of(std::string_view function) { return standin::records_of(*control_, function); }
  void expect_all_given_back() {
    if (control_) standin::expect_all_given_back(*control_);
  }

  standin::DriverControl *control_ = nullptr;  // null on a GPU
  std::shared_ptr<const Artifact> artifact_;
};

class CudaDeviceRuns : public CudaDevice, public ::testing::WithParamInterface<bool> {
 protected:
  bool on_a_gpu() const { return GetParam(); }
  void SetUp() override {
    if (!on_a_gpu()) return CudaDevice::SetUp();
    if (const std::string reason = no_gpu(); !reason.empty()) GTEST_SKIP() << reason;
    compile("native");
  }
  // Of copies to the device that the driver has seen since the test began; a GPU's driver does not tell.
  void expect_uploads(size_t expected, const char *why) {
    if (control_) {
      EXPECT_EQ(records_of("cuMemcpyHtoDAsync_v2").size(), expected) << why;
    }
  }
};

// x and y of n rows, and the weights.
struct Arrays {
  explicit Arrays(int64_t n) : shape{n, 2}, x(static_cast<size_t>(2 * n)), y(x.size()) {
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  }
  Status bind(Call &call, std::vector<float> &weights) {
    const ArrayRef w{weights.data(), DType::f32, 2, square, nullptr};
    KILN_ASSIGN(const uint32_t slot, call.slot("w"));
    return call.bind(slot, w, nullptr);
  }
  Status run(Call &call) {
    const ArrayRef arrays[] = {{x.data(), DType::f32, 2, shape, nullptr}, {y.data(), DType::f32, 2, shape, nullptr}};
    return call.run(arrays);
  }
  void expect(const std::vector<float> &w) const {
    for (size_t i = 0; i < y.size(); i += 2)
      for (size_t o = 0; o < 2; ++o)
        ASSERT_FLOAT_EQ(y[i + o], (x[i] + 20) * w[2 * o] + (x[i + 1] + 40) * w[2 * o + 1]) << i + o;
  }

  const int64_t square[2] = {2, 2};
  const int64_t shape[2];
  std::vector<float> x, y;
};

TEST_P(CudaDeviceRuns, UploadsParametersOncePerBindingAndCopiesArraysAtEachRun) {
  {
    const auto executable = load();
    ASSERT_TRUE(executable.ok()) << executable.status().message();
    if (control_) {
      EXPECT_THAT(control_->records(), IsEmpty()) << "a device is opened by the first call";
    }
    auto call = Call::create(*executable);
    ASSERT_TRUE(call.ok()) << call.status().message();
    expect_uploads(1, "the constant");
    Arrays arrays(3);
    std::vector<float> w = {1, 2, 3, 4}, other = {5, 6, 7, 8};
    ASSERT_TRUE(arrays.bind(**call, w).ok());
    ASSERT_TRUE(arrays.run(**call).ok());
    arrays.expect(w);
    expect_uploads(3, "w and x");
    ASSERT_TRUE(arrays.run(**call).ok());
    expect_uploads(4, "x");

    auto clone = (*call)->clone();
    ASSERT_TRUE(clone.ok());
    Arrays larger(50);
    ASSERT_TRUE(larger.run(**clone).ok());
    larger.expect(w);
    expect_uploads(5, "clones share what is uploaded");
    if (control_) {
      EXPECT_EQ(records_of("cuModuleLoadData").size(), 1u);
    }

    ASSERT_TRUE(arrays.bind(**call, other).ok());
    ASSERT_TRUE(arrays.run(**call).ok());
    arrays.expect(other);
    ASSERT_TRUE(larger.run(**clone).ok());
    larger.expect(w);
  }
  expect_all_given_back();
}

TEST_P(CudaDeviceRuns, CallsOnSeveralThreadsDoNotMeet) {
  {
    const auto executable = load();
    ASSERT_TRUE(executable.ok());
    std::vector<std::thread> threads;
    std::vector<Status> statuses(4);
    std::vector<Arrays> arrays;
    std::vector<float> w = {1, 2, 3, 4};
    for (int64_t t = 0; t < 4; ++t) arrays.emplace_back(10 * t + 1);
    for (size_t t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        statuses[t] = [&]() -> Status {
          KILN_ASSIGN(const std::unique_ptr<Call> call, Call::create(*executable));
          KILN_TRY(arrays[t].bind(*call, w));
          for (int i = 0; i < 5; ++i) KILN_TRY(arrays[t].run(*call));
          return {};
        }();
      });
    }
    for (std::thread &thread : threads) thread.join();
    for (size_t t = 0; t < 4; ++t) {
      ASSERT_TRUE(statuses[t].ok()) << statuses[t].message();
      arrays[t].expect(w);
    }
  }
  expect_all_given_back();
}

TEST_F(CudaDevice, WhicheverDriverCallFailsTheErrorIsToldAndEverythingIsGivenBack) {
  std::vector<float> w = {1, 2, 3, 4};
  const auto everything = [&]() -> Status {
    KILN_ASSIGN(const std::shared_ptr<const Executable> executable, load());
    KILN_ASSIGN(const std::unique_ptr<Call> call, Call::create(executable));
    Arrays arrays(3);
    KILN_TRY(arrays.bind(*call, w));
    KILN_TRY(arrays.run(*call));
    arrays.expect(w);
    return {};
  };
  uint64_t failures = 0;
  for (bool failed = true; failed; ++failures) {
    control_->reset({});
    control_->fail(failures, 2);
    const Status status = everything();
    std::string which;
    for (const Record &record : control_->records())
      if (record.function.ends_with(" (failed)")) which = record.function;
    failed = !which.empty();
    ASSERT_THAT(control_->live(), IsEmpty()) << which;
    ASSERT_THAT(control_->misuse(), IsEmpty()) << which;
    if (failed && status.ok()) {
      EXPECT_EQ(which, "cuStreamSynchronize (failed)") << "when a queue is closed";
    } else if (failed) {
      EXPECT_EQ(status.code(), Code::out_of_memory) << status.message();
    }
  }
  EXPECT_GT(failures, 30u);
}

TEST_F(CudaDevice, KernelsForAnotherMachineAreRefusedByName) {
  Artifact other = *artifact_;
  Bytes cubin(64, 0);  // an ELF file of no machine that the stand-in runs
  cubin[0] = 0x7f, cubin[1] = 'E', cubin[2] = 'L', cubin[3] = 'F';
  for (Image &image : other.images) image.code = std::make_shared<const Bytes>(cubin);
  other.target = "sm_80";
  artifact_ = std::make_shared<const Artifact>(std::move(other));
  const auto executable = load();
  ASSERT_TRUE(executable.ok());
  const Status status = Call::create(*executable).take_status();
  EXPECT_EQ(status.code(), Code::incompatible);
  EXPECT_THAT(status.message(),
              ::testing::StartsWith("kernels for sm_80 on a device of sm_90: [cuda] cuModuleLoadData"));
  expect_all_given_back();
}

INSTANTIATE_TEST_SUITE_P(Devices, CudaDeviceRuns, ::testing::Bool(),
                         [](const auto &instance) { return instance.param ? "Gpu" : "Standins"; });

}  // namespace
}  // namespace kiln::testing
