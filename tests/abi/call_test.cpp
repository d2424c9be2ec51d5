// From a graph to results: compile, bind, run, take, clone, save and load.

#include <chrono>
#include <fstream>
#include <thread>

#include "host.h"
#include "tests/temporary_folder.h"

namespace {

class CallTest : public testing::TestWithParam<const char *> {
 protected:
  host::Executable compile() {
    host::Compiled compiled = host::compile(context.get(), graph.get(), [](kiln_options *options) {
      EXPECT_OK(kiln_options_set_text(options, "backend", 7, GetParam(), std::strlen(GetParam())));
    });
    EXPECT_EQ(compiled.error.code, KILN_OK) << compiled.error.message;
    return std::move(compiled.executable);
  }
  host::Call make_call(kiln_executable *of) {
    kiln_call *made = nullptr;
    EXPECT_OK(kiln_call_create(of, &made));
    return host::Call(made);
  }
  uint32_t slot(const host::Call &of, std::string_view name) {
    uint32_t number = 0;
    EXPECT_OK(kiln_call_slot(of.get(), name.data(), name.size(), &number));
    return number;
  }
  void expect_runs(kiln_executable *of) {
    const host::Call again = make_call(of);
    const host::Array x({1, 2}, {1, 2}), y({1, 2}, {0, 0});
    ASSERT_OK(kiln_call_bind(again.get(), slot(again, "w"), &w.tensor));
    const DLTensor *args[] = {&x.tensor, &y.tensor};
    ASSERT_OK(kiln_call_run(again.get(), args, 2, nullptr));
    EXPECT_EQ(y.values[1], 22.0f);
  }
  host::Context context = host::make_context();
  host::Graph graph = host::parse(context.get(), host::small_graph);
  host::Executable executable = compile();
  host::Call call = make_call(executable.get());
  host::Array w{{2}, {10, 20}};
};
INSTANTIATE_TEST_SUITE_P(Backend, CallTest, testing::Values("cpu", "reference"),
                         [](const auto &test) { return test.param; });

TEST_P(CallTest, OneCompilationServesSizes) {
  ASSERT_OK(kiln_call_bind(call.get(), slot(call, "w"), &w.tensor));
  for (int64_t n : {1, 3, 0}) {
    const host::Array x({n, 2}, std::vector<float>(static_cast<size_t>(2 * n), 1.5f));
    const host::Array y({n, 2}, std::vector<float>(static_cast<size_t>(2 * n)));
    const DLTensor *args[] = {&x.tensor, &y.tensor};
    ASSERT_OK(kiln_call_run(call.get(), args, 2, nullptr));
    for (size_t i = 0; i < y.values.size(); i++) EXPECT_EQ(y.values[i], i % 2 ? 21.5f : 11.5f);
  }
}

TEST_P(CallTest, WhatDependsOnASizeIsComputedForEachSizeThoughItReadsParametersAlone) {
  graph = host::parse(context.get(), R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n"]}}],
    "parameters": [{"name": "w", "type": {"dtype": "f32", "shape": [1]}}],
    "nodes": [{"name": "wide", "op": "expand", "inputs": ["w"], "attrs": {"shape": ["n"]}},
              {"name": "e", "op": "exp", "inputs": ["wide"]}, {"name": "y", "op": "add", "inputs": ["x", "e"]}],
    "outputs": [{"name": "y", "value": "y"}]})");
  const host::Executable sized = compile();
  const host::Call of_sizes = make_call(sized.get());
  const host::Array zero({1}, {0});
  ASSERT_OK(kiln_call_bind(of_sizes.get(), slot(of_sizes, "w"), &zero.tensor));
  for (int64_t n : {2, 300, 1}) {
    const host::Array x({n}, std::vector<float>(static_cast<size_t>(n), 2));
    const host::Array y({n}, std::vector<float>(static_cast<size_t>(n)));
    const DLTensor *args[] = {&x.tensor, &y.tensor};
    ASSERT_OK(kiln_call_run(of_sizes.get(), args, 2, nullptr));
    EXPECT_EQ(y.values, std::vector<float>(static_cast<size_t>(n), 3)) << n;
  }
}

TEST_P(CallTest, OutputsThatKilnAllocatesAreTaken) {
  ASSERT_OK(kiln_call_bind(call.get(), slot(call, "w"), &w.tensor));
  const host::Array x({2, 2}, {1, 2, 3, 4});
  const DLTensor *args[] = {&x.tensor};
  ASSERT_OK(kiln_call_run(call.get(), args, 1, nullptr));
  int64_t dims[4] = {};
  uint64_t rank = 0;
  ASSERT_OK(kiln_call_dims(call.get(), slot(call, "y"), dims, 4, &rank));
  EXPECT_EQ(rank, 2u);
  EXPECT_EQ(dims[0], 2);
  DLManagedTensorVersioned *taken = nullptr;
  ASSERT_OK(kiln_call_take(call.get(), slot(call, "y"), &taken));
  call.reset();
  executable.reset();  // the memory is the taker's
  EXPECT_EQ(static_cast<const float *>(taken->dl_tensor.data)[3], 24.0f);
  EXPECT_EQ(taken->dl_tensor.ndim, 2);
  taken->deleter(taken);
}

TEST_P(CallTest, SameDescriptorsRunByAddress) {
  ASSERT_OK(kiln_call_bind(call.get(), slot(call, "w"), &w.tensor));
  host::Array x({1, 2}, {1, 2}), y({1, 2}, {0, 0}), other_x({1, 2}, {5, 6}), other_y({1, 2}, {0, 0});
  const DLTensor *args[] = {&x.tensor, &y.tensor};
  ASSERT_OK(kiln_call_run(call.get(), args, 2, nullptr));
  void *data[] = {other_x.values.data(), other_y.values.data()};
  ASSERT_OK(kiln_call_run_data(call.get(), data, 2, nullptr));
  EXPECT_EQ(other_y.values[1], 26.0f);
}

TEST_P(CallTest, UnboundParameterIsNamed) {
  const host::Array x({1, 2}, {1, 2});
  const DLTensor *args[] = {&x.tensor};
  EXPECT_FAILS(kiln_call_run(call.get(), args, 1, nullptr), KILN_INVALID_ARGUMENT, "w");
}

TEST_P(CallTest, WrongShapeAndDtypeAreNamed) {
  ASSERT_OK(kiln_call_bind(call.get(), slot(call, "w"), &w.tensor));
  const host::Array x({1, 3}, {1, 2, 3});
  const DLTensor *args[] = {&x.tensor};
  EXPECT_FAILS(kiln_call_run(call.get(), args, 1, nullptr), KILN_TYPE_MISMATCH, "x");
  host::Array integers({1, 2}, {1, 2});
  integers.tensor.dtype = {kDLInt, 32, 1};
  args[0] = &integers.tensor;
  EXPECT_FAILS(kiln_call_run(call.get(), args, 1, nullptr), KILN_TYPE_MISMATCH, "x");
  uint32_t none = 77;
  EXPECT_FAILS(kiln_call_slot(call.get(), "z", 1, &none), KILN_UNKNOWN_NAME, "z");
  EXPECT_EQ(none, 77u);
}

TEST_P(CallTest, ATensorOnAnotherDeviceIsRefused) {
  host::Array elsewhere({2}, {1, 2});
  elsewhere.tensor.device = {kDLCUDA, 0};
  EXPECT_FAILS(kiln_call_bind(call.get(), slot(call, "w"), &elsewhere.tensor), KILN_NO_DEVICE, "is on cuda:0");
}

TEST_P(CallTest, AnOwnedTensorIsReleasedOnceItIsUnbound) {
  static int released = 0;
  released = 0;
  DLManagedTensorVersioned managed{};
  managed.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  managed.dl_tensor = w.tensor;
  managed.deleter = [](DLManagedTensorVersioned *) { released++; };
  EXPECT_FAILS(kiln_call_bind_owned(call.get(), 99, &managed), KILN_INVALID_ARGUMENT, "slot 99");
  EXPECT_EQ(released, 0) << "binding failed: the caller still owns it";
  ASSERT_OK(kiln_call_bind_owned(call.get(), slot(call, "w"), &managed));
  EXPECT_EQ(released, 0);
  call.reset();
  EXPECT_EQ(released, 1);
}

TEST_P(CallTest, ClonesRunOnOtherThreads) {
  ASSERT_OK(kiln_call_bind(call.get(), slot(call, "w"), &w.tensor));
  kiln_call *made = nullptr;
  ASSERT_OK(kiln_call_clone(call.get(), &made));
  const host::Call clone(made);
  const auto run = [](kiln_call *own, float value) {
    for (int i = 0; i < 50; i++) {
      const host::Array x({1, 2}, {value, value}), y({1, 2}, {0, 0});
      const DLTensor *args[] = {&x.tensor, &y.tensor};
      ASSERT_OK(kiln_call_run(own, args, 2, nullptr));
      EXPECT_EQ(y.values[0], value + 10);
    }
  };
  std::thread other([&] { run(clone.get(), 2); });
  run(call.get(), 1);
  other.join();
}

TEST_P(CallTest, AnArtifactIsBytesThatOpenAndRunIfTheyHaveTheKeyThatIsExpected) {
  const kiln::test::TemporaryFolder folder;
  context = host::make_context(std::string(folder.path()));  // without a cache nothing has a key
  graph = host::parse(context.get(), host::small_graph);
  executable = compile();
  kiln_blob *blob = nullptr;
  ASSERT_OK(kiln_executable_bytes(executable.get(), nullptr, &blob));
  const host::Blob bytes(blob);
  uint64_t size = 0;
  const void *data = kiln_blob_data(blob, &size);
  kiln_executable *opened = nullptr;
  ASSERT_OK(kiln_executable_open_bytes(context.get(), data, size, nullptr, &opened));
  const host::Executable owned(opened);
  expect_runs(opened);

  kiln_report *made = nullptr;
  ASSERT_OK(kiln_executable_describe(opened, &made));
  const std::string key = host::text(host::Report(made), "key");
  const auto open_expecting = [&](const std::string &expected) {
    kiln_options *options = nullptr;
    EXPECT_OK(kiln_options_create(&options));
    const host::Options given(options);
    EXPECT_OK(kiln_options_set_text(options, "expect_key", 10, expected.data(), expected.size()));
    kiln_executable *out = nullptr;
    const host::Error failure = host::take(kiln_executable_open_bytes(context.get(), data, size, options, &out));
    const host::Executable close(out);
    return failure.message;
  };
  EXPECT_EQ(open_expecting(key), "");
  const std::string other(64, '0');
  EXPECT_EQ(open_expecting(other), "the artifact has key " + key + ", and option 'expect_key' is " + other);
  EXPECT_FAILS(kiln_executable_open_bytes(context.get(), data, size / 2, nullptr, &opened), KILN_CORRUPT, "");
  EXPECT_FAILS(kiln_executable_open_bytes(context.get(), data, 0, nullptr, &opened), KILN_CORRUPT, "");
}

TEST_P(CallTest, SavedArtifactsLoadAndRun) {
  const kiln::test::TemporaryFolder folder;
  const std::string path = folder.file("saved.kiln");
  ASSERT_OK(kiln_executable_save(executable.get(), path.data(), path.size(), nullptr));
  kiln_executable *loaded = nullptr;
  ASSERT_OK(kiln_executable_open(context.get(), path.data(), path.size(), nullptr, &loaded));
  const host::Executable owned(loaded);
  expect_runs(loaded);
  kiln_report *made = nullptr;
  ASSERT_OK(kiln_executable_describe(loaded, &made));
  const host::Report report(made);
  EXPECT_EQ(host::text(report, "backend"), GetParam());
  EXPECT_EQ(host::text(report, "inputs.0.name"), "x");
}

TEST_P(CallTest, RunOptionsAreChecked) {
  kiln_run_options options{};
  options.struct_size = sizeof options;
  options.flags = KILN_RUN_ASYNC | 8;
  EXPECT_FAILS(kiln_call_run(call.get(), nullptr, 0, &options), KILN_INVALID_ARGUMENT, "unknown bits: 9");
}

TEST(Executable, ListsItsPlanAndKernels) {
  const host::Context context = host::make_context();
  const host::Graph graph = host::parse(context.get(), host::small_graph);
  const host::Compiled compiled = host::compile(context.get(), graph.get());
  ASSERT_EQ(compiled.error.code, KILN_OK) << compiled.error.message;
  const auto listing = [&](std::string_view what) {
    kiln_blob *blob = nullptr;
    EXPECT_OK(kiln_executable_text(compiled.executable.get(), what.data(), what.size(), &blob));
    return blob ? host::bytes_of(blob) : "";
  };
  EXPECT_NE(listing("plan"), "");
  EXPECT_NE(listing("kernels").find("kernel 0"), std::string::npos);
  EXPECT_NE(listing("llvm").find("define"), std::string::npos);
  EXPECT_NE(listing("asm").find("ret"), std::string::npos);
  kiln_blob *none = nullptr;
  EXPECT_FAILS(kiln_executable_text(compiled.executable.get(), "ptx", 3, &none), KILN_UNKNOWN_NAME, "'ptx'");
}

TEST(Compile, ARequiredHitThatIsNoneSaysWhy) {
  const kiln::test::TemporaryFolder folder;
  const host::Context context = host::make_context(folder.path());
  const host::Graph graph = host::parse(context.get(), host::small_graph);
  const host::Error error = host::compile(context.get(), graph.get(), [](kiln_options *options) {
                              EXPECT_OK(kiln_options_set_bool(options, "require_hit", 11, 1));
                            }).error;
  EXPECT_EQ(error.code, KILN_NOT_CACHED);
  EXPECT_NE(error.reason, "") << "the report hangs on the error";
}

TEST(Compile, EventsTellThePhasesAndCancel) {
  struct Seen {
    std::vector<std::string> phases;
    int32_t answer = 0;
    int destroyed = 0;
  } seen;
  kiln_event_sink sink{};
  sink.struct_size = sizeof sink;
  sink.user = &seen;
  sink.event = [](void *user, uint32_t kind, const char *text, uint64_t size) -> int32_t {
    EXPECT_EQ(kind, KILN_EVENT_PROGRESS);
    static_cast<Seen *>(user)->phases.emplace_back(text, size);
    return static_cast<Seen *>(user)->answer;
  };
  sink.destroy = [](void *user) { static_cast<Seen *>(user)->destroyed++; };
  host::Context context = host::make_context("off", &sink);
  const host::Graph graph = host::parse(context.get(), host::small_graph);
  EXPECT_EQ(host::compile(context.get(), graph.get()).error.code, KILN_OK);
  EXPECT_FALSE(seen.phases.empty());
  seen.answer = 1;
  EXPECT_EQ(host::compile(context.get(), graph.get()).error.code, KILN_CANCELLED);
  EXPECT_OK(kiln_context_close(context.get()));
  EXPECT_EQ(seen.destroyed, 1);
}

// A cache folder that cannot be made: a regular file is where a folder above it should be.
TEST(Compile, FailedSavesAreToldByAWarningAndAtClose) {
  const kiln::test::TemporaryFolder folder;
  const std::string file = folder.file("file");
  std::ofstream(file) << "in the way";
  std::vector<std::string> warnings;
  const kiln_event_sink sink = host::warnings_into(warnings);
  const host::Context context = host::make_context(file + "/cache", &sink);
  const host::Graph graph = host::parse(context.get(), host::small_graph);
  for (int i = 0; i < 500 && warnings.empty(); i++) {  // the save fails in the background, at its own time
    EXPECT_EQ(host::compile(context.get(), graph.get()).error.code, KILN_OK) << "the result is right without a cache";
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("saves to the cache failed"), std::string::npos);
  EXPECT_FAILS(kiln_context_close(context.get()), KILN_IO, file);
}

}  // namespace
