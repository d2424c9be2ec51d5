// A figure: one benchmark whose result is a number with a target. The benchmark calls report(), after it has checked
// what was computed; main collects the figures.
#pragma once
#include <benchmark/benchmark.h>

#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "handles.h"

namespace kiln::bench {

// How much each figure does. A brief run shows that every figure still works, and what its number is worth it does not
// say.
struct Effort {
  bool brief = false;
  int rounds(int full) const { return brief ? 1 : full; }
  template <class Number>
  Number size(Number full, Number small) const {
    return brief ? small : full;
  }
};
// Of this process; main sets it before the first figure.
Effort &effort();

enum class Better { higher, lower };

// Once per benchmark, after its loop.
void report(benchmark::State &state, double value, const std::string &unit, double target, Better better);

// What a figure throws where this machine lacks what it measures. It is then told as skipped, with the reason.
struct Skipped : std::runtime_error {
  using std::runtime_error::runtime_error;
};
inline constexpr std::string_view skipped_mark = "skipped: ";  // that the message of a skipped figure begins with

// Registers a figure under its function's name. What it throws becomes its failure, and the others go on.
#define KILN_FIGURE(function) BENCHMARK(guarded<function>)->Name(#function)->Iterations(1);
template <void (*figure)(benchmark::State &)>
void guarded(benchmark::State &state) {
  try {
    figure(state);
  } catch (const Skipped &skipped) {
    state.SkipWithError((std::string(skipped_mark) + skipped.what()).c_str());
  } catch (const std::exception &failure) {
    state.SkipWithError(failure.what());
  }
}

// A graph compiled in a context of its own, with its arrays.
class Program {
 public:
  // `threads` 0: one per core. `mode` and `specialize` are the compile's options. The cache is not asked. `prepare`
  // gets the context before the graph is read; `more` are further options of the compile, texts.
  Program(const std::string &graph_json, int64_t threads, const std::string &mode = "all",
          const std::vector<std::string> &specialize = {}, const std::function<void(kiln_context *)> &prepare = {},
          const std::vector<std::pair<std::string, std::string>> &more = {});
  // Binds a slot to f32 memory of the given shape, filled with values in [0.5, 1.5).
  void bind(const std::string &name, std::vector<int64_t> shape);
  void bind_file(const std::string &path);           // each tensor of a .safetensors file to the slot of its name
  std::span<float> values(const std::string &name);  // what is bound
  // `args` fill the slots that are not bound.
  void run(std::span<const DLTensor *const> args = {}) {
    cli::check(kiln_call_run(call_.get(), args.data(), args.size(), nullptr));
  }
  // The same in flight, then waited for.
  void run_and_wait() {
    constexpr kiln_run_options async{.struct_size = sizeof async, .flags = KILN_RUN_ASYNC, .stream = 0};
    cli::check(kiln_call_run(call_.get(), nullptr, 0, &async));
    cli::check(kiln_call_wait(call_.get()));
  }

  std::string ran() const { return cli::report_of(kiln_call_report, call_.get()).text("entry"); }  // in the last run
  const cli::Report &compile_report() const { return report_; }

 private:
  struct Array {
    std::string name;
    std::vector<float> values;
    std::vector<int64_t> shape;
  };
  cli::Context context_;
  cli::Executable executable_;
  cli::Report report_;
  cli::Tensors file_;
  cli::Call call_;
  std::vector<std::unique_ptr<Array>> arrays_;
};

// {"name": "NAME", "type": {"dtype": "f32", "shape": SHAPE}}
std::string f32_json(const std::string &name, const std::string &shape);

size_t elements_of(std::span<const int64_t> shape);
void fill(std::span<float> values);  // with numbers in [0.5, 1.5)

// Whether got is what float64 says, to f32's accuracy after many roundings; otherwise a Failure that names `what`.
void expect_close(double got, double expected, const std::string &what);

// Seconds of the fastest of `count` runs (one, in a brief run), after one that is not measured: the machine's noise
// only ever adds.
template <class Function>
double fastest(int count, const Function &function);

double now();  // seconds

template <class Function>
double fastest(int count, const Function &function) {
  function();
  double best = 1e30;
  for (int i = 0; i < effort().rounds(count); ++i) {
    const double begin = now();
    function();
    const double elapsed = now() - begin;
    if (elapsed < best) best = elapsed;
  }
  return best;
}

}  // namespace kiln::bench
