// Compiles of a graph that is being compiled, or that was compiled and is being saved.

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "host.h"
#include "test_pass.h"
#include "tests/temporary_folder.h"

namespace {

class InFlight : public testing::Test {
 protected:
  InFlight() {
    kiln_event_sink sink{};
    sink.struct_size = sizeof sink;
    sink.kinds = 1u << KILN_EVENT_PROGRESS;
    sink.user = this;
    sink.event = [](void *user, uint32_t, const char *text, uint64_t size) -> int32_t {
      auto &self = *static_cast<InFlight *>(user);
      if (std::string_view(text, size) != "in flight") return 0;
      self.is_awaited = true;
      return self.waits_no_longer;
    };
    context = host::make_context(folder.path(), &sink);
    graph = host::parse(context.get(), host::small_graph);
  }
  void add(host::TestPass &pass) {
    pass.identify();
    ASSERT_OK(kiln_pass_register(context.get(), &pass.pass, nullptr, nullptr));
  }
  host::Compiled compile() { return host::compile(context.get(), graph.get()); }
  // A compile on a thread of its own that begins when `started` says so.
  std::thread compile_after(const std::atomic<bool> &started, host::Compiled &out) {
    return std::thread([&] {
      while (!started) std::this_thread::yield();
      out = compile();
    });
  }
  // For a pass: until another compile waits for this one.
  void until_awaited() const {
    while (!is_awaited) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  const kiln::test::TemporaryFolder folder;
  std::atomic<bool> is_awaited = false, waits_no_longer = false, runs = false;
  host::Context context;
  host::Graph graph;
};

TEST_F(InFlight, ASecondCompileRightAfterTheFirstHits) {
  for (int factor = 1; factor <= 50; factor++) {
    const host::Graph scaled = host::parse(context.get(), host::scaled(factor));
    EXPECT_EQ(host::text(host::compile(context.get(), scaled.get()).report, "lookup"), "MISS");
    const host::Compiled again = host::compile(context.get(), scaled.get());
    ASSERT_EQ(host::text(again.report, "lookup"), "HIT") << host::text(again.report, "reason");
    EXPECT_EQ(host::i64(again.report, "kernels_compiled"), 0);
    if (factor == 50) host::expect_scaled(again.executable.get(), factor);
  }
}

TEST_F(InFlight, AKernelThatWaitsToBeWrittenIsNotMadeAgainForAnotherGraph) {
  for (int factor = 1; factor <= 50; factor++) {
    std::string text = host::scaled(factor);
    const host::Graph scaled = host::parse(context.get(), text);
    const std::string_view op = R"("op": "mul",)";
    text.insert(text.find(op), R"("annotations": {"of": {"text": "another"}}, )");
    const host::Graph other = host::parse(context.get(), text);
    EXPECT_EQ(host::i64(host::compile(context.get(), scaled.get()).report, "kernels_compiled"), 1);
    const host::Compiled second = host::compile(context.get(), other.get());
    ASSERT_EQ(host::text(second.report, "lookup"), "MISS");
    ASSERT_EQ(host::i64(second.report, "kernels_compiled"), 0) << factor;
    EXPECT_EQ(host::i64(second.report, "kernels_from_cache"), 1);
    if (factor == 50) host::expect_scaled(second.executable.get(), factor);
  }
}

TEST_F(InFlight, OfTwoThreadsOneCompilesAndTheOtherHits) {
  host::TestPass pass([&](kiln_pass_call *call) {
    runs = true;
    until_awaited();
    return host::nothing(call);
  });
  add(pass);
  host::Compiled second;
  std::thread other = compile_after(runs, second);
  const host::Compiled first = compile();
  other.join();
  EXPECT_EQ(host::text(first.report, "lookup"), "MISS");
  EXPECT_EQ(host::text(second.report, "lookup"), "HIT");
  EXPECT_EQ(host::text(second.report, "reason"), "in flight");
  EXPECT_EQ(host::i64(first.report, "kernels_compiled"), 1);
  EXPECT_EQ(host::i64(second.report, "kernels_compiled"), 0);
  EXPECT_NE(second.executable, nullptr);
  context = nullptr;  // before the pass, which it owns
}

TEST_F(InFlight, WhereOneFailsTheOtherTakesOver) {
  std::atomic<int> count = 0;
  host::TestPass pass([&](kiln_pass_call *call) -> kiln_error * {
    if (count++ > 0) return host::nothing(call);
    runs = true;
    until_awaited();
    return kiln_error_create(KILN_INVALID_ARGUMENT, "no luck", 7, nullptr);
  });
  add(pass);
  host::Compiled second;
  std::thread other = compile_after(runs, second);
  const host::Compiled first = compile();
  other.join();
  EXPECT_EQ(first.error.code, KILN_PLUGIN_FAILED) << first.error;
  EXPECT_EQ(second.error, host::Error());
  EXPECT_EQ(host::text(second.report, "lookup"), "MISS");
  EXPECT_EQ(count, 2);
  context = nullptr;
}

TEST_F(InFlight, WhoWaitsCanBeCancelled) {
  waits_no_longer = true;
  host::Compiled second;
  host::TestPass pass([&](kiln_pass_call *call) {
    std::thread([&] { second = compile(); }).join();  // it waits for this compile, which waits for it
    return host::nothing(call);
  });
  add(pass);
  EXPECT_EQ(compile().error, host::Error());
  EXPECT_EQ(second.error.code, KILN_CANCELLED) << second.error;
  EXPECT_EQ(second.error.reason, "in flight");
  context = nullptr;
}

TEST_F(InFlight, WhatAPassCompilesDoesNotWaitForItself) {
  int depth = 0;
  host::Compiled inner;
  host::TestPass pass([&](kiln_pass_call *call) {
    if (depth++ == 0) inner = compile();
    return host::nothing(call);
  });
  add(pass);
  const host::Compiled outer = compile();
  EXPECT_EQ(outer.error, host::Error());
  EXPECT_EQ(inner.error, host::Error());
  EXPECT_EQ(host::text(inner.report, "lookup"), "MISS");
  EXPECT_NE(host::text(inner.report, "reason").find("in flight"), std::string::npos);
  EXPECT_EQ(host::text(outer.report, "lookup"), "MISS");
  EXPECT_EQ(depth, 2);
  EXPECT_EQ(host::text(compile().report, "lookup"), "HIT");
  context = nullptr;
}

TEST_F(InFlight, WhatAnEarlyPassCompilesDoesNotWaitEither) {
  // Another thread is at it until this compile, inside a pass that runs before any key is looked up, has ended.
  std::atomic<bool> has_ended = false;
  host::Compiled inner;
  host::TestPass holds([&](kiln_pass_call *call) {
    if (!runs.exchange(true))
      while (!has_ended) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return host::nothing(call);
  });
  std::atomic<int> depth = 0;
  host::TestPass early(
      [&](kiln_pass_call *call) {
        if (depth++ != 0) return host::nothing(call);
        std::thread other([&] { EXPECT_EQ(compile().error, host::Error()); });
        while (!runs) std::this_thread::yield();
        inner = compile();
        has_ended = true;
        other.join();
        return host::nothing(call);
      },
      "eager");
  early.pass.stage = KILN_STAGE_PRE_GRAD;
  early.pass.timing = KILN_TIMING_EARLY;
  add(holds);
  ASSERT_OK(kiln_pass_register(context.get(), &early.pass, nullptr, nullptr));
  EXPECT_EQ(compile().error, host::Error());
  EXPECT_EQ(inner.error, host::Error());
  EXPECT_FALSE(is_awaited);
  context = nullptr;
}

TEST_F(InFlight, OnceItIsSavedTheRecordIsFound) {
  EXPECT_EQ(host::text(compile().report, "lookup"), "MISS");
  std::string reason;
  while (reason != "hit") {
    const host::Compiled again = compile();
    ASSERT_EQ(host::text(again.report, "lookup"), "HIT");
    reason = host::text(again.report, "reason");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

TEST_F(InFlight, TwoCompilesWhosePassesCompileEachOtherEnd) {
  const host::Graph graphs[] = {host::parse(context.get(), host::scaled(2)),
                                host::parse(context.get(), host::scaled(3))};
  std::atomic<int> inside = 0;
  host::Error inner[2];
  host::TestPass pass([&](kiln_pass_call *call) {
    const int place = inside++;
    if (place > 1) return host::nothing(call);
    while (inside < 2) std::this_thread::yield();  // each is the other's to wait for
    // Which of the two this is, its constant does not tell: both are compiled here, one of them for the second time.
    for (const host::Graph &each : graphs) {
      host::Error error = host::compile(context.get(), each.get()).error;
      if (error.code != KILN_OK) inner[place] = std::move(error);
    }
    return host::nothing(call);
  });
  add(pass);
  host::Compiled outer[2];
  std::thread other([&] { outer[1] = host::compile(context.get(), graphs[1].get()); });
  outer[0] = host::compile(context.get(), graphs[0].get());
  other.join();
  for (const int i : {0, 1}) {
    EXPECT_EQ(outer[i].error, host::Error());
    EXPECT_EQ(inner[i], host::Error());
  }
  context = nullptr;
}

}  // namespace
