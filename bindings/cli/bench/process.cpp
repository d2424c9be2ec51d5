#include "process.h"

#include <unistd.h>

#include <csignal>

#include "../child_process.h"
#include "../handles.h"
#include "child.h"

namespace kiln::cli::bench {
namespace {

constexpr int ending[] = {SIGINT, SIGTERM, SIGHUP};

volatile std::sig_atomic_t caught = 0;
struct sigaction before[std::size(ending)];

void note(int signal) { caught = signal; }

}  // namespace

Interrupts::Interrupts() {
  struct sigaction noting = {};
  noting.sa_handler = note;
  sigemptyset(&noting.sa_mask);
  for (size_t i = 0; i < std::size(ending); ++i) {
    sigaction(ending[i], nullptr, &before[i]);
    if (before[i].sa_handler != SIG_IGN) sigaction(ending[i], &noting, nullptr);
  }
}

Interrupts::~Interrupts() {
  for (size_t i = 0; i < std::size(ending); ++i) sigaction(ending[i], &before[i], nullptr);
}

Json measured(const Asked &asked) {
  if (caught) throw Interrupted{caught};
  Spawn spawn;
  spawn.words = {std::string(child_command.name),
                 "--stage=" + std::string(stage_names[static_cast<size_t>(asked.stage)])};
  if (!asked.cache.empty()) spawn.words.push_back("--cache=" + asked.cache);
  if (!asked.outputs.empty()) spawn.words.push_back("--outputs=" + asked.outputs);
  if (asked.stage == Stage::warm) spawn.words.push_back("--seconds=" + std::to_string(asked.seconds));
  if (asked.roof) spawn.words.emplace_back("--roof");
  spawn.words.insert(spawn.words.end(), asked.words.begin(), asked.words.end());
  spawn.seconds = asked.limit;
  spawn.stop = &caught;
  const Ended ended = run_process(spawn);
  if (caught) throw Interrupted{caught};
  if (!ended.how.empty()) throw Failure("the process that measured it failed: " + ended.how);
  Json told;
  try {
    told = read_json(ended.output, "what the process told");
  } catch (const Failure &failure) {
    throw Failure("the process that measured it exited with " + std::to_string(ended.code) + "; " + failure.what());
  }
  const std::string error = told.text_at("error");
  if (told.number_at("usage") != 0) throw Usage(error);
  if (!error.empty() || ended.code != 0) throw Failure(error);
  return told;
}

}  // namespace kiln::cli::bench
