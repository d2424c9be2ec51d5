// A host's process as Kiln finds it: limits on files and threads, signals of the host's, and its exit.
#include <sys/resource.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "host.h"
#include "tests/child.h"
#include "tests/no_threads.h"
#include "tests/soak.h"
#include "tests/temporary_folder.h"

namespace {

using kiln::test::in_child;

// Three kernels of different sizes, which nothing fuses.
constexpr std::string_view several_kernels = R"({"kiln": 1,
  "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n", 64]}}],
  "parameters": [{"name": "w", "type": {"dtype": "f32", "shape": [64, 64]}}],
  "nodes": [{"name": "a", "op": "softmax", "inputs": ["x"], "attrs": {"dim": 1}},
            {"name": "b", "op": "linear", "inputs": ["a", "w"]},
            {"name": "y", "op": "softmax", "inputs": ["b"], "attrs": {"dim": 1}}],
  "outputs": [{"name": "y", "value": "y"}]})";

class Process : public testing::Test {
 protected:
  // Runs x * factor on all threads of the context; compiles it first. Says how the lookup ended.
  static std::string compile_and_run(kiln_context *context, int factor) {
    const host::Graph graph = host::parse(context, host::scaled(factor));
    const host::Compiled compiled = host::compile(context, graph.get());
    EXPECT_EQ(compiled.error, host::Error());
    if (!compiled.executable) return "";
    host::expect_scaled(compiled.executable.get(), factor);
    return host::text(compiled.report, "lookup");
  }

  const kiln::test::TemporaryFolder folder;
  const std::string cache = folder.file("cache");
};

TEST_F(Process, WithoutThreadsTheCallerDoesTheirWork) {
  in_child([&] {
    if (!kiln::test::forbid_threads()) GTEST_SKIP() << "this system filters no system calls";
    EXPECT_THROW(std::thread([] {}), std::system_error);
    host::Context context = host::make_context(cache, nullptr, 3);
    EXPECT_EQ(compile_and_run(context.get(), 2), "MISS");
    // Several kernels, the largest not the first.
    const host::Graph graph = host::parse(context.get(), several_kernels);
    EXPECT_EQ(host::compile(context.get(), graph.get()).error, host::Error());
    EXPECT_OK(kiln_context_close(context.get()));
    context = host::make_context(cache, nullptr, 3);
    EXPECT_EQ(compile_and_run(context.get(), 2), "HIT");
  });
}

TEST_F(Process, WhereNoFileMayGrowOnlySavesFail) {
  in_child([&] {
    const rlimit none{0, 0};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &none), 0);
    const host::Context context = host::make_context(cache, nullptr, 2);
    EXPECT_EQ(compile_and_run(context.get(), 2), "MISS");
    EXPECT_EQ(compile_and_run(host::make_context(cache, nullptr, 2).get(), 2), "MISS") << "nothing was saved";
    const host::Graph graph = host::parse(context.get(), host::scaled(3));
    const host::Compiled compiled = host::compile(context.get(), graph.get());
    const std::string path = cache + ".kiln";
    EXPECT_FAILS(kiln_executable_save(compiled.executable.get(), path.data(), path.size(), nullptr), KILN_IO, path);
    EXPECT_FALSE(std::filesystem::exists(path));
    EXPECT_FAILS(kiln_context_close(context.get()), KILN_IO, "saves to the cache failed");
  });
}

TEST_F(Process, SavingIntoAPipeThatNobodyReadsIsAnError) {
  in_child([&] {
    const host::Context context = host::make_context();
    const host::Graph graph = host::parse(context.get(), host::scaled(3));
    const host::Compiled compiled = host::compile(context.get(), graph.get());
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const std::string path = "/proc/self/fd/" + std::to_string(ends[1]);
    // Opening it again needs a reader, who then goes.
    std::thread reader([&] {
      char byte;
      EXPECT_EQ(::read(ends[0], &byte, 1), 1);
      ::close(ends[0]);
    });
    EXPECT_EQ(::write(ends[1], "x", 1), 1);
    reader.join();
    EXPECT_NE(host::take(kiln_executable_save(compiled.executable.get(), path.data(), path.size(), nullptr)).code,
              KILN_OK);
  });
}

std::set<std::filesystem::path> threads() {
  std::set<std::filesystem::path> all;
  for (const auto &task : std::filesystem::directory_iterator("/proc/self/task")) all.insert(task.path());
  return all;
}

// What each thread of this process blocks, but those that were there `before`: a sanitizer has one of its own.
std::vector<uint64_t> signals_blocked_since(const std::set<std::filesystem::path> &before) {
  std::vector<uint64_t> blocked;
  for (const std::filesystem::path &task : threads()) {
    if (before.contains(task)) continue;
    std::ifstream status(task / "status");
    for (std::string line; std::getline(status, line);)
      if (line.starts_with("SigBlk:")) blocked.push_back(std::strtoull(line.c_str() + 7, nullptr, 16));
  }
  return blocked;
}

TEST_F(Process, HandlersOfTheHostRunOnNoThreadOfKilns) {
  in_child([&] {
    std::thread([] {}).join();  // with which the thread sanitizer starts its own in a child
    struct Seen {
      std::set<std::filesystem::path> before = threads();
      std::vector<uint64_t> compiling;
    } seen;
    kiln_event_sink sink{};
    sink.struct_size = sizeof sink;
    sink.user = &seen;
    sink.event = [](void *user, uint32_t, const char *text, uint64_t size) -> int32_t {
      if (!std::string_view(text, size).starts_with("compiling kernels")) return 0;
      auto &noted = *static_cast<Seen *>(user);
      for (const uint64_t blocked : signals_blocked_since(noted.before)) noted.compiling.push_back(blocked);
      return 0;
    };
    const host::Context context = host::make_context("off", &sink, 1);  // no pool, no saves: what is there compiles
    for (int i = 0; i < 20 && seen.compiling.empty(); ++i) {            // which may have ended before it is looked at
      const host::Graph graph = host::parse(context.get(), several_kernels);
      EXPECT_EQ(host::compile(context.get(), graph.get()).error, host::Error());
    }
    EXPECT_FALSE(seen.compiling.empty());

    const host::Context other = host::make_context(cache, nullptr, 3);
    EXPECT_EQ(compile_and_run(other.get(), 2), "MISS");
    const std::vector<uint64_t> working = signals_blocked_since(seen.before);
    EXPECT_EQ(working.size(), 3u) << "two workers, and the thread that saves";

    for (const auto &threads : {seen.compiling, working})
      for (const uint64_t blocked : threads)
        for (const int number : {SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGCHLD, SIGPROF, SIGRTMIN})
          EXPECT_TRUE(blocked >> (number - 1) & 1) << "signal " << number;
  });
}

TEST_F(Process, AValueOfTheEnvironmentThatIsNotUnderstoodIsAnError) {
  for (const char *variable : {"KILN_PERF_MAP", "KILN_THREADS"}) {
    ASSERT_EQ(::setenv(variable, "abc", 1), 0);
    kiln_context *context = nullptr;
    EXPECT_FAILS(kiln_context_create(nullptr, nullptr, &context), KILN_INVALID_ARGUMENT,
                 std::string(variable) + " is 'abc'; expected ");
    EXPECT_EQ(context, nullptr);
    ::unsetenv(variable);
  }
}

// exit() comes while workers look for work and a save is under way; nothing is destroyed before.
TEST_F(Process, MayExitAtAnyTime) {
  for (int i = 0; i < 10; ++i) {
    in_child(
        [&] {
          kiln::test::expect_leaks();
          kiln_context *context = host::make_context(cache, nullptr, 3).release();
          const host::Graph graph = host::parse(context, host::scaled(100 + i));
          host::Compiled compiled = host::compile(context, graph.get());
          host::expect_scaled(compiled.executable.get(), 100 + i);
          (void)compiled.executable.release();
        },
        true);
  }
  const host::Context context = host::make_context(cache);
  kiln_report *report = nullptr;
  ASSERT_OK(kiln_cache_command(context.get(), "verify", 6, nullptr, &report));
  const host::Report verified(report);
  uint64_t problems = 1;
  EXPECT_OK(kiln_report_count(verified.get(), "problems", 8, &problems));
  EXPECT_EQ(problems, 0u) << "records are whole, or not there";
}

// exit() comes while another thread compiles and runs.
TEST_F(Process, MayExitWhileItCompiles) {
  for (int i = 0; i < (kiln::test::soak() ? 200 : 10); ++i) {
    in_child(
        [&] {
          kiln_context *context = host::make_context("off", nullptr, 2).release();
          std::thread([context] {  // asks nothing of GoogleTest, which is gone by then
            for (int factor = 0;; ++factor) {
              const std::string text = host::scaled(factor);
              kiln_graph *graph = nullptr;
              kiln_executable *executable = nullptr;
              kiln_error_destroy(kiln_graph_parse(context, text.data(), text.size(), &graph));
              kiln_error_destroy(kiln_compile(context, graph, nullptr, &executable, nullptr));
              kiln_executable_destroy(executable);
              kiln_graph_destroy(graph);
            }
          })
              .detach();
          std::this_thread::sleep_for(std::chrono::milliseconds(20 + 7 * (i % 10)));
        },
        true);
  }
}

}  // namespace
