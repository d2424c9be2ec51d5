// A host that forks between its calls: parent and child go on compiling, running in parallel, saving and destroying.
#include <atomic>
#include <functional>
#include <thread>

#include "host.h"
#include "tests/child.h"
#include "tests/paths.h"
#include "tests/soak.h"
#include "tests/temporary_folder.h"

namespace {

using kiln::test::in_child;

class Fork : public testing::Test {
 protected:
  host::Context make_context() const { return host::make_context(cache, nullptr, 3); }

  // Compiles x * factor, and says how the lookup ended.
  static host::Compiled compile(const host::Context &context, int factor, std::string_view lookup) {
    const host::Graph graph = host::parse(context.get(), host::scaled(factor));
    host::Compiled compiled = host::compile(context.get(), graph.get());
    EXPECT_EQ(compiled.error, host::Error());
    EXPECT_EQ(host::text(compiled.report, "lookup"), lookup);
    return compiled;
  }

  static void run(const host::Compiled &compiled, int factor) {
    host::expect_scaled(compiled.executable.get(), factor);
  }

  // Compiles without a kernel. Each `size` has a key of its own.
  static std::string reshape_to(int size) {
    const std::string n = std::to_string(size);
    return R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": [)" + n +
           R"(]}}], "nodes": [{"name": "y", "op": "reshape", "inputs": ["x"], "attrs": {"shape": [)" + n +
           R"(, 1]}}], "outputs": [{"name": "y", "value": "y"}]})";
  }

  const kiln::test::TemporaryFolder folder;
  const std::string cache = folder.file("cache");
};

TEST_F(Fork, ParentAndChildGoOnAfterParallelCalls) {
  SKIP_WHERE_CHILDREN_HAVE_NO_THREADS();
  host::Context context = make_context();
  host::Compiled compiled = compile(context, 2, "MISS");
  run(compiled, 2);  // the pool's workers sleep, or still look for work, when the fork comes
  in_child([&] {
    run(compiled, 2);
    compiled = {};
    context = nullptr;
  });
  run(compiled, 2);
  in_child([&] {
    context = nullptr;  // the executable keeps the pool
    run(compiled, 2);
  });
}

TEST_F(Fork, ParentAndChildGoOnAfterBackgroundSaves) {
  SKIP_WHERE_CHILDREN_HAVE_NO_THREADS();
  host::Context context = make_context();
  compile(context, 2, "MISS");
  // Its save has just been asked for, is under way, or is done. A child that destroys what it inherited does not wait.
  for (int i = 0; i < 10; i++) {
    compile(context, 10 + i, "MISS");
    in_child([&] { context = nullptr; });
  }
  in_child([&] {
    run(compile(context, 3, "MISS"), 3);
    EXPECT_OK(kiln_context_close(context.get()));
  });
  run(compile(context, 4, "MISS"), 4);
  EXPECT_OK(kiln_context_close(context.get()));
  // All is saved, by whomever it was compiled.
  context = make_context();
  for (int factor : {2, 3, 4, 10, 19}) compile(context, factor, "HIT");
}

TEST_F(Fork, AChildCompilesWhatItsParentIsSaving) {
  SKIP_WHERE_CHILDREN_HAVE_NO_THREADS();
  host::Context context = make_context();
  for (int i = 0; i < 10; i++) {
    compile(context, 10 + i, "MISS");
    in_child([&] {
      const host::Graph graph = host::parse(context.get(), host::scaled(10 + i));
      const host::Compiled again = host::compile(context.get(), graph.get());
      EXPECT_EQ(again.error, host::Error());
      EXPECT_NE(host::text(again.report, "reason"), "in flight") << "of the parent's, which the child has no part in";
      run(again, 10 + i);
      context = nullptr;
    });
  }
}

TEST_F(Fork, AChildCompilesAndSavesFirst) {
  host::Context context = make_context();
  in_child([&] {
    run(compile(context, 5, "MISS"), 5);
    context = nullptr;
  });
  compile(context, 5, "HIT");
  compile(context, 6, "MISS");
}

TEST_F(Fork, AChildOfAChildGoesOn) {
  SKIP_WHERE_CHILDREN_HAVE_NO_THREADS();
  host::Context context = make_context();
  const host::Compiled compiled = compile(context, 2, "MISS");
  run(compiled, 2);
  in_child([&] {
    run(compiled, 2);
    compile(context, 7, "MISS");
    in_child([&] {
      run(compiled, 2);
      compile(context, 8, "MISS");
      context = nullptr;
    });
    run(compiled, 2);
    context = nullptr;
  });
  compile(context, 8, "HIT");
  compile(context, 7, "HIT");
}

// The other threads are inside Kiln when the fork comes: the child may end, or become another program.
TEST_F(Fork, AChildEndsWhileOtherThreadsOfItsParentWork) {
  host::Context context = make_context();
  const host::Compiled compiled = compile(context, 2, "MISS");
  std::atomic<bool> stop = false;
  std::atomic<int> next = 100;
  const std::function<void()> work[] = {
      [&] { run(compiled, 2); },
      [&] { compile(context, next++, "MISS"); },
  };
  std::vector<std::thread> threads;
  for (const auto &job : work)
    threads.emplace_back([&] {
      while (!stop) job();
    });
  for (int i = 0; i < 10; i++) in_child([] {});
  stop = true;
  for (std::thread &thread : threads) thread.join();
  run(compiled, 2);
}

// Threads make contexts, whose first compile starts the thread that saves, and destroy them.
TEST_F(Fork, ContextsComeAndGoWhileAnotherThreadForks) {
  for (int i = 0; i < (kiln::test::soak() ? 100 : 1); i++) {
    in_child([&] {  // which is ended where they wait for each other
      std::atomic<bool> stop = false;
      std::atomic<int> made = 0;
      const auto work = [&](const std::string &own_cache) {
        while (!stop) {
          const host::Context context = host::make_context(own_cache);
          const host::Graph graph = host::parse(context.get(), reshape_to(1000 * i + ++made));
          EXPECT_EQ(host::compile(context.get(), graph.get()).error, host::Error());
        }
      };
      std::thread threads[] = {std::thread(work, cache + "/1"), std::thread(work, cache + "/2")};
      while (made < 100) {
        const pid_t child = ::fork();
        if (child == 0) ::_exit(0);
        EXPECT_EQ(::waitpid(child, nullptr, 0), child);
      }
      stop = true;
      for (std::thread &thread : threads) thread.join();
    });
  }
}

// The plugin's constructor makes contexts until a fork on another thread has ended.
TEST_F(Fork, APluginForksWhileItIsLoaded) {
  in_child([&] {
    const host::Context context = host::make_context();
    const std::string plugin = std::string(kiln::test::binary_dir) + "/test_plugins/forks.so";
    EXPECT_OK(kiln_plugin_load(context.get(), plugin.data(), plugin.size(), nullptr));
  });
}

}  // namespace
