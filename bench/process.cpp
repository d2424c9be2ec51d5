#include "process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "handles.h"

extern char **environ;

namespace kiln::bench {

std::string output_of_process(std::vector<std::string> words, const std::function<void()> &meanwhile) {
  int output_ends[2], input_ends[2];
  if (pipe2(output_ends, O_CLOEXEC) != 0 || pipe2(input_ends, O_CLOEXEC) != 0) throw cli::Failure("no pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, output_ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, input_ends[0], STDIN_FILENO);
  std::vector<char *> argv;
  for (std::string &word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t child = 0;
  const int failed = posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(output_ends[1]);
  close(input_ends[0]);
  std::string output;
  char part[256];
  bool is_waiting = static_cast<bool>(meanwhile);
  if (!is_waiting) close(input_ends[1]);
  for (ssize_t size = 1; !failed && size > 0;) {
    size = read(output_ends[0], part, sizeof part);
    if (size > 0) output.append(part, static_cast<size_t>(size));
    if (!is_waiting || output.find('\n') == output.npos) continue;
    is_waiting = false;
    meanwhile();
    close(input_ends[1]);
  }
  if (is_waiting) close(input_ends[1]);
  close(output_ends[0]);
  int status = -1;
  if (failed || waitpid(child, &status, 0) != child || status != 0) throw cli::Failure(words[0] + " failed");
  return output;
}

double run_process(std::vector<std::string> words) {
  return std::strtod(output_of_process(std::move(words)).c_str(), nullptr);
}

}  // namespace kiln::bench
