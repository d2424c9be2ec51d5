// Runs that return early, on the CPU: what is there when they have been waited for, and what is refused until then.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "host.h"
#include "rows.h"
#include "test_op.h"
#include "tests/child.h"
#include "tests/no_threads.h"

namespace {

constexpr kiln_run_options async{.struct_size = sizeof async, .flags = KILN_RUN_ASYNC, .stream = 0};

// y = table[i], with an index that may be out of range.
constexpr std::string_view gathers = R"({"kiln": 1,
  "inputs": [{"name": "table", "type": {"dtype": "f32", "shape": [3]}}, {"name": "i", "type": {"dtype": "i64", "shape": [2]}}],
  "nodes": [{"name": "picked", "op": "gather", "inputs": ["table", "i"], "attrs": {"dim": 0}}],
  "outputs": [{"name": "y", "value": "picked"}]})";

struct Integers {
  std::vector<int64_t> values;
  int64_t shape = static_cast<int64_t>(values.size());
  DLTensor tensor{values.data(), {kDLCPU, 0}, 1, {kDLInt, 64, 1}, &shape, nullptr, 0};
};

host::Executable compile_async(kiln_context *context, std::string_view json, std::string_view backend) {
  const host::Graph graph = host::parse(context, json);
  host::Compiled compiled = host::compile(context, graph.get(), [&](kiln_options *options) {
    EXPECT_OK(kiln_options_set_text(options, "backend", 7, backend.data(), backend.size()));
  });
  EXPECT_EQ(compiled.error, host::Error());
  return std::move(compiled.executable);
}

host::Call async_call(const host::Executable &executable) {
  kiln_call *call = nullptr;
  EXPECT_OK(kiln_call_create(executable.get(), &call));
  return host::Call(call);
}

host::Call clone_of(const host::Call &call) {
  kiln_call *clone = nullptr;
  EXPECT_OK(kiln_call_clone(call.get(), &clone));
  return host::Call(clone);
}

kiln_error *start(const host::Call &call, std::initializer_list<const DLTensor *> args) {
  return kiln_call_run(call.get(), args.begin(), args.size(), &async);
}

// Until poll says that the run is over: never inside a wait, which could make the run itself.
void poll_until_done(const host::Call &call) {
  for (uint32_t done = 0; !done; std::this_thread::yield()) ASSERT_OK(kiln_call_poll(call.get(), &done));
}

class Async : public testing::TestWithParam<const char *> {
 protected:
  void bind_parameter() {
    uint32_t slot = 0;
    ASSERT_OK(kiln_call_slot(call.get(), "w", 1, &slot));
    ASSERT_OK(kiln_call_bind(call.get(), slot, &w.tensor));
  }
  void SetUp() override { bind_parameter(); }

  host::Context context = host::make_context("off", nullptr, 2);
  host::Executable executable = compile_async(context.get(), host::small_graph, GetParam());
  host::Call call = async_call(executable);
  host::Array w{{2}, {10, 20}};
  host::Array x{{2, 2}, {1, 2, 3, 4}}, y{{2, 2}, {0, 0, 0, 0}};
  const std::vector<float> sum = {11, 22, 13, 24};
};
INSTANTIATE_TEST_SUITE_P(Backends, Async, testing::Values("cpu", "reference"),
                         [](const auto &instance) { return std::string(instance.param); });

TEST_P(Async, OutputsAreThereAfterWait) {
  for (int i = 0; i < 200; i++) {
    std::ranges::fill(y.values, 0.0f);
    ASSERT_OK(start(call, {&x.tensor, &y.tensor}));
    ASSERT_OK(kiln_call_wait(call.get()));
    ASSERT_EQ(y.values, sum) << i;
  }
}

TEST_P(Async, OutputsAreThereWhenPollSaysSo) {
  for (int i = 0; i < 20; i++) {
    std::ranges::fill(y.values, 0.0f);
    ASSERT_OK(start(call, {&x.tensor, &y.tensor}));
    poll_until_done(call);
    ASSERT_EQ(y.values, sum) << i;
  }
}

TEST_P(Async, WithNothingInFlightWaitAndPollAnswerAtOnce) {
  EXPECT_OK(kiln_call_wait(call.get()));
  uint32_t done = 0;
  EXPECT_OK(kiln_call_poll(call.get(), &done));
  EXPECT_EQ(done, 1u);
}

TEST_P(Async, RunsByAddressAreInFlightLikewise) {
  const DLTensor *args[] = {&x.tensor, &y.tensor};
  ASSERT_OK(kiln_call_run(call.get(), args, 2, nullptr));
  std::vector<float> other(4);
  void *const data[] = {x.values.data(), other.data()};
  ASSERT_OK(kiln_call_run_data(call.get(), data, 2, &async));
  ASSERT_OK(kiln_call_wait(call.get()));
  EXPECT_EQ(other, sum);
}

TEST_P(Async, OutputsThatAreKilnsCanBeReadAndTakenAfterWait) {
  ASSERT_OK(start(call, {&x.tensor}));
  ASSERT_OK(kiln_call_wait(call.get()));
  uint32_t slot = 2;
  const DLTensor *out = nullptr;
  ASSERT_OK(kiln_call_output(call.get(), slot, &out));
  EXPECT_EQ(static_cast<const float *>(out->data)[3], 24);
  DLManagedTensorVersioned *taken = nullptr;
  ASSERT_OK(kiln_call_take(call.get(), slot, &taken));
  EXPECT_EQ(static_cast<const float *>(taken->dl_tensor.data)[0], 11);
  taken->deleter(taken);
}

TEST_P(Async, ARunOnTheSameStreamComesAfterTheOneInFlight) {
  host::Array other_x({1, 2}, {5, 6}), other_y({1, 2}, {0, 0});  // of another size
  ASSERT_OK(start(call, {&x.tensor, &y.tensor}));
  ASSERT_OK(start(call, {&other_x.tensor, &other_y.tensor}));
  const host::Array last_y({2, 2}, {0, 0, 0, 0});
  const DLTensor *args[] = {&x.tensor, &last_y.tensor};
  ASSERT_OK(kiln_call_run(call.get(), args, 2, nullptr));  // Kiln's own stream, too
  EXPECT_EQ(y.values, sum);
  EXPECT_EQ(other_y.values, (std::vector<float>{15, 26}));
  EXPECT_EQ(last_y.values, sum);
  ASSERT_OK(kiln_call_wait(call.get()));
}

TEST_P(Async, WrongArgumentsAreToldByRun) {
  const host::Array wrong({2, 3}, std::vector<float>(6));
  EXPECT_FAILS(start(call, {&wrong.tensor, &y.tensor}), KILN_TYPE_MISMATCH, "input 'x'");
  EXPECT_OK(kiln_call_wait(call.get()));  // it never was in flight
  ASSERT_OK(start(call, {&x.tensor, &y.tensor}));
  ASSERT_OK(kiln_call_wait(call.get()));
  EXPECT_EQ(y.values, sum);
}

TEST_P(Async, WhatKernelsFindIsToldOnce) {
  const host::Executable picks = compile_async(context.get(), gathers, GetParam());
  const host::Call call_of_it = async_call(picks);
  const host::Array table({3}, {1, 2, 3}), out({2}, {0, 0});
  Integers bad{{0, 7}}, good{{2, 0}};
  ASSERT_OK(start(call_of_it, {&table.tensor, &bad.tensor, &out.tensor}));
  EXPECT_FAILS(kiln_call_wait(call_of_it.get()), KILN_OUT_OF_RANGE, "out of range");
  EXPECT_OK(kiln_call_wait(call_of_it.get()));

  // Of two runs the first error, also when a run that was waited for comes between.
  ASSERT_OK(start(call_of_it, {&table.tensor, &bad.tensor, &out.tensor}));
  ASSERT_OK(start(call_of_it, {&table.tensor, &good.tensor, &out.tensor}));
  const DLTensor *args[] = {&table.tensor, &good.tensor, &out.tensor};
  EXPECT_OK(kiln_call_run(call_of_it.get(), args, 3, nullptr));
  EXPECT_EQ(out.values, (std::vector<float>{3, 1}));
  uint32_t done = 0;
  EXPECT_FAILS(kiln_call_poll(call_of_it.get(), &done), KILN_OUT_OF_RANGE, "out of range");
  EXPECT_EQ(done, 0u);
  EXPECT_OK(kiln_call_poll(call_of_it.get(), &done));
  EXPECT_EQ(done, 1u);
}

TEST_P(Async, DestroyWaits) {
  for (int i = 0; i < 20; i++) {
    std::ranges::fill(y.values, 0.0f);
    host::Call clone = clone_of(call);
    ASSERT_OK(start(clone, {&x.tensor, &y.tensor}));
    clone = nullptr;
    ASSERT_EQ(y.values, sum);
  }
}

TEST_P(Async, ItOutlivesContextAndExecutableHandles) {
  ASSERT_OK(start(call, {&x.tensor, &y.tensor}));
  executable = nullptr;
  ASSERT_OK(kiln_context_close(context.get()));
  context = nullptr;
  ASSERT_OK(kiln_call_wait(call.get()));
  EXPECT_EQ(y.values, sum);
}

TEST_P(Async, ClonesOnSeveralThreadsAreInFlightAtOnce) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++) {
    threads.emplace_back([t, clone = clone_of(call)] {
      for (int i = 0; i < 50; i++) {
        const auto first = static_cast<float>(100 * t + i);
        const host::Array in({1, 2}, {first, 1}), out({1, 2}, {0, 0});
        EXPECT_OK(start(clone, {&in.tensor, &out.tensor}));
        if (i % 2)
          EXPECT_OK(kiln_call_wait(clone.get()));
        else
          poll_until_done(clone);
        EXPECT_EQ(out.values, (std::vector<float>{first + 10, 21}));
      }
    });
  }
  for (std::thread &thread : threads) thread.join();
}

TEST_P(Async, WithoutAThreadTheCallerMakesTheRun) {
  kiln::test::in_child([&] {
    if (!kiln::test::forbid_threads()) return;
    host::Call clone = clone_of(call);
    EXPECT_OK(start(clone, {&x.tensor, &y.tensor}));
    EXPECT_EQ(y.values, sum);
    EXPECT_OK(kiln_call_wait(clone.get()));
  });
}

TEST_P(Async, AForkedChildMakesItsOwnRuns) {
  SKIP_WHERE_CHILDREN_HAVE_NO_THREADS();
  ASSERT_OK(start(call, {&x.tensor, &y.tensor}));
  poll_until_done(call);
  kiln::test::in_child([&] {
    std::ranges::fill(y.values, 0.0f);
    EXPECT_OK(start(call, {&x.tensor, &y.tensor}));
    poll_until_done(call);
    EXPECT_EQ(y.values, sum);
    call = nullptr;
  });
  std::ranges::fill(y.values, 0.0f);
  ASSERT_OK(start(call, {&x.tensor, &y.tensor}));
  poll_until_done(call);
  EXPECT_EQ(y.values, sum);
}

// ---- loops

struct SeenByLoop {
  std::vector<std::string> loops;
  std::vector<std::thread::id> threads;
  size_t ends_at = 2;
};

class AsyncLoop : public testing::TestWithParam<const char *> {
 protected:
  AsyncLoop() {
    kiln_event_sink sink{};
    sink.struct_size = sizeof sink;
    sink.kinds = 1u << KILN_EVENT_LOOP;
    sink.user = &seen;
    sink.event = [](void *user, uint32_t, const char *text, uint64_t size) -> int32_t {
      SeenByLoop &all = *static_cast<SeenByLoop *>(user);
      all.loops.emplace_back(text, size);
      all.threads.push_back(std::this_thread::get_id());
      return all.loops.size() >= all.ends_at;
    };
    context = host::make_context("off", &sink);
    call = async_call(compile_async(context.get(), host::doubles, GetParam()));
  }
  void expect_told_here() const {
    ASSERT_GE(seen.loops.size(), 2u);
    for (const std::string &text : seen.loops) EXPECT_EQ(text.rfind("loop 'w', turn ", 0), 0u) << text;
    for (const std::thread::id thread : seen.threads) EXPECT_EQ(thread, std::this_thread::get_id());
  }

  SeenByLoop seen;
  host::Context context;
  host::Call call;
  host::Array x{{}, {0}}, y{{}, {0}};
};
INSTANTIATE_TEST_SUITE_P(Backends, AsyncLoop, testing::Values("cpu", "reference"),
                         [](const auto &instance) { return std::string(instance.param); });

TEST_P(AsyncLoop, WhoWaitsIsAskedAndEndsIt) {
  ASSERT_OK(start(call, {&x.tensor, &y.tensor}));
  EXPECT_FAILS(kiln_call_wait(call.get()), KILN_CANCELLED, "of loop 'w'");
  expect_told_here();
  x.values[0] = 0.375f;
  ASSERT_OK(start(call, {&x.tensor, &y.tensor}));
  ASSERT_OK(kiln_call_wait(call.get()));
  EXPECT_EQ(y.values[0], 1.5f);
}

TEST_P(AsyncLoop, WhoPollsIsAskedAndEndsIt) {
  ASSERT_OK(start(call, {&x.tensor, &y.tensor}));
  host::Error ended;
  for (uint32_t done = 0; !done && ended == host::Error(); std::this_thread::yield())
    ended = host::take(kiln_call_poll(call.get(), &done));
  EXPECT_EQ(ended.code, KILN_CANCELLED) << ended;
  expect_told_here();
  EXPECT_OK(kiln_call_wait(call.get()));
}

TEST_P(AsyncLoop, CancelEndsItWithoutAnyEventAndTheNextRunIsWhole) {
  call = async_call(compile_async(host::make_context("off").get(), host::doubles, GetParam()));
  ASSERT_OK(kiln_call_cancel(call.get()));  // of no run
  ASSERT_OK(start(call, {&x.tensor, &y.tensor}));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // it may have begun
  ASSERT_OK(kiln_call_cancel(call.get()));
  EXPECT_FAILS(kiln_call_wait(call.get()), KILN_CANCELLED, "cancelled the run");
  x.values[0] = 0.375f;
  ASSERT_OK(start(call, {&x.tensor, &y.tensor}));
  ASSERT_OK(kiln_call_wait(call.get()));
  EXPECT_EQ(y.values[0], 1.5f);
}

TEST_P(AsyncLoop, CancelEndsARunThatAnotherThreadIsInside) {
  call = async_call(compile_async(host::make_context("off").get(), host::doubles, GetParam()));
  host::Error ended;
  std::atomic<bool> over = false;
  std::thread runs([&] {
    const DLTensor *args[] = {&x.tensor, &y.tensor};
    ended = host::take(kiln_call_run(call.get(), args, 2, nullptr));
    over = true;
  });
  while (!over) {
    ASSERT_OK(kiln_call_cancel(call.get()));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  runs.join();
  EXPECT_EQ(ended.code, KILN_CANCELLED) << ended;
}

TEST_P(AsyncLoop, WhoDestroysIsAskedAndEndsIt) {
  ASSERT_OK(start(call, {&x.tensor, &y.tensor}));
  call = nullptr;
  expect_told_here();
}

// ---- functions of ops

constexpr std::string_view scales = R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n"]}}],
  "nodes": [{"name": "b", "op": "host.scale", "inputs": ["x"], "attrs": {"factor": 3}}],
  "outputs": [{"name": "y", "value": "b"}]})";

class AsyncOp : public testing::TestWithParam<const char *> {};
INSTANTIATE_TEST_SUITE_P(Backends, AsyncOp, testing::Values("cpu", "reference"),
                         [](const auto &instance) { return std::string(instance.param); });

TEST_P(AsyncOp, OneThatIsNotForAnyThreadIsRefusedByName) {
  host::TestOp scale(host::TestOp::runs);
  const host::Context context = host::make_context();
  scale.register_in(context.get());
  const host::Call call = async_call(compile_async(context.get(), scales, GetParam()));
  const host::Array x({3}, {1, 2, 3}), y({3}, {0, 0, 0});
  EXPECT_FAILS(start(call, {&x.tensor, &y.tensor}), KILN_INVALID_ARGUMENT, "op 'host.scale'");
  const DLTensor *args[] = {&x.tensor, &y.tensor};
  ASSERT_OK(kiln_call_run(call.get(), args, 2, nullptr));
  EXPECT_EQ(y.values, (std::vector<float>{2, 4, 6}));
}

TEST_P(AsyncOp, OneForAnyThreadRunsOnKilnsAndItsErrorArrivesInWait) {
  std::thread::id ran_on;
  bool fails = false;
  host::TestOp scale(host::TestOp::runs);
  scale.def.flags |= KILN_OP_ANY_THREAD;
  scale.on_run = [&] {
    ran_on = std::this_thread::get_id();
    return fails ? kiln_error_create(KILN_IO, "no luck", 7, nullptr) : nullptr;
  };
  const host::Context context = host::make_context();
  scale.register_in(context.get());
  const host::Call call = async_call(compile_async(context.get(), scales, GetParam()));
  const host::Array x({3}, {1, 2, 3}), y({3}, {0, 0, 0});
  ASSERT_OK(start(call, {&x.tensor, &y.tensor}));
  poll_until_done(call);
  EXPECT_NE(ran_on, std::thread::id());
  EXPECT_NE(ran_on, std::this_thread::get_id());
  fails = true;
  ASSERT_OK(start(call, {&x.tensor, &y.tensor}));
  EXPECT_FAILS(kiln_call_wait(call.get()), KILN_IO, "no luck");
  fails = false;
  ASSERT_OK(start(call, {&x.tensor, &y.tensor}));
  EXPECT_OK(kiln_call_wait(call.get()));
}

// ---- misuse: what is done with a run in flight, a row each

struct AsyncRow : host::Row {
  uint32_t code;
  const char *words;
  std::function<kiln_error *(kiln_call *)> misuse;
};

const kiln_run_options streams{.struct_size = sizeof streams, .flags = 0, .stream = 7},
    unknown{.struct_size = sizeof unknown, .flags = 4, .stream = 0};

const std::vector<AsyncRow> &async_rows() {
  static const std::vector<AsyncRow> table = {
      {"Bind", KILN_BUSY, "in flight", [](kiln_call *c) { return kiln_call_bind(c, 0, nullptr); }},
      {"BindOwned", KILN_BUSY, "in flight",
       [](kiln_call *c) {
         static host::Array x({2, 2}, std::vector<float>(4));
         static DLManagedTensorVersioned owned{};
         owned.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
         owned.dl_tensor = x.tensor;
         owned.deleter = [](DLManagedTensorVersioned *) { ADD_FAILURE() << "it was not taken over"; };
         return kiln_call_bind_owned(c, 0, &owned);
       }},
      {"Take", KILN_BUSY, "in flight",
       [](kiln_call *c) {
         DLManagedTensorVersioned *out = nullptr;
         return kiln_call_take(c, 2, &out);
       }},
      {"Output", KILN_BUSY, "in flight",
       [](kiln_call *c) {
         const DLTensor *out = nullptr;
         return kiln_call_output(c, 2, &out);
       }},
      {"Dims", KILN_BUSY, "in flight",
       [](kiln_call *c) {
         int64_t dims[2];
         uint64_t rank = 0;
         return kiln_call_dims(c, 2, dims, 2, &rank);
       }},
      {"Report", KILN_BUSY, "in flight",
       [](kiln_call *c) {
         kiln_report *report = nullptr;
         return kiln_call_report(c, &report);
       }},
      {"AnotherStream", KILN_BUSY, "in flight on Kiln's own stream, and this one is for stream 7",
       [](kiln_call *c) { return kiln_call_run(c, nullptr, 0, &streams); }},
      {"AnotherStreamByAddress", KILN_BUSY, "for stream 7",
       [](kiln_call *c) { return kiln_call_run_data(c, nullptr, 0, &streams); }},
      {"UnknownFlag", KILN_INVALID_ARGUMENT, "options->flags has unknown bits: 4",
       [](kiln_call *c) { return kiln_call_run(c, nullptr, 0, &unknown); }},
      {"PollWithoutPlace", KILN_INVALID_ARGUMENT, "out_done is NULL",
       [](kiln_call *c) { return kiln_call_poll(c, nullptr); }},
      {"WaitForNothing", KILN_INVALID_ARGUMENT, "call is NULL", [](kiln_call *) { return kiln_call_wait(nullptr); }},
      {"WaitForAnotherHandle", KILN_INVALID_ARGUMENT, "handle of another type",
       [](kiln_call *) {
         kiln_options *options = nullptr;
         EXPECT_OK(kiln_options_create(&options));
         const host::Options owned(options);
         return kiln_call_wait(reinterpret_cast<kiln_call *>(options));
       }},
  };
  return table;
}

class AsyncMisuse : public testing::TestWithParam<AsyncRow> {};
INSTANTIATE_TEST_SUITE_P(Rows, AsyncMisuse, testing::ValuesIn(async_rows()), host::name_of_row);

TEST_P(AsyncMisuse, IsRefusedAndTheRunGoesOn) {
  const host::Context context = host::make_context("off", nullptr, 2);
  const host::Call call = async_call(compile_async(context.get(), host::small_graph, "cpu"));
  host::Array w({2}, {10, 20});
  ASSERT_OK(kiln_call_bind(call.get(), 1, &w.tensor));
  const host::Array x({2, 2}, {1, 2, 3, 4}), y({2, 2}, {0, 0, 0, 0});
  ASSERT_OK(start(call, {&x.tensor, &y.tensor}));
  EXPECT_FAILS(GetParam().misuse(call.get()), GetParam().code, GetParam().words);
  ASSERT_OK(kiln_call_wait(call.get()));
  EXPECT_EQ(y.values, (std::vector<float>{11, 22, 13, 24}));
  const DLTensor *args[] = {&x.tensor, &y.tensor};
  EXPECT_OK(kiln_call_run(call.get(), args, 2, nullptr));
}

TEST(AsyncOnTheCpu, AStreamIsRefused) {
  const host::Context context = host::make_context();
  for (const char *backend : {"cpu", "reference"}) {
    const host::Call call = async_call(compile_async(context.get(), host::scaled(2), backend));
    const host::Array x({1}, {1}), y({1}, {0});
    const DLTensor *args[] = {&x.tensor, &y.tensor};
    EXPECT_FAILS(kiln_call_run(call.get(), args, 2, &streams), KILN_INVALID_ARGUMENT,
                 std::string("run: stream is 7, and backend ") + backend + " has no streams");
    EXPECT_EQ(y.values[0], 0);
  }
}

}  // namespace
