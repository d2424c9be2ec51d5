// Measures the elementary functions of the cpu backend: README.md.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/accuracy/error.h"
#include "tests/accuracy/exact.h"
#include "tests/accuracy/samples.h"

namespace kiln::accuracy {
namespace {

using codegen::Features;
using codegen::features_of;
using codegen::test::Function;
using codegen::test::functions;
using codegen::test::JitFunction;
using kernel::Core;

constexpr const char *usage =
    "usage: kiln_accuracy [--stride N] [--samples N] [--pairs N] [--threads N] [--level NAME]... [FUNCTION]...\n"
    "  --stride N   every N-th number of f32 (1)\n"
    "  --samples N  numbers of f64 a function (100000000)\n"
    "  --pairs N    pairs of pow, of f32 and of f64 (1000000000)\n"
    "  --threads N  (1)\n"
    "  --level      one or more --cpu names instead of x86-64, v3 and v4\n";

struct Wanted {
  uint64_t stride = 1, samples = 100'000'000, pairs = 1'000'000'000;
  unsigned threads = 1;
  std::vector<std::string> levels, names;

  bool has(const std::string &name) const { return names.empty() || std::ranges::find(names, name) != names.end(); }
};

struct Level {
  std::string name;
  Features features;
};

template <class F>
struct Worst {
  double error = 0;
  F x = 0, y = 0, got = 0;
};

// Fills x and y with the samples from `begin` on.
template <class F>
using Fill = void (*)(const Wanted &wanted, uint64_t begin, std::vector<F> &x, std::vector<F> &y);

constexpr size_t chunk = 1 << 16;

template <class F, class Wide>
class Measurement {
 public:
  Measurement(const Wanted &wanted, const std::vector<Level> &levels, const Function<Wide> &function)
      : wanted_(wanted), levels_(levels), function_(function), worst_(levels.size()) {
    for (const Level &level : levels) {
      const unsigned lanes = level.features.vector_bits / 8 / sizeof(F);
      code_.push_back(std::make_unique<JitFunction>(level.features, [&](llvm::Module &module) {
        codegen::test::emit_map(module, level.features, function.op, sizeof(F) == 8, lanes);
      }));
    }
  }

  // The worst of `count` samples at each level.
  const std::vector<Worst<F>> &run(uint64_t count, Fill<F> fill) {
    std::atomic<uint64_t> next = 0;
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < wanted_.threads; ++t)
      threads.emplace_back([&] {
        std::vector<F> x(chunk), y(chunk, 1), got(chunk);
        std::vector<Wide> exact(chunk);
        for (uint64_t begin; (begin = next.fetch_add(chunk)) < count;) {
          fill(wanted_, begin, x, y);
          measure(x, y, exact, got);
        }
      });
    threads.clear();
    return worst_;
  }

 private:
  void measure(const std::vector<F> &x, const std::vector<F> &y, std::vector<Wide> &exact, std::vector<F> &got) {
    for (size_t i = 0; i < chunk; ++i) exact[i] = function_.reference(x[i], y[i]);
    for (size_t l = 0; l < levels_.size(); ++l) {
      code_[l]->template as<void(const F *, const F *, F *, int64_t)>()(x.data(), y.data(), got.data(), chunk);
      Worst<F> worst;
      for (size_t i = 0; i < chunk; ++i)
        if (const double error = error_at(x[i], got[i], exact[i]); error > worst.error)
          worst = {error, x[i], y[i], got[i]};
      const std::lock_guard lock(mutex_);
      if (worst.error <= worst_[l].error) continue;
      // The wider type has errors of its own, and rounds what is near a tie to either side.
      if (is_function())
        worst.error = exact_error(function_.op, worst.x, worst.y, worst.got, sizeof(F) == 4,
                                  static_cast<double>(scale_at(worst.x)));
      if (worst.error > worst_[l].error) worst_[l] = worst;
    }
  }
  Wide scale_at(F x) const { return function_.scale ? function_.scale(x) : 0; }
  double error_at(F x, F got, Wide exact) const {
    return function_.scale ? codegen::test::error_in_ulp(got, exact, scale_at(x)) : error_of(got, exact);
  }
  bool is_function() const {
    return kernel::core_info(function_.op).kind == kernel::CoreClass::function || function_.op == Core::rsqrt;
  }

  const Wanted &wanted_;
  const std::vector<Level> &levels_;
  const Function<Wide> &function_;
  std::vector<std::unique_ptr<JitFunction>> code_;
  std::mutex mutex_;
  std::vector<Worst<F>> worst_;
};

void fill_f32(const Wanted &wanted, uint64_t begin, std::vector<float> &x, std::vector<float> &) {
  for (size_t i = 0; i < chunk; ++i) x[i] = std::bit_cast<float>(static_cast<uint32_t>((begin + i) * wanted.stride));
}
void fill_f64(const Wanted &wanted, uint64_t begin, std::vector<double> &x, std::vector<double> &) {
  for (size_t i = 0; i < chunk; ++i) x[i] = f64_sample(begin + i, wanted.samples);
}
template <class F>
void fill_pairs(const Wanted &, uint64_t begin, std::vector<F> &x, std::vector<F> &y) {
  for (size_t i = 0; i < chunk; ++i) {
    const Pair pair = pow_pair(begin + i, sizeof(F) == 4);
    x[i] = static_cast<F>(pair.x);
    y[i] = static_cast<F>(pair.y);
  }
}

// Whether each level is within the bound; prints a row.
template <class F, class Wide>
bool report(const Wanted &wanted, const std::vector<Level> &levels, const Function<Wide> &function) {
  constexpr bool is_f32 = sizeof(F) == 4;
  const double bound = function.bound ? function.bound : is_f32 ? 1 : 2;
  Measurement<F, Wide> measurement(wanted, levels, function);
  const uint64_t count = function.binary ? wanted.pairs
                         : is_f32        ? ((uint64_t{1} << 32) - 1) / wanted.stride + 1
                                         : wanted.samples;
  Fill<F> fill = fill_pairs<F>;
  if constexpr (is_f32) {
    if (!function.binary) fill = fill_f32;
  } else {
    if (!function.binary) fill = fill_f64;
  }
  const std::vector<Worst<F>> &worst = measurement.run(count, fill);
  std::printf("| `%s` | %s | %llu |", function.name, is_f32 ? "f32" : "f64", static_cast<unsigned long long>(count));
  bool is_within = true;
  for (const Worst<F> &w : worst) {
    is_within &= w.error <= bound;
    std::printf(" %.4f at %a", w.error, static_cast<double>(w.x));
    if (function.binary) std::printf(", %a", static_cast<double>(w.y));
    std::printf(" |");
  }
  std::printf(is_within ? "\n" : " above %.0f ulp\n", bound);
  std::fflush(stdout);
  return is_within;
}

template <class F, class Wide>
bool report_all(const Wanted &wanted, const std::vector<Level> &levels) {
  bool is_within = true;
  for (const Function<Wide> &function : functions<Wide>)
    if (wanted.has(function.name) && function.op != Core::rem) is_within &= report<F, Wide>(wanted, levels, function);
  return is_within;
}

int run(int count, char **arguments) {
  Wanted wanted;
  for (int i = 1; i < count; ++i) {
    const std::string argument = arguments[i];
    const char *value = i + 1 < count ? arguments[i + 1] : nullptr;
    uint64_t *number = argument == "--stride"    ? &wanted.stride
                       : argument == "--samples" ? &wanted.samples
                       : argument == "--pairs"   ? &wanted.pairs
                                                 : nullptr;
    if (argument.starts_with("--") && !value) return std::fputs(usage, stderr), 2;
    if (number) {
      *number = std::max(1ull, std::strtoull(arguments[++i], nullptr, 10));
    } else if (argument == "--threads") {
      wanted.threads = static_cast<unsigned>(std::max(1, std::atoi(arguments[++i])));
    } else if (argument == "--level") {
      wanted.levels.emplace_back(arguments[++i]);
    } else if (argument.starts_with("--")) {
      return std::fputs(usage, stderr), 2;
    } else {
      wanted.names.push_back(argument);
    }
  }
  if (wanted.levels.empty()) wanted.levels = {"x86-64", "v3", "v4"};
  std::vector<Level> levels;
  std::printf("| function | type | numbers |");
  for (const std::string &name : wanted.levels) {
    const Result<Target> target = Target::by_name(name);
    if (!target.ok()) return std::fprintf(stderr, "%s\n", target.status().message().c_str()), 2;
    if (!target->runs_on_host()) continue;
    levels.push_back({name, features_of(*target)});
    std::printf(" %s |", name.c_str());
  }
  std::printf("\n|---|---|---|");
  for (size_t l = 0; l < levels.size(); ++l) std::printf("---|");
  std::printf("\n");
  const bool f32 = report_all<float, double>(wanted, levels), f64 = report_all<double, long double>(wanted, levels);
  return f32 && f64 ? 0 : 1;
}

}  // namespace
}  // namespace kiln::accuracy

int main(int count, char **arguments) { return kiln::accuracy::run(count, arguments); }
