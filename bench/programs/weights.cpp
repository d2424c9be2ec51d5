// weights GRAPH WEIGHTS CACHE PREPARED BEGAN [stay]: a process that runs a model of which all is in CACHE, once, then
// a few times more. Prints how many ms the first result took beyond a steady run, counted from BEGAN (ns of the
// monotonic clock: when somebody started it), and the MiB that are private to the process beyond what the call works
// in. PREPARED 0: packed weights are not looked for, and not kept. With `stay` it then waits until its standard
// input ends.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <vector>

#include "handles.h"
#include "session.h"

namespace {

using namespace kiln::cli;

double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double private_mib() {
  std::ifstream file("/proc/self/smaps_rollup");
  double kib = 0;
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("Private_Clean:") || line.starts_with("Private_Dirty:")) kib += std::atof(line.c_str() + 14);
  return kib / 1024;
}

// Records are read once more in the background, which would take from the runs that follow.
void wait_until_verified(const Context &context) {
  const double limit = now_ms() + 10'000;
  for (timespec pause{0, 20'000'000}; now_ms() < limit; nanosleep(&pause, nullptr)) {
    const Report report = report_of(kiln_context_report, context.get());
    if (!report.has("cache.prepared.hits") ||
        report.i64("cache.prepared.verified") >= report.i64("cache.prepared.hits"))
      return;
  }
}

int run(char **argv) {
  const std::string json = read_file(argv[1]), weights = argv[2], cache = argv[3];
  Options options;
  options.set("cache", std::string_view(cache));
  options.set("prepared", argv[4][0] == '1');
  const Context context = make<Context>(kiln_context_create, options.get(), nullptr);
  const Graph graph = make<Graph>(kiln_graph_parse, context.get(), json.data(), json.size());
  kiln_executable *program = nullptr;
  check(kiln_compile(context.get(), graph.get(), nullptr, &program, nullptr));
  const Executable executable(program);
  const Call call = make<Call>(kiln_call_create, program);
  const Tensors tensors = make<Tensors>(kiln_tensors_open, weights.data(), weights.size());
  for (uint64_t i = 0; i < kiln_tensors_count(tensors.get()); ++i) {
    kiln_text name{};
    const DLTensor *tensor = nullptr;
    uint32_t slot = 0;
    check(kiln_tensors_at(tensors.get(), i, &name, &tensor));
    check(kiln_call_slot(call.get(), name.data, name.size, &slot));
    check(kiln_call_bind(call.get(), slot, tensor));
  }
  std::vector<float> x(128 * 768, 0.01F);
  int64_t shape[] = {128, 768};
  const DLTensor input{x.data(), {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, nullptr, 0};
  const DLTensor *args[] = {&input};
  check(kiln_call_run(call.get(), args, 1, nullptr));
  const double first = now_ms() - std::atof(argv[5]) / 1e6;
  wait_until_verified(context);
  std::vector<double> runs;  // the middle one is a steady run: the first is one run, too, and no fastest of some
  for (int i = 0; i < 5; ++i) {
    const double begin = now_ms();
    check(kiln_call_run(call.get(), args, 1, nullptr));
    runs.push_back(now_ms() - begin);
  }
  std::ranges::sort(runs);
  const double steady = runs[runs.size() / 2];
  const Report report = report_of(kiln_call_report, call.get());
  auto activations = static_cast<double>(report.i64("memory_bytes"));
  for (size_t i = 0; i < report.count("prepared"); ++i)
    if (report.text(path_of("prepared", i, "lookup")) != "HIT")
      activations -= static_cast<double>(report.i64(path_of("prepared", i, "bytes")));
  const DLTensor *y = nullptr;  // Kiln's memory, too
  check(kiln_call_output(call.get(), static_cast<uint32_t>(kiln_tensors_count(tensors.get())) + 1, &y));
  activations += static_cast<double>(y->shape[0] * y->shape[1]) * sizeof(float);
  std::printf("%.3f %.3f\n", first - steady, private_mib() - activations / 1048576);
  std::fflush(stdout);
  if (argv[6] && std::strcmp(argv[6], "stay") == 0)
    while (std::getchar() != EOF) {
    }
  return 0;
}

}  // namespace

int main(int argc, char **argv) {
  if (argc < 6) return 2;
  try {
    return run(argv);
  } catch (const std::exception &failure) {
    std::fprintf(stderr, "weights: %s\n", failure.what());
    return 1;
  }
}
