// Runs on streams of the host's, and arrays in a GPU's memory, on the stand-ins for NVRTC and the driver; what a run
// gives is also shown on a GPU, where there is one.
#include <gmock/gmock.h>

#include <algorithm>
#include <memory>

#include "host.h"
#include "tests/standin/driver_host.h"
#include "tests/standin/standin.h"

namespace {

using kiln::standin::DriverHost;
using kiln::standin::Record;
using testing::ElementsAre;
using testing::IsEmpty;

kiln_run_options on(uint64_t stream, uint32_t flags = 0) {
  return {.struct_size = sizeof(kiln_run_options), .flags = flags, .stream = stream};
}

// A device array with its descriptor.
struct DeviceArray {
  std::vector<int64_t> shape;
  DLTensor tensor{};
  DeviceArray(DriverHost &driver, std::vector<int64_t> of, const std::vector<float> &values, int32_t device = 0)
      : shape(std::move(of)) {
    tensor = {driver.array(values),
              {kDLCUDA, device},
              static_cast<int32_t>(shape.size()),
              {kDLFloat, 32, 1},
              shape.data(),
              nullptr,
              0};
  }
  DeviceArray(const DeviceArray &) = delete;
  const float *data() const { return static_cast<const float *>(tensor.data); }
};

class Streams : public kiln::standin::OnStandins {
 protected:
  void SetUp() override {
    OnStandins::SetUp();
    if (!is_set_up()) return;
    library = kiln::standin::driver_path();
    prepare("sm_90");
  }
  void prepare(std::string_view arch) {
    context = host::make_context();
    executable = compile(host::small_graph, arch);
  }
  void TearDown() override {
    executable = nullptr;
    context = nullptr;
    if (control) kiln::standin::expect_all_given_back(*control);
  }

  host::Executable compile(std::string_view json, std::string_view arch) {
    const host::Graph graph = host::parse(context.get(), json);
    host::Compiled compiled = host::compile(context.get(), graph.get(), [&](kiln_options *options) {
      EXPECT_OK(kiln_options_set_text(options, "backend", 7, "cuda", 4));
      EXPECT_OK(kiln_options_set_text(options, "arch", 4, arch.data(), arch.size()));
    });
    EXPECT_EQ(compiled.error, host::Error());
    return std::move(compiled.executable);
  }
  kiln_error *open(int64_t device, host::Call &out) {
    kiln_options *options = nullptr;
    EXPECT_OK(kiln_options_create(&options));
    const host::Options owned(options);
    EXPECT_OK(kiln_options_set_i64(options, "device", 6, device));
    kiln_call *call = nullptr;
    kiln_error *error = kiln_call_open(executable.get(), options, &call);
    out.reset(call);
    return error;
  }
  host::Call make_call(const DLTensor *parameter) {
    host::Call call;
    EXPECT_OK(open(0, call));
    EXPECT_OK(kiln_call_bind(call.get(), 1, parameter));
    return call;
  }
  static kiln_error *run(const host::Call &call, std::initializer_list<const DLTensor *> args,
                         const kiln_run_options &options) {
    return kiln_call_run(call.get(), args.begin(), args.size(), &options);
  }
  size_t calls_of(std::string_view function) { return kiln::standin::records_of(*control, function).size(); }
  size_t copies() {
    return calls_of("cuMemcpyHtoDAsync_v2") + calls_of("cuMemcpyDtoHAsync_v2") + calls_of("cuMemcpyDtoDAsync_v2");
  }

  std::string library = "libcuda.so.1";
  host::Context context;
  host::Executable executable;
  host::Array w{{2}, {10, 20}};
  const std::vector<float> ones_to_four = {1, 2, 3, 4}, zeros = std::vector<float>(4), sum = {11, 22, 13, 24};
};

// On the stand-ins, and on a GPU.
class StreamsRun : public Streams, public testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    if (!GetParam()) return Streams::SetUp();
    unsetenv("KILN_NVRTC");
    unsetenv("KILN_LIBCUDA");
    context = host::make_context();
    const host::Graph graph = host::parse(context.get(), host::small_graph);
    host::Compiled compiled = host::compile(context.get(), graph.get(), [&](kiln_options *options) {
      EXPECT_OK(kiln_options_set_text(options, "backend", 7, "cuda", 4));
    });
    if (compiled.error.code == KILN_NO_DEVICE || compiled.error.code == KILN_UNIMPLEMENTED)
      GTEST_SKIP() << "SKIP: " << compiled.error.message;
    ASSERT_EQ(compiled.error, host::Error());
    executable = std::move(compiled.executable);
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, StreamsRun, testing::Bool(),
                         [](const auto &instance) { return instance.param ? "Gpu" : "Standins"; });

TEST_P(StreamsRun, DeviceArraysAreUsedWhereTheyAre) {
  DriverHost driver(library);
  const DeviceArray x(driver, {2, 2}, ones_to_four), y(driver, {2, 2}, zeros), dw(driver, {2}, {10, 20});
  const host::Call call = make_call(&dw.tensor);
  const host::Array host_x({2, 2}, {5, 6, 7, 8}), host_y({2, 2}, zeros);
  const size_t copied = control ? copies() : 0;
  ASSERT_OK(run(call, {&x.tensor, &y.tensor}, on(0)));
  if (control) {
    EXPECT_EQ(copies(), copied + 2) << "of the error word of prepare and of the run";
  }
  EXPECT_EQ(driver.values(y.data(), 4), sum);
  // Each argument for itself: one side the host's, then the other.
  ASSERT_OK(run(call, {&host_x.tensor, &y.tensor}, on(0)));
  EXPECT_EQ(driver.values(y.data(), 4), (std::vector<float>{15, 26, 17, 28}));
  ASSERT_OK(run(call, {&x.tensor, &host_y.tensor}, on(0)));
  EXPECT_EQ(host_y.values, sum);
  ASSERT_OK(run(call, {&x.tensor}, on(0)));
  const DLTensor *out = nullptr;
  ASSERT_OK(kiln_call_output(call.get(), 2, &out));
  EXPECT_EQ(out->device.device_type, kDLCPU) << "outputs that are Kiln's are the host's memory";
  EXPECT_EQ(static_cast<const float *>(out->data)[3], 24);
}

TEST_P(StreamsRun, ARunOnAStreamComesBetweenWhatItIsGivenBeforeAndAfter) {
  DriverHost driver(library);
  const DeviceArray x(driver, {2, 2}, ones_to_four), y(driver, {2, 2}, zeros), z(driver, {2, 2}, zeros);
  const host::Call call = make_call(&w.tensor);
  for (const uint64_t stream : {driver.stream(), uint64_t{1}, uint64_t{2}}) {
    ASSERT_OK(run(call, {&x.tensor, &y.tensor}, on(stream)));
    ASSERT_OK(run(call, {&y.tensor, &z.tensor}, on(stream)));  // queues
    EXPECT_EQ(driver.values(z.data(), 4, stream), (std::vector<float>{21, 42, 23, 44}));
    ASSERT_OK(kiln_call_wait(call.get()));
  }
}

TEST_P(StreamsRun, AnAsyncRunIsOverWhenPollSaysSo) {
  const host::Call call = make_call(&w.tensor);
  const host::Array x({2, 2}, ones_to_four), y({2, 2}, zeros);
  ASSERT_OK(run(call, {&x.tensor, &y.tensor}, on(0, KILN_RUN_ASYNC)));
  for (uint32_t done = 0; !done;) ASSERT_OK(kiln_call_poll(call.get(), &done));
  EXPECT_EQ(y.values, sum);
}

TEST_F(Streams, NothingIsWaitedForUntilWait) {
  {
    DriverHost driver(library);
    const uint64_t stream = driver.stream();
    const DeviceArray x(driver, {2, 2}, ones_to_four), y(driver, {2, 2}, zeros);
    const host::Call call = make_call(&w.tensor);
    ASSERT_OK(run(call, {&x.tensor, &y.tensor}, on(0)));  // prepares
    const size_t waits = calls_of("cuStreamSynchronize"), before = control->records().size();
    ASSERT_OK(run(call, {&x.tensor, &y.tensor}, on(stream)));
    EXPECT_EQ(calls_of("cuStreamSynchronize"), waits);
    std::vector<std::string> given;
    std::vector<Record> records = control->records();
    for (size_t i = before; i < records.size(); i++)
      if (records[i].stream)
        given.push_back(records[i].function + (records[i].stream == stream ? " of the host's" : ""));
    EXPECT_THAT(given, ElementsAre("cuEventRecord of the host's", "cuStreamWaitEvent", "cuLaunchKernel",
                                   "cuEventRecord", "cuStreamWaitEvent of the host's"));
    ASSERT_OK(kiln_call_wait(call.get()));
    EXPECT_EQ(calls_of("cuStreamSynchronize"), waits + 1);
    EXPECT_EQ(driver.values(y.data(), 4), sum);
  }
}

TEST_F(Streams, ARunThatTimesItsStepsWaitsForEach) {
  const host::Call call = make_call(&w.tensor);
  const host::Array x({2, 2}, ones_to_four), y({2, 2}, zeros);
  ASSERT_OK(run(call, {&x.tensor, &y.tensor}, on(0)));
  const size_t waits = calls_of("cuStreamSynchronize");
  ASSERT_OK(run(call, {&x.tensor, &y.tensor}, on(0)));
  const size_t untimed = calls_of("cuStreamSynchronize") - waits;
  ASSERT_OK(run(call, {&x.tensor, &y.tensor}, on(0, KILN_RUN_STEPS)));
  EXPECT_EQ(y.values, sum);
  kiln_report *made = nullptr;
  ASSERT_OK(kiln_call_report(call.get(), &made));
  const host::Report report(made);
  uint64_t steps = 0;
  ASSERT_OK(kiln_report_count(report.get(), "steps", 5, &steps));
  EXPECT_EQ(steps, 1u);
  EXPECT_EQ(host::text(report, "steps.0.what").rfind("kernel 0(x", 0), 0u);
  EXPECT_EQ(calls_of("cuStreamSynchronize") - waits, 2 * untimed + steps);
}

TEST_F(Streams, PollAsksTheDriverAndDoesNotWait) {
  {
    const host::Call call = make_call(&w.tensor);
    const host::Array x({2, 2}, ones_to_four), y({2, 2}, zeros);
    kiln::standin::DriverControl::Settings settings;
    ASSERT_OK(run(call, {&x.tensor, &y.tensor}, on(0, KILN_RUN_ASYNC)));
    settings.busy = 2;
    control->reset(settings);
    std::vector<uint32_t> answers;
    for (uint32_t done = 0; !done; answers.push_back(done)) ASSERT_OK(kiln_call_poll(call.get(), &done));
    EXPECT_THAT(answers, ElementsAre(0, 0, 1));
    EXPECT_EQ(calls_of("cuStreamQuery"), 3u);
  }
}

TEST_F(Streams, ArraysElsewhereAreRefusedByName) {
  {
    DriverHost driver(library);
    const DeviceArray x(driver, {2, 2}, ones_to_four), other(driver, {2, 2}, ones_to_four, 1);
    const DeviceArray y(driver, {2, 2}, zeros);
    DLTensor rocm = x.tensor;
    rocm.device = {kDLROCM, 2};
    const host::Call call = make_call(&w.tensor);
    EXPECT_FAILS(run(call, {&other.tensor, &y.tensor}, on(0)), KILN_NO_DEVICE,
                 "input 'x' is on cuda:1, expected cuda:0, or the host's memory");
    EXPECT_FAILS(run(call, {&x.tensor, &rocm}, on(0)), KILN_NO_DEVICE,
                 "output 'y' is on rocm:2, expected cuda:0, or the host's memory");
    EXPECT_FAILS(kiln_call_bind(call.get(), 0, &other.tensor), KILN_NO_DEVICE,
                 "input 'x' is on cuda:1, expected cuda:0");
    EXPECT_FAILS(kiln_call_bind(call.get(), 1, &rocm), KILN_TYPE_MISMATCH, "parameter 'w': rank is 2");
    ASSERT_OK(run(call, {&x.tensor, &y.tensor}, on(0)));
    EXPECT_EQ(driver.values(y.data(), 4), sum);
    // The address of before, as if it were another device's.
    DLTensor moved = x.tensor;
    moved.device.device_id = 1;
    EXPECT_FAILS(run(call, {&moved, &y.tensor}, on(0)), KILN_NO_DEVICE, "input 'x' is on cuda:1, expected cuda:0");
  }
}

TEST_F(Streams, ACallRunsOnTheDeviceThatItIsOpenedFor) {
  host::Call call;
  EXPECT_FAILS(open(1, call), KILN_NO_DEVICE, "device 1 was asked for; the driver has 1");
  EXPECT_FAILS(open(-1, call), KILN_INVALID_ARGUMENT, "option 'device' is -1, out of its range");
  kiln::standin::DriverControl::Settings two;
  two.devices = 2;
  control->reset(two);
  {
    DriverHost driver(library, 1);
    const DeviceArray x(driver, {2, 2}, ones_to_four, 1), y(driver, {2, 2}, zeros, 1), first(driver, {2, 2}, zeros, 0);
    ASSERT_OK(open(1, call));
    ASSERT_OK(kiln_call_bind(call.get(), 1, &w.tensor));
    ASSERT_OK(run(call, {&x.tensor, &y.tensor}, on(0)));
    EXPECT_EQ(driver.values(y.data(), 4), sum);
    EXPECT_FAILS(run(call, {&first.tensor, &y.tensor}, on(0)), KILN_NO_DEVICE,
                 "input 'x' is on cuda:0, expected cuda:1");
    // Clones run there, too; another call of the same executable on the first device.
    kiln_call *clone = nullptr;
    ASSERT_OK(kiln_call_clone(call.get(), &clone));
    call.reset(clone);
    ASSERT_OK(run(call, {&x.tensor, &y.tensor}, on(0)));
    call = make_call(&w.tensor);
    const host::Array host_x({2, 2}, ones_to_four), host_y({2, 2}, zeros);
    ASSERT_OK(run(call, {&host_x.tensor, &host_y.tensor}, on(0)));
    EXPECT_EQ(host_y.values, sum);
    call = nullptr;
  }
}

TEST_F(Streams, InFlightOnAStreamAnotherIsRefused) {
  {
    DriverHost driver(library);
    const uint64_t stream = driver.stream(), other = driver.stream();
    const host::Call call = make_call(&w.tensor);
    const host::Array x({2, 2}, ones_to_four), y({2, 2}, zeros);
    ASSERT_OK(run(call, {&x.tensor, &y.tensor}, on(stream)));
    const std::string is_busy = "in flight on stream " + std::to_string(stream) + ", and this one is for ";
    EXPECT_FAILS(run(call, {&x.tensor, &y.tensor}, on(other)), KILN_BUSY, is_busy + "stream " + std::to_string(other));
    EXPECT_FAILS(run(call, {&x.tensor, &y.tensor}, on(0)), KILN_BUSY, is_busy + "Kiln's own stream");
    EXPECT_FAILS(kiln_call_bind(call.get(), 1, &w.tensor), KILN_BUSY, "in flight");
    ASSERT_OK(kiln_call_wait(call.get()));
    EXPECT_EQ(y.values, sum);
    ASSERT_OK(run(call, {&x.tensor, &y.tensor}, on(other)));
  }
}

TEST_F(Streams, AStreamThatIsNoneIsRefusedAndTheNextRunWorks) {
  {
    const host::Call call = make_call(&w.tensor);
    const host::Array x({2, 2}, ones_to_four), y({2, 2}, zeros);
    EXPECT_FAILS(run(call, {&x.tensor, &y.tensor}, on(4711)), KILN_INVALID_ARGUMENT,
                 "stream 4711: [cuda] cuEventRecord");
    ASSERT_OK(kiln_call_wait(call.get()));
    ASSERT_OK(run(call, {&x.tensor, &y.tensor}, on(0)));
    EXPECT_EQ(y.values, sum);
  }
  EXPECT_THAT(control->misuse(), ElementsAre("cuEventRecord of stream 4711, which is not live"));
  control->reset({});
}

TEST_F(Streams, WhatKernelsFindIsToldInWaitOnce) {
  const host::Executable picks = compile(R"({"kiln": 1,
    "inputs": [{"name": "table", "type": {"dtype": "f32", "shape": [3]}}, {"name": "i", "type": {"dtype": "i64", "shape": [2]}}],
    "nodes": [{"name": "picked", "op": "gather", "inputs": ["table", "i"], "attrs": {"dim": 0}}],
    "outputs": [{"name": "y", "value": "picked"}]})",
                                         "sm_90");
  {
    DriverHost driver(library);
    kiln_call *made = nullptr;
    ASSERT_OK(kiln_call_create(picks.get(), &made));
    const host::Call call(made);
    const DeviceArray table(driver, {3}, {1, 2, 3}), y(driver, {2}, {0, 0});
    std::vector<int64_t> bad = {0, 7}, good = {2, 0};
    const int64_t two = 2;
    DLTensor i{bad.data(), {kDLCPU, 0}, 1, {kDLInt, 64, 1}, const_cast<int64_t *>(&two), nullptr, 0};
    const uint64_t stream = driver.stream();
    ASSERT_OK(run(call, {&table.tensor, &i, &y.tensor}, on(stream)));
    i.data = good.data();
    ASSERT_OK(run(call, {&table.tensor, &i, &y.tensor}, on(stream)));
    EXPECT_FAILS(kiln_call_wait(call.get()), KILN_OUT_OF_RANGE, "in node 'picked'");
    EXPECT_EQ(driver.values(y.data(), 2), (std::vector<float>{3, 1}));
    EXPECT_OK(kiln_call_wait(call.get()));
    ASSERT_OK(run(call, {&table.tensor, &i, &y.tensor}, on(0)));
  }
}

TEST_F(Streams, OutputsWithStridesOfTheirOwnAreRefusedInAGpusMemory) {
  const host::Executable strided =
      compile(R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": [2, 2]}}],
    "nodes": [{"name": "n", "op": "neg", "inputs": ["x"]}],
    "outputs": [{"name": "y", "value": "n", "type": {"dtype": "f32", "shape": [2, 2], "strides": [1, 2]}}]})",
              "sm_90");
  {
    DriverHost driver(library);
    kiln_call *made = nullptr;
    ASSERT_OK(kiln_call_create(strided.get(), &made));
    const host::Call call(made);
    const int64_t strides[] = {1, 2};
    DeviceArray x(driver, {2, 2}, ones_to_four), y(driver, {2, 2}, zeros);
    y.tensor.strides = const_cast<int64_t *>(strides);
    EXPECT_FAILS(run(call, {&x.tensor, &y.tensor}, on(0)), KILN_UNIMPLEMENTED, "output 'y' is on cuda:0");
    host::Array host_y({2, 2}, zeros);
    host_y.tensor.strides = const_cast<int64_t *>(strides);
    ASSERT_OK(run(call, {&x.tensor, &host_y.tensor}, on(1)));
    ASSERT_OK(kiln_call_wait(call.get()));
    EXPECT_EQ(host_y.values, (std::vector<float>{-1, -3, -2, -4}));
  }
}

// Each of the driver's calls of runs on streams fails in turn: it is told, nothing is left, and what comes after works.
TEST_F(Streams, WhicheverDriverCallFailsItIsToldAndTheNextRunWorks) {
  uint64_t failures = 0;
  for (bool failed = true; failed; failures++) {
    control->reset({});
    std::string which;
    {
      DriverHost driver(library);
      const uint64_t stream = driver.stream();
      const DeviceArray x(driver, {2, 2}, ones_to_four), y(driver, {2, 2}, zeros);
      const host::Array host_x({2, 2}, {5, 6, 7, 8}), host_y({2, 2}, zeros);
      host::Call call;
      control->fail(failures, 2);
      std::vector<host::Error> errors;
      const auto took = [&](kiln_error *error) {
        errors.push_back(host::take(error));
        return errors.back() == host::Error();
      };
      if (took(open(0, call))) {
        took(kiln_call_bind(call.get(), 1, &w.tensor));
        took(run(call, {&x.tensor, &y.tensor}, on(stream)));
        took(run(call, {&host_x.tensor, &host_y.tensor}, on(stream)));
        uint32_t done = 0;
        took(kiln_call_poll(call.get(), &done));
        took(kiln_call_wait(call.get()));
        took(run(call, {&host_x.tensor, &host_y.tensor}, on(0, KILN_RUN_ASYNC)));
        took(kiln_call_wait(call.get()));
      }
      for (const Record &record : control->records())
        if (record.function.ends_with(" (failed)")) which = record.function;
      failed = !which.empty();
      std::erase(errors, host::Error());
      if (failed) {
        EXPECT_TRUE(!errors.empty() || which == "cuStreamSynchronize (failed)")
            << "but when a queue is closed: " << which;
        for (const host::Error &error : errors) EXPECT_EQ(error.code, KILN_OUT_OF_MEMORY) << which << ": " << error;
      } else {
        EXPECT_THAT(errors, IsEmpty());
        control->fail(UINT64_MAX, 0);
      }
      if (!call) ASSERT_OK(open(0, call));
      const testing::ScopedTrace trace(__FILE__, __LINE__, which);
      ASSERT_OK(kiln_call_wait(call.get()));
      ASSERT_OK(kiln_call_bind(call.get(), 1, &w.tensor));
      ASSERT_OK(run(call, {&x.tensor, &y.tensor}, on(stream)));
      ASSERT_OK(kiln_call_wait(call.get()));
      EXPECT_EQ(driver.values(y.data(), 4), sum);
      ASSERT_OK(run(call, {&host_x.tensor, &host_y.tensor}, on(0)));
      EXPECT_EQ(host_y.values, (std::vector<float>{15, 26, 17, 28})) << which;
    }
    ASSERT_THAT(control->misuse(), IsEmpty()) << which;
  }
  EXPECT_GT(failures, 40u);
}

}  // namespace
