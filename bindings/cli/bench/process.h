// The processes that kiln bench measures in, and what ends them.
#pragma once
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "../run_arrays.h"
#include "../session.h"
#include "read_json.h"

namespace kiln::cli::bench {

// What is measured in a process of its own.
enum class Stage { describe, cold, warm };

struct Asked {
  Stage stage = Stage::describe;
  std::vector<std::string> words;  // of the variant: what it runs, and flags
  std::string cache;               // a folder
  double seconds = 0;              // of runs, at least
  std::string outputs;             // the file to write what the first run yields to; "": none
  bool roof = false;               // whether to measure that, too
  int limit = 60;                  // seconds that the process may take
};

// SIGINT, SIGTERM or SIGHUP came: what was made is to be taken back.
struct Interrupted {
  int signal;
};

// While it lives, those signals end the process that is waited for, and measured() throws Interrupted.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts &) = delete;
  Interrupts &operator=(const Interrupts &) = delete;
};

// What such a process tells (child.cpp). Throws what it failed with, as Usage or Failure.
Json measured(const Asked &asked);

// Flags that the process is given as they are: of whatever runs, and of what a compile obeys.
inline constexpr std::array run_flags = {
    weights_flag, input_flag,
    size_flag,    Flag{"--random", "SEED", "of what is drawn: inputs and weights that are not given (0)"},
    plugin_flag,  plugin_option_flag,
    fact_flag,    threads_flag};
inline constexpr std::array compile_flags = {
    backend_flag,  cpu_flag,    arch_flag,           rounding_flag,   mode_flag,
    fallback_flag, passes_flag, disable_passes_flag, specialize_flag, specialize_when_flag,
    option_flag};

// A command's own flags, and those.
template <size_t count>
constexpr auto with_shared_flags(const std::array<Flag, count> &own) {
  std::array<Flag, count + run_flags.size() + compile_flags.size()> all;
  auto next = std::ranges::copy(own, all.begin()).out;
  next = std::ranges::copy(run_flags, next).out;
  std::ranges::copy(compile_flags, next);
  return all;
}

}  // namespace kiln::cli::bench
