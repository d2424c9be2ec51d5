// kiln_bench [NAME…] [--json FILE] [--brief]: each NAME is a regular expression over names of figures; none means all.
// --brief runs each figure once and small: whether it works, not what it is.
//
// JSON: {"brief": …, "machine": {…}, "results": [{"name", "value", "unit", "target", "met"}, {"name", "skipped"}…]}. A
// missed figure stays in the output.
#include <cstdio>
#include <string>
#include <vector>

#include "figure.h"
#include "json.h"
#include "machine.h"
#include "process.h"
#include "session.h"

namespace kiln::bench {
namespace {

using namespace cli;

std::string cpu_level() {
  return __builtin_cpu_supports("avx512f") ? "v4" : __builtin_cpu_supports("avx2") ? "v3" : "x86-64";
}

// Prints a line a figure, and keeps it.
class Collector : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context &) override {
    std::printf("%-32s %12s %-12s %10s\n", "figure", "value", "unit", "target");
    return true;
  }
  void ReportRuns(const std::vector<Run> &runs) override {
    for (const Run &run : runs) {
      const std::string name = run.run_name.function_name;
      if (run.error_occurred && run.error_message.starts_with(skipped_mark)) {
        std::printf("%-32s %s\n", name.c_str(), run.error_message.c_str());
        add("{\"name\": " + json_text(name) +
            ", \"skipped\": " + json_text(run.error_message.substr(skipped_mark.size())) + "}");
        continue;
      }
      if (run.error_occurred) {
        std::printf("%-32s failed: %s\n", name.c_str(), run.error_message.c_str());
        failed_ = true;
        continue;
      }
      const double value = run.counters.at("value"), target = run.counters.at("target");
      const bool met = run.counters.at("met") != 0;
      std::printf("%-32s %12.4g %-12s %10.4g %s\n", name.c_str(), value, run.report_label.c_str(), target,
                  met || effort().brief ? "" : "missed");
      std::fflush(stdout);
      add("{\"name\": " + json_text(name) + ", \"value\": " + json_number(value) +
          ", \"unit\": " + json_text(run.report_label) + ", \"target\": " + json_number(target) +
          ", \"met\": " + (met ? "true" : "false") + "}");
    }
  }
  bool failed() const { return failed_; }
  std::string json() const {
    return std::string("{\n  \"brief\": ") + (effort().brief ? "true" : "false") +
           ",\n  \"machine\": {\"cores\": " + std::to_string(cores()) + ", \"cpu\": " + json_text(cpu_level()) +
           ", \"fma_peak_1t_flops\": " + json_number(rate_of(fma_roof(1))) +
           ", \"fma_peak_flops\": " + json_number(rate_of(fma_roof(cores()))) +
           ", \"copy_bytes_per_s\": " + json_number(rate_of(copy_roof())) +
           ", \"read_bytes_per_s\": " + json_number(rate_of(read_roof())) +
           ", \"bare_process_ms\": " + json_number(bare_process_seconds() * 1e3) + "},\n  \"results\": [\n" + results_ +
           "\n  ]\n}\n";
  }

 private:
  void add(const std::string &result) { results_ += (results_.empty() ? "    " : ",\n    ") + result; }

  std::string results_;
  bool failed_ = false;
};

int run(const std::vector<std::string> &words) {
  std::string filter, json;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--json" && i + 1 < words.size()) {
      json = words[++i];
    } else if (words[i] == "--brief") {
      effort().brief = true;
    } else if (words[i].starts_with("-")) {
      std::fprintf(stderr, "usage: bench [NAME…] [--json FILE] [--brief]\n");
      return 2;
    } else {
      filter += (filter.empty() ? "(" : "|(") + words[i] + ")";
    }
  }
  Collector collector;
  if (benchmark::RunSpecifiedBenchmarks(&collector, filter.empty() ? "." : filter) == 0) {
    std::fprintf(stderr, "bench: no figure is named like that\n");
    return 2;
  }
  if (!json.empty()) write_file(json, collector.json());
  return collector.failed() ? 1 : 0;
}

}  // namespace
}  // namespace kiln::bench

int main(int count, char **words) {
  try {
    return kiln::bench::run(std::vector<std::string>(words + 1, words + count));
  } catch (const std::exception &failure) {
    std::fprintf(stderr, "bench: %s\n", failure.what());
    return 1;
  }
}
