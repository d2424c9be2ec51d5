#include "child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>

#include "handles.h"

namespace kiln::cli {
namespace {

std::vector<char *> pointers(std::vector<std::string> &texts) {
  std::vector<char *> list;
  for (std::string &text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

// In the child, which has one thread and only calls the system.
[[noreturn]] void become(const Spawn &spawn, int output, char *const *words, char *const *environment) {
  if (!spawn.folder.empty() && chdir(spawn.folder.c_str()) != 0) _exit(127);
  dup2(output, STDOUT_FILENO);
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // it ends with who asked for it, whichever way that ends
  execve("/proc/self/exe", words, environment);
  _exit(127);
}

// Reads until the other end is closed; false when the time is over before, or it is to stop.
bool read_all(int from, const Spawn &spawn, std::string &output) {
  using Clock = std::chrono::steady_clock;
  constexpr int slice = 100;  // ms: a signal that came just before a poll does not wake it
  const Clock::time_point end = Clock::now() + std::chrono::seconds(spawn.seconds);
  for (;;) {
    if (Clock::now() >= end || (spawn.stop && *spawn.stop)) return false;
    pollfd wanted = {from, POLLIN, 0};
    if (poll(&wanted, 1, slice) <= 0) continue;
    char buffer[1 << 16];
    const ssize_t count = read(from, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return true;
    output.append(buffer, static_cast<size_t>(count));
  }
}

}  // namespace

std::vector<std::string> Spawn::inherited() {
  std::vector<std::string> all;
  for (char **variable = environ; *variable; ++variable) all.emplace_back(*variable);
  return all;
}

Ended run_process(const Spawn &spawn) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw Failure(std::string("a pipe: ") + std::strerror(errno));
  std::vector<std::string> words = spawn.words, environment = spawn.environment;
  words.insert(words.begin(), "kiln");
  const std::vector<char *> argv = pointers(words), envp = pointers(environment);
  const pid_t child = fork();
  if (child == 0) become(spawn, ends[1], argv.data(), envp.data());
  close(ends[1]);
  if (child < 0) {
    close(ends[0]);
    throw Failure(std::string("a process: ") + std::strerror(errno));
  }
  Ended ended;
  const bool in_time = read_all(ends[0], spawn, ended.output);
  close(ends[0]);
  if (!in_time) kill(-child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  ended.code = in_time && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  if (!in_time)
    ended.how = "it did not end within " + std::to_string(spawn.seconds) + " s";
  else if (WIFSIGNALED(status))
    ended.how = "it was ended by signal " + std::to_string(WTERMSIG(status)) + " (" + strsignal(WTERMSIG(status)) + ")";
  return ended;
}

}  // namespace kiln::cli
