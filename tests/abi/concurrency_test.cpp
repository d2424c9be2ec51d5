// What any thread may do at any time: run one executable, compile in one context, use one cache from several contexts,
// read one graph. Made for the thread sanitizer; the results are checked as well.

#include <atomic>
#include <filesystem>
#include <functional>
#include <thread>

#include "host.h"
#include "tests/paths.h"
#include "tests/temporary_folder.h"

namespace {

constexpr int thread_count = 4;

// Runs `body` on several threads, which begin together.
void on_threads(const std::function<void(int)> &body) {
  std::atomic<int> waiting = thread_count;
  std::vector<std::thread> threads;
  for (int i = 0; i < thread_count; i++) {
    threads.emplace_back([&, i] {
      waiting--;
      while (waiting > 0) std::this_thread::yield();
      body(i);
    });
  }
  for (std::thread &thread : threads) thread.join();
}

// y = x w' + b, w being packed once, on all threads' behalf.
constexpr std::string_view linear = R"({"kiln": 1,
  "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n", 32]}}],
  "parameters": [{"name": "w", "type": {"dtype": "f32", "shape": [48, 32]}},
                 {"name": "b", "type": {"dtype": "f32", "shape": [48]}}],
  "nodes": [{"name": "y", "op": "linear", "inputs": ["x", "w", "b"]}],
  "outputs": [{"name": "y", "value": "y"}]})";

host::Call call_of(kiln_executable *executable) {
  kiln_call *made = nullptr;
  EXPECT_OK(kiln_call_create(executable, &made));
  return host::Call(made);
}

void expect_scaled(kiln_executable *executable, float factor) {
  const host::Call call = call_of(executable);
  const host::Array x({3}, {1, 2, 3}), y({3}, {0, 0, 0});
  const DLTensor *args[] = {&x.tensor, &y.tensor};
  EXPECT_OK(kiln_call_run(call.get(), args, 2, nullptr));
  EXPECT_EQ(y.values[2], 3 * factor);
}

class Concurrency : public testing::Test {
 protected:
  const kiln::test::TemporaryFolder folder;
  const std::string cache = folder.path();
};

TEST_F(Concurrency, OneExecutableRunsOnManyThreads) {
  const host::Context context = host::make_context();
  const host::Graph graph = host::parse(context.get(), linear);
  const host::Compiled compiled = host::compile(context.get(), graph.get());
  ASSERT_EQ(compiled.error, host::Error());
  const host::Array w({48, 32}, std::vector<float>(48 * 32, 0.5f)), b({48}, std::vector<float>(48, 1.0f));
  on_threads([&](int thread) {
    const host::Call call = call_of(compiled.executable.get());
    EXPECT_OK(kiln_call_bind(call.get(), 1, &w.tensor));
    EXPECT_OK(kiln_call_bind(call.get(), 2, &b.tensor));
    for (int64_t n : {1, 5, 17, 1}) {
      const auto value = static_cast<float>(thread);
      const host::Array x({n, 32}, std::vector<float>(static_cast<size_t>(n) * 32, value));
      const host::Array y({n, 48}, std::vector<float>(static_cast<size_t>(n) * 48));
      const DLTensor *args[] = {&x.tensor, &y.tensor};
      EXPECT_OK(kiln_call_run(call.get(), args, 2, nullptr));
      EXPECT_EQ(y.values.back(), 16 * value + 1);
    }
  });
}

TEST_F(Concurrency, ClonesPrepareTheirParametersOnce) {
  const host::Context context = host::make_context();
  const host::Graph graph = host::parse(context.get(), linear);
  const host::Compiled compiled = host::compile(context.get(), graph.get());
  ASSERT_EQ(compiled.error, host::Error());
  const host::Array w({48, 32}, std::vector<float>(48 * 32, 0.5f)), b({48}, std::vector<float>(48, 1.0f));
  const host::Call first = call_of(compiled.executable.get());
  ASSERT_OK(kiln_call_bind(first.get(), 1, &w.tensor));
  ASSERT_OK(kiln_call_bind(first.get(), 2, &b.tensor));
  std::vector<host::Call> clones;
  for (int i = 0; i < thread_count; i++) {
    kiln_call *made = nullptr;
    ASSERT_OK(kiln_call_clone(first.get(), &made));
    clones.emplace_back(made);
  }
  on_threads([&](int thread) {
    const host::Array x({2, 32}, std::vector<float>(64, 2.0f)), y({2, 48}, std::vector<float>(96));
    const DLTensor *args[] = {&x.tensor, &y.tensor};
    kiln_call *own = clones[static_cast<size_t>(thread)].get();
    for (int i = 0; i < 5; i++) EXPECT_OK(kiln_call_run(own, args, 2, nullptr));
    EXPECT_EQ(y.values.back(), 33.0f);
  });
}

TEST_F(Concurrency, OneContextCompilesOnManyThreads) {
  const host::Context context = host::make_context(cache);
  on_threads([&](int thread) {
    for (int i = 0; i < 3; i++) {  // one graph that all compile, and one of the thread's own
      for (const int factor : {7, 100 + thread}) {
        const host::Graph graph = host::parse(context.get(), host::scaled(factor));
        const host::Compiled compiled = host::compile(context.get(), graph.get());
        EXPECT_EQ(compiled.error, host::Error());
        if (compiled.executable) expect_scaled(compiled.executable.get(), static_cast<float>(factor));
      }
    }
  });
  EXPECT_OK(kiln_context_close(context.get()));
  EXPECT_EQ(host::i64(host::context_report(context.get()), "handles.live"), 0);
}

TEST_F(Concurrency, SeveralContextsShareACache) {
  on_threads([&](int thread) {
    for (int i = 0; i < 3; i++) {
      const host::Context context = host::make_context(cache);
      const host::Graph graph = host::parse(context.get(), host::scaled(thread % 2 + 2));
      const host::Compiled compiled = host::compile(context.get(), graph.get());
      EXPECT_EQ(compiled.error, host::Error());
      if (compiled.executable) expect_scaled(compiled.executable.get(), static_cast<float>(thread % 2 + 2));
      kiln_report *report = nullptr;
      EXPECT_OK(kiln_cache_command(context.get(), "verify", 6, nullptr, &report));
      kiln_report_destroy(report);
      EXPECT_OK(kiln_context_close(context.get()));
    }
  });
}

TEST_F(Concurrency, PassesComeAndGoWhileOthersCompile) {
  const host::Context context = host::make_context();
  static constexpr const char *names[] = {"a", "b", "c", "d"};
  static std::atomic<int> runs, destroyed;
  runs = destroyed = 0;
  on_threads([&](int thread) {
    kiln_pass pass{};
    pass.struct_size = sizeof pass;
    pass.stage = KILN_STAGE_POST_GRAD;
    pass.name = names[thread];
    pass.name_size = 1;
    pass.run = [](void *, kiln_pass_call *call) {
      runs++;
      return kiln_pass_done(call, 0);
    };
    pass.destroy = [](void *) { destroyed++; };
    for (int i = 0; i < 3; i++) {
      uint64_t id = 0;
      EXPECT_OK(kiln_pass_register(context.get(), &pass, nullptr, &id));
      const host::Graph graph = host::parse(context.get(), host::scaled(thread));
      EXPECT_EQ(host::compile(context.get(), graph.get()).error, host::Error());
      EXPECT_OK(kiln_pass_unregister(context.get(), id));
    }
  });
  EXPECT_GE(runs, 3 * thread_count) << "each compile runs at least the pass of its own thread";
  EXPECT_EQ(destroyed, 3 * thread_count);
}

TEST_F(Concurrency, AContextIsClosedWhileOthersCompile) {
  const host::Context context = host::make_context(cache);
  on_threads([&](int thread) {
    if (thread == 0) {
      EXPECT_OK(kiln_context_close(context.get()));
      return;
    }
    const host::Graph graph = host::parse(context.get(), host::scaled(thread));
    const host::Compiled compiled = host::compile(context.get(), graph.get());
    if (compiled.executable)
      expect_scaled(compiled.executable.get(), static_cast<float>(thread));
    else
      EXPECT_EQ(compiled.error.message, "the context is closed");
  });
}

TEST_F(Concurrency, OneGraphIsReadOnManyThreads) {
  const host::Context context = host::make_context();
  const host::Graph graph = host::parse(context.get(), R"({"kiln": 1,
    "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n", "2*n"]}}],
    "nodes": [{"name": "y", "op": "permute", "inputs": ["x"], "attrs": {"dims": [1, 0]},
               "annotations": {"mine": {"text": ["a", "b"]}, "flag": {"bool": true}}}],
    "outputs": [{"name": "y", "value": "y"}]})");
  kiln_node node = 0;
  ASSERT_OK(kiln_graph_find(graph.get(), "y", 1, &node));
  on_threads([&](int) {
    for (int i = 0; i < 20; i++) {
      kiln_attr attrs[2] = {};
      kiln_dim dims[2] = {};
      kiln_text text{};
      uint64_t count = 0;
      EXPECT_OK(kiln_node_annotations(graph.get(), node, attrs, 2, &count));
      EXPECT_EQ(count, 2u);
      EXPECT_EQ(host::text_of(static_cast<const kiln_text *>(attrs[1].data)[1]), "b");
      EXPECT_OK(kiln_value_dims(graph.get(), node << 32, dims, 2, &count));
      EXPECT_OK(kiln_dim_text(context.get(), &dims[0], &text));
      EXPECT_EQ(host::text_of(text), "2*n");
      EXPECT_NE(host::write(graph.get(), "json"), "");
    }
  });
}

TEST_F(Concurrency, APluginIsLoadedIntoSeveralContextsAtOnce) {
  const std::string path = kiln::test::binary_dir + "/test_plugins/good.so";
  on_threads([&](int thread) {
    const host::Context context = host::make_context();
    EXPECT_OK(kiln_plugin_load(context.get(), path.data(), path.size(), nullptr));
    const host::Graph graph = host::parse(context.get(), host::scaled(thread));
    EXPECT_EQ(host::compile(context.get(), graph.get()).error, host::Error());
    EXPECT_OK(kiln_context_close(context.get()));
  });
}

}  // namespace
