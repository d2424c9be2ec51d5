// What Kiln adds to the start of a process: processes of their own, timed from spawn to exit.
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "figure.h"

extern char **environ;

namespace kiln::bench {
namespace {

// Runs a program to its end; returns the number that it prints.
double number_printed(std::vector<std::string> words) {
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0) throw cli::Failure("no pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, pipe_ends[0]);
  std::vector<char *> argv;
  for (std::string &word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t child = 0;
  const int failed = posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(pipe_ends[1]);
  char text[64] = {};
  const ssize_t size = failed ? 0 : read(pipe_ends[0], text, sizeof text - 1);
  close(pipe_ends[0]);
  int status = -1;
  if (failed || waitpid(child, &status, 0) != child || status != 0) throw cli::Failure(words[0] + " failed");
  return size > 0 ? std::strtod(text, nullptr) : 0;
}

// Process start to first logits of `chars` (batch 1, length 128) from a warm cache, less a warm call, above the bare
// process.
void warm_start_over_bare_ms(benchmark::State &state) {
  const std::string folder = KILN_MODELS_DIR "/chars";
  std::string cache = std::filesystem::temp_directory_path() / "kiln-bench-XXXXXX";
  if (!mkdtemp(cache.data())) return state.SkipWithError("no temporary folder");
  const std::vector<std::string> program = {KILN_BENCH_FIRST_LOGITS, folder, cache, "128"};
  std::vector<std::string> with_calls = program;
  with_calls.emplace_back("50");
  const double call = number_printed(with_calls);  // also fills the cache
  for (auto _ : state) {
    const double start = fastest(30, [&] { number_printed(program); });
    const double bare = fastest(30, [&] { number_printed({KILN_BENCH_BARE, folder + "/weights.safetensors"}); });
    report(state, (start - call - bare) * 1e3, "ms", 5, Better::lower);
  }
  std::filesystem::remove_all(cache);
}

BENCHMARK(warm_start_over_bare_ms)->Iterations(1);

}  // namespace
}  // namespace kiln::bench
