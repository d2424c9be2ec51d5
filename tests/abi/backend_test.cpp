// Backends of the host's own: what they are offered, what is cached of them, and when they end. y = |-x| in one graph.
#include <filesystem>
#include <thread>

#include "rows.h"
#include "test_backend.h"

namespace {

using host::TestBackend;

constexpr std::string_view plain = R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": [3]}}],
  "nodes": [{"name": "a", "op": "neg", "inputs": ["x"]}, {"name": "b", "op": "abs", "inputs": ["a"]}],
  "outputs": [{"name": "y", "value": "b"}]})";

host::Compiled compile_on(kiln_context *context, std::string_view json, const std::string &backend,
                          const std::function<void(kiln_options *)> &more = {}) {
  const host::Graph graph = host::parse(context, json);
  return host::compile(context, graph.get(), [&](kiln_options *options) {
    EXPECT_OK(kiln_options_set_text(options, "backend", 7, backend.data(), backend.size()));
    if (more) more(options);
  });
}

void expect_runs(const host::Executable &executable, float factor) {
  const host::Call call = host::make_call(executable);
  const host::Array x({3}, {-1.5f, 2, 0}), y({3}, {9, 9, 9});
  ASSERT_OK(host::run(call.get(), {&x, &y}));
  EXPECT_EQ(y.values, (std::vector<float>{1.5f * factor, 2 * factor, 0}));
}

struct Folder {
  std::string path = testing::TempDir() + "kiln_backend_" + std::to_string(getpid());
  Folder() { std::filesystem::remove_all(path); }
  ~Folder() { std::filesystem::remove_all(path); }
};

TEST(Backend, RunsWhatItTakesAndLeavesTheRest) {
  TestBackend ten;
  {
    const host::Context context = host::make_context();
    ten.register_in(context.get());
    const host::Compiled compiled = compile_on(context.get(), plain, "ten");
    ASSERT_EQ(compiled.error, host::Error());
    expect_runs(compiled.executable, 10);
    EXPECT_EQ(ten.asked, 2);
    EXPECT_EQ(ten.compiled, 1);
    EXPECT_EQ(ten.ran, 1);
    EXPECT_EQ(ten.destroyed, 0);
  }
  EXPECT_EQ(ten.opened, ten.closed);
  EXPECT_EQ(ten.loaded, ten.unloaded);
  EXPECT_EQ(ten.destroyed, 1);
}

TEST(Backend, IsFoundInTheCacheByTheNextContext) {
  const Folder folder;
  for (const int compiles : {1, 0}) {
    TestBackend ten;
    {
      const host::Context context = host::make_context(folder.path);
      ten.register_in(context.get());
      const host::Compiled compiled = compile_on(context.get(), plain, "ten");
      ASSERT_EQ(compiled.error, host::Error());
      EXPECT_EQ(host::text(compiled.report, "lookup"), compiles ? "MISS" : "HIT");
      expect_runs(compiled.executable, 10);
    }
    EXPECT_EQ(ten.compiled, compiles);
    EXPECT_EQ(ten.asked, compiles * 2);
    EXPECT_EQ(ten.loaded, 1);
    EXPECT_EQ(ten.targets, 1);
  }
}

TEST(Backend, OfAnotherIdentityIsAnother) {
  const Folder folder;
  const uint8_t other_uuid[16] = {7};
  const std::function<void(TestBackend &)> changes[] = {
      [](TestBackend &) {}, [](TestBackend &b) { b.backend.version = "2"; },
      [&](TestBackend &b) { b.backend.uuid = other_uuid; }, [](TestBackend &b) { b.told = "there"; }};
  for (const auto &change : changes) {
    TestBackend ten;
    change(ten);
    const host::Context context = host::make_context(folder.path);
    ten.register_in(context.get());
    const host::Compiled compiled = compile_on(context.get(), plain, "ten");
    ASSERT_EQ(compiled.error, host::Error());
    EXPECT_EQ(host::text(compiled.report, "lookup"), "MISS");
  }
}

TEST(Backend, WithoutAUuidBypassesTheCacheByName) {
  const Folder folder;
  TestBackend ten("ten", false);
  const host::Context context = host::make_context(folder.path);
  ten.register_in(context.get());
  const host::Compiled compiled = compile_on(context.get(), plain, "ten");
  ASSERT_EQ(compiled.error, host::Error());
  EXPECT_EQ(host::text(compiled.report, "lookup"), "BYPASS");
  EXPECT_EQ(host::text(compiled.report, "reason"), "backend 'ten' has no identity");
}

constexpr std::string_view marked_graph =
    R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": [3]}}],
  "nodes": [{"name": "a", "op": "neg", "inputs": ["x"], "annotations": {"kiln.region": {"text": "r"},
             "kiln.region.backend": {"text": "ten"}}},
            {"name": "b", "op": "neg", "inputs": ["a"], "annotations": {"kiln.region": {"text": "s"},
             "kiln.region.backend": {"text": "other"}}},
            {"name": "c", "op": "neg", "inputs": ["b"], "annotations": {"kiln.region": {"text": "t"}}},
            {"name": "d", "op": "abs", "inputs": ["c"]}], "outputs": [{"name": "y", "value": "d"}]})";

class TwoBackends : public testing::Test {
 protected:
  TwoBackends() {
    ten.register_in(context.get());
    other.register_in(context.get());
  }
  host::Compiled compile_marked(const std::function<void(kiln_options *)> &more = {}) {
    return compile_on(context.get(), marked_graph, "cpu", [&](kiln_options *options) {
      EXPECT_OK(kiln_options_set_text(options, "mode", 4, "marked", 6));
      if (more) more(options);
    });
  }

  TestBackend ten, other{"other"};
  const host::Context context = host::make_context();
};

TEST_F(TwoBackends, AreEachForARegionOfOneGraph) {
  const host::Compiled compiled = compile_marked();
  ASSERT_EQ(compiled.error, host::Error());
  expect_runs(compiled.executable, 100);
  EXPECT_EQ(ten.ran, 1);
  EXPECT_EQ(other.ran, 1);
  const host::Report description = host::describe(compiled.executable.get());
  EXPECT_EQ(host::text(description, "compile.partition.regions.0.backend"), "ten");
  EXPECT_EQ(host::text(description, "compile.partition.regions.1.backend"), "other");
  EXPECT_EQ(host::text(description, "compile.partition.regions.2.backend"), "cpu");
}

TEST_F(TwoBackends, AreForTheRegionsThatOptionsSay) {
  const host::Compiled compiled = compile_marked([](kiln_options *options) {
    EXPECT_OK(kiln_options_set_text(options, "region.r.backend", 16, "cpu", 3));
    EXPECT_OK(kiln_options_set_text(options, "region.s.backend", 16, "ten", 3));
  });
  ASSERT_EQ(compiled.error, host::Error());
  expect_runs(compiled.executable, 10);
  EXPECT_EQ(other.ran, 0);
}

// Each program has calls of its own on every thread.
TEST_F(TwoBackends, RunInCallsOfSeveralThreads) {
  const host::Compiled compiled = compile_marked();
  ASSERT_EQ(compiled.error, host::Error());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int k = 0; k < 20; ++k) expect_runs(compiled.executable, 100);
    });
  for (std::thread &thread : threads) thread.join();
  EXPECT_EQ(ten.ran, 80);
  EXPECT_EQ(ten.loaded, 1);
  EXPECT_EQ(ten.opened, ten.closed);
}

TEST(Backend, WhatAnOpenThatFailsSetIsItsOwnToEnd) {
  TestBackend ten;
  ten.backend.open = [](void *user, void *, void **out_state) {
    *out_state = user;
    return kiln_error_create(KILN_IO, "no room", 7, nullptr);
  };
  const host::Context context = host::make_context();
  ten.register_in(context.get());
  const host::Compiled compiled = compile_on(context.get(), plain, "ten");
  ASSERT_EQ(compiled.error, host::Error());
  {
    const host::Call call = host::make_call(compiled.executable);
    const host::Array x({3}, {1, 2, 3}), y({3}, {0, 0, 0});
    for (int i = 0; i < 2; ++i) EXPECT_FAILS(host::run(call.get(), {&x, &y}), KILN_IO, "no room");
  }
  EXPECT_EQ(ten.ran + ten.closed, 0);
}

// What an artifact's bytes are is the backend's to say: bytes that it refuses are made anew.
TEST(Backend, ThatRefusesItsBytesInTheCacheMakesThemAgain) {
  const Folder folder;
  for (const bool refuses : {false, true, false}) {
    TestBackend ten;
    ten.fails = [&](std::string_view where) -> kiln_error * {
      if (!refuses || where != "load" || ten.loaded > 1) return nullptr;
      return kiln_error_create(KILN_CORRUPT, "these are not mine", 18, nullptr);
    };
    const host::Context context = host::make_context(folder.path);
    ten.register_in(context.get());
    const host::Compiled compiled = compile_on(context.get(), plain, "ten");
    ASSERT_EQ(compiled.error, host::Error());
    const bool is_first = ten.compiled == 1 && !refuses;
    EXPECT_EQ(host::text(compiled.report, "lookup"), refuses ? "REJECT" : is_first ? "MISS" : "HIT");
    if (refuses) {
      EXPECT_NE(host::text(compiled.report, "reason").find("these are not mine"), std::string::npos);
      EXPECT_EQ(ten.compiled, 1);
    }
    expect_runs(compiled.executable, 10);
  }
}

TEST(Backend, IsOfItsContextAlone) {
  TestBackend ten;
  const host::Context one = host::make_context(), two = host::make_context();
  ten.register_in(one.get());
  const host::Compiled compiled = compile_on(two.get(), plain, "ten");
  EXPECT_EQ(compiled.error.code, KILN_UNKNOWN_NAME);
  EXPECT_EQ(compiled.error.message, "backend 'ten' is not known; there are cpu, cuda, reference");
  EXPECT_EQ(compile_on(one.get(), plain, "nine").error.message,
            "backend 'nine' is not known; there are cpu, cuda, reference, ten");
}

TEST(Backend, LivesAsLongAsItsExecutables) {
  TestBackend ten;
  host::Executable kept;
  {
    const host::Context context = host::make_context();
    const uint64_t id = ten.register_in(context.get());
    host::Compiled compiled = compile_on(context.get(), plain, "ten");
    ASSERT_EQ(compiled.error, host::Error());
    kept = std::move(compiled.executable);
    EXPECT_OK(kiln_backend_unregister(context.get(), id));
    EXPECT_FAILS(kiln_backend_unregister(context.get(), id), KILN_OUT_OF_RANGE, "no backend has id");
    EXPECT_EQ(compile_on(context.get(), plain, "ten").error.code, KILN_UNKNOWN_NAME);
  }
  EXPECT_EQ(ten.destroyed, 0);
  expect_runs(kept, 10);
  kept = nullptr;
  EXPECT_EQ(ten.unloaded, 1);
  EXPECT_EQ(ten.destroyed, 1);
}

TEST(Backend, IsAskedForWhenAFileIsOpened) {
  const Folder folder;
  const std::string file = folder.path + ".kiln";
  TestBackend ten;
  const host::Context context = host::make_context();
  ten.register_in(context.get());
  const host::Compiled compiled = compile_on(context.get(), plain, "ten");
  ASSERT_EQ(compiled.error, host::Error());
  ASSERT_OK(kiln_executable_save(compiled.executable.get(), file.data(), file.size(), nullptr));
  kiln_executable *opened = nullptr;
  const host::Context empty = host::make_context();
  EXPECT_FAILS(kiln_executable_open(empty.get(), file.data(), file.size(), nullptr, &opened), KILN_INCOMPATIBLE,
               "backend 'ten', which is not there; none is registered; load or register what it was made with: "
               "version '1', uuid");
  TestBackend newer;
  newer.backend.version = "2";
  newer.register_in(empty.get());
  EXPECT_FAILS(kiln_executable_open(empty.get(), file.data(), file.size(), nullptr, &opened), KILN_INCOMPATIBLE,
               "backend 'ten' is version '2'");
  TestBackend same;
  const host::Context third = host::make_context();
  same.register_in(third.get());
  ASSERT_OK(kiln_executable_open(third.get(), file.data(), file.size(), nullptr, &opened));
  expect_runs(host::Executable(opened), 10);
  EXPECT_EQ(same.compiled, 0);
  std::filesystem::remove(file);
}

class BackendPrepares : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(What, BackendPrepares, testing::Bool(),
                         [](const auto &instance) { return instance.param ? "Nothing" : "Something"; });

TEST_P(BackendPrepares, ParametersOncePerBinding) {
  TestBackend ten;
  ten.takes_op = "add";
  ten.prepares_nothing = GetParam();
  const host::Context context = host::make_context();
  ten.register_in(context.get());
  const host::Compiled compiled = compile_on(context.get(), R"({"kiln": 1,
    "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": [3]}}],
    "parameters": [{"name": "w", "type": {"dtype": "f32", "shape": [3]}}],
    "nodes": [{"name": "a", "op": "add", "inputs": ["x", "w"]}, {"name": "b", "op": "abs", "inputs": ["a"]}],
    "outputs": [{"name": "y", "value": "b"}]})",
                                             "ten");
  ASSERT_EQ(compiled.error, host::Error());
  const host::Array w({3}, {0, 0, 0});
  {
    const host::Call call = host::make_call(compiled.executable);
    const host::Array x({3}, {1, 2, 3}), y({3}, {0, 0, 0});
    for (const int times : {1, 2}) {
      EXPECT_OK(kiln_call_bind(call.get(), 1, &w.tensor));
      for (int run = 0; run < 3; ++run) ASSERT_OK(host::run(call.get(), {&x, &y}));
      EXPECT_EQ(ten.prepared, times);
      EXPECT_EQ(y.values, (std::vector<float>{10, 20, 30}));
    }
  }
  EXPECT_EQ(ten.released, GetParam() ? 0 : 2);
}

TEST(Backend, IsOfferedWhatACompositeIsMadeOf) {
  constexpr std::string_view soft = R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": [2, 3]}}],
    "nodes": [{"name": "s", "op": "softmax", "inputs": ["x"], "attrs": {"dim": 1}}],
    "outputs": [{"name": "y", "value": "s"}]})";
  for (const bool takes_parts : {true, false}) {
    TestBackend ten;
    ten.takes_all_but = takes_parts;
    ten.takes_op = "softmax";
    if (!takes_parts) ten.takes_op = "exp";
    const host::Context context = host::make_context();
    ten.register_in(context.get());
    const host::Compiled compiled = compile_on(context.get(), soft, "ten");
    ASSERT_EQ(compiled.error, host::Error());
    EXPECT_EQ(ten.compiled, takes_parts ? 1 : 0) << "all of it, or nothing";
    EXPECT_EQ(host::text(host::describe(compiled.executable.get()), "compile.partition.regions.0.backend"),
              takes_parts ? "ten" : "cpu");
  }
}

TEST(Backend, CompilesEqualRegionsOnce) {
  TestBackend ten;
  const host::Context context = host::make_context();
  ten.register_in(context.get());
  const host::Compiled compiled = compile_on(context.get(), R"({"kiln": 1,
    "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": [3]}}],
    "nodes": [{"name": "a", "op": "neg", "inputs": ["x"]}, {"name": "b", "op": "abs", "inputs": ["a"]},
              {"name": "c", "op": "neg", "inputs": ["b"]}, {"name": "d", "op": "abs", "inputs": ["c"]}],
    "outputs": [{"name": "y", "value": "d"}]})",
                                             "ten");
  ASSERT_EQ(compiled.error, host::Error());
  expect_runs(compiled.executable, 100);
  EXPECT_EQ(ten.compiled, 1);
  EXPECT_EQ(ten.loaded, 1);
  EXPECT_EQ(ten.ran, 2);
}

TEST(Backend, HasOptionsThatACompileSets) {
  const Folder folder;
  const int64_t fallback = 3;
  const kiln_attr option = host::attr("limit", KILN_ATTR_I64, 1, &fallback);
  static int64_t seen = 0;
  TestBackend ten;
  ten.backend.options = &option, ten.backend.option_count = 1;
  ten.backend.compile = [](void *, kiln_backend_call *call, const kiln_graph *) -> kiln_error * {
    kiln_attr out{};
    if (kiln_error *error = kiln_backend_option(call, "limit", 5, &out)) return error;
    seen = *static_cast<const int64_t *>(out.data);
    return kiln_backend_blob(call, "neg", 3);
  };
  const host::Context context = host::make_context(folder.path);
  ten.register_in(context.get());
  ASSERT_EQ(compile_on(context.get(), plain, "ten").error, host::Error());
  EXPECT_EQ(seen, 3);
  const auto set = [](const char *name) {
    return [name](kiln_options *options) { EXPECT_OK(kiln_options_set_i64(options, name, strlen(name), 5)); };
  };
  const host::Compiled other = compile_on(context.get(), plain, "ten", set("backend.ten.limit"));
  EXPECT_EQ(host::text(other.report, "lookup"), "MISS");
  EXPECT_EQ(seen, 5);
  EXPECT_EQ(compile_on(context.get(), plain, "ten", set("backend.ten.x")).error.message,
            "option 'backend.ten.x': backend 'ten' has no option 'x'; it has limit");
  EXPECT_EQ(compile_on(context.get(), plain, "cpu", set("backend.two.x")).error.code, KILN_UNKNOWN_NAME);
}

// Takes neg and tells of others why not; its bytes are what the compile says of rounding.
struct Telling : TestBackend {
  std::vector<std::string> roundings;
  Telling() {
    backend.user = static_cast<TestBackend *>(this);
    backend.takes = [](void *, kiln_backend_call *call, const kiln_graph *graph, kiln_node node,
                       uint32_t *out) -> kiln_error * {
      kiln_op neg = 0;
      if (kiln_error *error = kiln_op_find(kiln_backend_context(call), "neg", 3, &neg)) return error;
      *out = kiln_node_op(graph, node) == neg;
      if (*out) return nullptr;
      EXPECT_OK(kiln_backend_refuse(call, "a first thought", 15));
      return kiln_backend_refuse(call, "it is no neg", 12);
    };
    backend.compile = [](void *user, kiln_backend_call *call, const kiln_graph *) -> kiln_error * {
      kiln_attr out{};
      if (kiln_error *error = kiln_backend_option(call, "kiln.rounding", 13, &out)) return error;
      const auto *text = static_cast<const kiln_text *>(out.data);
      static_cast<Telling *>(static_cast<TestBackend *>(user))->roundings.emplace_back(text->data, text->size);
      return kiln_backend_blob(call, "neg", 3);
    };
  }
};

TEST(Backend, TellsWhyItDoesNotTakeANode) {
  Telling ten;
  const host::Context context = host::make_context();
  ten.register_in(context.get());
  const std::string graph = R"({"kiln": 1,
    "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": [3]}}],
    "nodes": [{"name": "a", "op": "neg", "inputs": ["x"]}, {"name": "b", "op": "abs", "inputs": ["a"]}],
    "outputs": [{"name": "y", "value": "b"}]})";
  const host::Compiled compiled = compile_on(context.get(), graph, "ten");
  ASSERT_EQ(compiled.error, host::Error());
  const host::Report description = host::describe(compiled.executable.get());
  const auto declined = [&](const char *member) {
    return host::text(description, (std::string("compile.partition.declined.0.") + member).c_str());
  };
  EXPECT_EQ(declined("node"), "b");
  EXPECT_EQ(declined("op"), "abs");
  EXPECT_EQ(declined("backend"), "ten");
  EXPECT_EQ(declined("reason"), "it is no neg");
  const host::Compiled strict = compile_on(context.get(), graph, "ten", [](kiln_options *options) {
    EXPECT_OK(kiln_options_set_text(options, "fallback", 8, "error", 5));
  });
  EXPECT_EQ(strict.error.message,
            "node 'b' [abs]: backend ten does not take it: it is no neg; option 'fallback' is 'error'");
}

TEST(Backend, IsToldHowToRoundAndCompilesEqualRegionsOfBothWaysTwice) {
  Telling ten;
  const host::Context context = host::make_context();
  ten.register_in(context.get());
  const auto node = [](const std::string &name, const std::string &input, const std::string &more) {
    return R"({"name": ")" + name + R"(", "op": "neg", "inputs": [")" + input +
           R"("], "annotations": {"kiln.region": {"text": ")" + name + R"("})" + more + "}}";
  };
  const std::string graph =
      R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": [3]}}], "nodes": [)" +
      node("a", "x", "") + ", " + node("b", "a", R"(, "kiln.region.rounding": {"text": "relaxed"})") + ", " +
      node("c", "b", "") + R"(], "outputs": [{"name": "y", "value": "c"}]})";
  const host::Compiled compiled = compile_on(context.get(), graph, "ten", [](kiln_options *options) {
    EXPECT_OK(kiln_options_set_text(options, "mode", 4, "marked", 6));
  });
  ASSERT_EQ(compiled.error, host::Error());
  EXPECT_EQ(ten.roundings, (std::vector<std::string>{"strict", "relaxed"}));
}

TEST(Backend, GetsAStridedInputDense) {
  TestBackend ten;
  const host::Context context = host::make_context();
  ten.register_in(context.get());
  const host::Compiled compiled = compile_on(context.get(), R"({"kiln": 1,
    "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": [2, 2], "strides": [1, 2]}}],
    "nodes": [{"name": "a", "op": "neg", "inputs": ["x"]}], "outputs": [{"name": "y", "value": "a"}]})",
                                             "ten");
  ASSERT_EQ(compiled.error, host::Error());
  const host::Call call = host::make_call(compiled.executable);
  const int64_t strides[] = {1, 2};
  host::Array x({2, 2}, {1, 3, 2, 4}), y({2, 2}, {0, 0, 0, 0});
  x.tensor.strides = const_cast<int64_t *>(strides);
  ASSERT_OK(host::run(call.get(), {&x, &y}));
  EXPECT_EQ(y.values, (std::vector<float>{-10, -20, -30, -40}));
}

TEST(Backend, TakesNoSymbolsUnlessItSaysSo) {
  for (const bool symbolic : {false, true}) {
    TestBackend ten;
    if (symbolic) ten.backend.flags |= KILN_BACKEND_SYMBOLIC;
    const host::Context context = host::make_context();
    ten.register_in(context.get());
    const host::Compiled compiled = compile_on(context.get(), host::chain(""), "ten");
    ASSERT_EQ(compiled.error, host::Error());
    EXPECT_EQ(ten.compiled, symbolic ? 1 : 0);
    const host::Compiled strict = compile_on(context.get(), host::chain(""), "ten", [](kiln_options *options) {
      EXPECT_OK(kiln_options_set_text(options, "fallback", 8, "error", 5));
    });
    EXPECT_NE(strict.error.message.find(symbolic ? "it says that it does not" : "it has sizes that a call tells"),
              std::string::npos)
        << strict.error.message;
  }
}

// "n" is declared with what is known of it; what the backend takes has nothing to do with it.
TEST(Backend, MakesEntriesOnThreadsOfKilnsOnlyIfItSaysSo) {
  std::string json(plain);
  json.replace(json.find("[3]"), 3, "[\"n\"]");
  for (const bool any_thread : {false, true}) {
    const std::thread::id caller = std::this_thread::get_id();
    std::atomic<int> elsewhere = 0;
    TestBackend ten;
    ten.backend.flags |= KILN_BACKEND_SYMBOLIC | (any_thread ? KILN_BACKEND_ANY_THREAD : 0);
    ten.fails = [&](std::string_view where) {
      elsewhere += (where == "takes" || where == "compile") && std::this_thread::get_id() != caller;
      return nullptr;
    };
    const host::Context context = host::make_context();
    ten.register_in(context.get());
    const host::Compiled compiled = compile_on(context.get(), json, "ten", [](kiln_options *options) {
      const kiln_text sizes{"n=3", 3};
      const kiln_attr attr = host::attr("specialize", KILN_ATTR_TEXT | KILN_ATTR_LIST, 1, &sizes);
      EXPECT_OK(kiln_options_set(options, &attr));
      EXPECT_OK(kiln_options_set_text(options, "specialize_when", 15, "background", 10));
    });
    ASSERT_EQ(compiled.error, host::Error());
    EXPECT_EQ(host::text(compiled.report, "entries.0.state"), any_thread ? "later" : "made");
    ASSERT_OK(kiln_context_close(context.get()));
    EXPECT_EQ(elsewhere > 0, any_thread);
    EXPECT_EQ(ten.compiled, 2);
    expect_runs(compiled.executable, 10);
  }
}

TEST(Backend, TakesARegionThatSpeaksOfFewerSymbolsThanTheGraph) {
  TestBackend ten;
  const host::Context context = host::make_context();
  ten.register_in(context.get());
  const host::Compiled compiled = compile_on(context.get(), R"({"kiln": 1, "symbols": {"n": {"min": 1, "hint": 5}},
      "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": [3]}},
                 {"name": "w", "type": {"dtype": "f32", "shape": ["n"]}}],
      "nodes": [{"name": "y", "op": "neg", "inputs": ["x"]}, {"name": "z", "op": "exp", "inputs": ["w"]}],
      "outputs": [{"name": "y", "value": "y"}, {"name": "z", "value": "z"}]})",
                                             "ten");
  ASSERT_EQ(compiled.error, host::Error());
  const host::Call call = host::make_call(compiled.executable);
  const host::Array x({3}, {-1.5f, 2, 0}), w({2}, {0, 0}), y({3}, {9, 9, 9}), z({2}, {9, 9});
  ASSERT_OK(host::run(call.get(), {&x, &w, &y, &z}));
  EXPECT_EQ(y.values, (std::vector<float>{15, -20, 0}));
  EXPECT_EQ(z.values, (std::vector<float>{1, 1}));
}

struct BackendCallback : host::Row {
  const char *where;
  bool in_run = false;
};
class BackendFailure : public testing::TestWithParam<BackendCallback> {};

TEST_P(BackendFailure, IsNamedAndLeavesTheContextUsable) {
  const BackendCallback &failure = GetParam();
  const Folder folder;
  TestBackend ten;
  {
    const host::Context context = host::make_context(folder.path);
    bool broken = true;
    ten.fails = [&](std::string_view where) -> kiln_error * {
      return broken && where == failure.where ? kiln_error_create(KILN_IO, "no luck", 7, nullptr) : nullptr;
    };
    ten.backend.prepare = nullptr, ten.backend.release = nullptr;
    ten.register_in(context.get());
    const host::Compiled compiled = compile_on(context.get(), plain, "ten");
    if (failure.in_run) {
      ASSERT_EQ(compiled.error, host::Error());
      const host::Call call = host::make_call(compiled.executable);
      const host::Array x({3}, {1, 2, 3}), y({3}, {0, 0, 0});
      EXPECT_FAILS(host::run(call.get(), {&x, &y}), KILN_IO, "node 'a': backend 'ten': no luck");
      broken = false;
      ASSERT_OK(host::run(call.get(), {&x, &y}));
    } else {
      EXPECT_EQ(compiled.error.code, KILN_IO);
      EXPECT_NE(compiled.error.message.find("backend 'ten': no luck"), std::string::npos) << compiled.error.message;
      broken = false;
      const host::Compiled again = compile_on(context.get(), plain, "ten");
      ASSERT_EQ(again.error, host::Error());
      expect_runs(again.executable, 10);
    }
  }
  EXPECT_EQ(ten.destroyed, 1);
}

constexpr BackendCallback backend_callbacks[] = {{{"Target"}, "target"},   {{"Takes"}, "takes"},
                                                 {{"Compile"}, "compile"}, {{"Load"}, "load"},
                                                 {{"Open"}, "open", true}, {{"Run"}, "run", true}};
INSTANTIATE_TEST_SUITE_P(Backends, BackendFailure, testing::ValuesIn(backend_callbacks), host::name_of_row);

}  // namespace
