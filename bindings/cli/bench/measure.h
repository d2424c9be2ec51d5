// Rounds of measuring variants, and what comes of them.
#pragma once
#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "../profile.h"
#include "plan.h"

namespace kiln::cli::bench {

// One process's figure: seconds of each of its iterations.
struct Sample {
  double real = 0, cpu = 0;
  int64_t iterations = 1;
};

enum Figure { cold_compile, warm_compile, open_artifact, lookup, first_run, steady_run, figure_count };
struct FigureRow {
  std::string_view name;   // in names of benchmarks
  std::string_view title;  // in the table
  std::string_view unit;   // of Google Benchmark's
  double per_second;       // of the unit
};
inline constexpr FigureRow figure_rows[figure_count] = {
    {"cold_compile", "cold compile: a fresh process, an empty cache", "ms", 1e3},
    {"warm_compile", "warm compile: a second process, the same cache", "ms", 1e3},
    {"open", "opening the artifact, in a fresh process", "ms", 1e3},
    {"lookup", "lookup in the cache, of the warm compile", "ms", 1e3},
    {"first_run", "first run, of the process of the warm compile", "ms", 1e3},
    {"run", "steady run", "us", 1e6},
};

struct Measured {
  const Variant *variant = nullptr;
  std::string error;  // why there is nothing more; "": it did not fail
  bool is_usage = false;
  std::array<std::vector<Sample>, figure_count> samples = {};  // by round; of a figure that it does not have none
  std::vector<double> peak_bytes = {}, cold_peak_bytes = {};   // of the processes of the warm and the cold compile
  std::string not_hit = {};                                    // how the warm compile ended, if not as a hit
  std::string difference = {};       // of its outputs to those of the first variant with these inputs
  bool is_beyond = false;            // whether that is more than kiln run --compare allows
  std::vector<StepTime> steps = {};  // medians
  Roof roof = {};
  int64_t threads = 0;
};

struct Effort {
  int64_t rounds;
  double seconds;  // of runs, at least, in each process
  int limit;       // seconds that a process may take
};

// In each round each variant gets processes of its own, one for the cold compile, one for the rest, and another one is
// the first. A variant that fails is measured no more. `progress` is called before each.
std::vector<Measured> measure(const std::vector<Variant> &variants, const Effort &effort,
                              const std::function<void(int64_t round, const Variant &)> &progress);

std::vector<double> real_of(const std::vector<Sample> &samples);

}  // namespace kiln::cli::bench
