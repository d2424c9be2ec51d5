// As Google Benchmark's JSON reporter writes it, so that its tools read it.
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <thread>

#include "../json.h"
#include "results.h"

namespace kiln::cli::bench {
namespace {

std::string list_of(const std::vector<std::string> &rows) {
  std::string text;
  for (const std::string &row : rows) text += (text.empty() ? "\n    " : ",\n    ") + row;
  return "[" + text + (rows.empty() ? "]" : "\n  ]");
}

std::string date() {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  localtime_r(&now, &parts);
  char text[40];
  std::strftime(text, sizeof text, "%FT%T%z", &parts);
  return std::string(text).insert(std::string(text).size() - 2, ":");  // +01:00
}

std::string context_json() {
  const Report build = report_of(kiln_build_report);
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  double load[3] = {};
  const int loads = getloadavg(load, 3);
  std::string caches, load_text;
  for (int level = 1; level <= 3; ++level) {
    const int64_t size = build.i64("caches.l" + std::to_string(level));
    if (size == 0) continue;
    const std::string cache = JsonObject()
                                  .add("type", level == 1 ? "Data" : "Unified")
                                  .add("level", int64_t{level})
                                  .add("size", size)
                                  .add("num_sharing", int64_t{1})
                                  .text();
    caches += (caches.empty() ? "" : ", ") + cache;
  }
  for (int i = 0; i < loads; ++i) load_text += (i ? ", " : "") + json_number(load[i]);
  return JsonObject()
      .add("date", date())
      .add("host_name", host)
      .add("executable", "kiln bench")
      .add("num_cpus", static_cast<int64_t>(std::thread::hardware_concurrency()))
      .raw("caches", "[" + caches + "]")
      .raw("load_avg", "[" + load_text + "]")
      .add("library_version", build.text("version"))
      .add("library_build_type", "release")
      .add("json_schema_version", int64_t{1})
      .add("kiln_build_id", build.text("build_id"))
      .add("kiln_target", build.text("target"))
      .text();
}

// The entries of one figure of one variant: its rounds, then what they come to.
class Entries {
 public:
  Entries(const Measured &measured, size_t family, size_t instance, std::string_view figure, int64_t repetitions)
      : measured_(measured), name_(measured.variant->name + (figure.empty() ? "" : "/" + std::string(figure))) {
    family_ = static_cast<int64_t>(family);
    instance_ = static_cast<int64_t>(instance);
    repetitions_ = repetitions;
  }

  JsonObject begin(const std::string &suffix, std::string_view type) const {
    JsonObject entry;
    entry.add("name", name_ + suffix)
        .add("family_index", family_)
        .add("per_family_instance_index", instance_)
        .add("run_name", name_)
        .add("run_type", type)
        .add("repetitions", repetitions_);
    return entry;
  }
  JsonObject iteration(int64_t index) const {
    JsonObject entry = begin("", "iteration");
    entry.add("repetition_index", index).add("threads", measured_.threads);
    return entry;
  }

  std::string round(size_t index, const Sample &sample, const FigureRow &row, const std::vector<double> &peaks,
                    const std::string &label) const {
    JsonObject entry = iteration(static_cast<int64_t>(index));
    entry.add("iterations", sample.iterations)
        .add("real_time", sample.real * row.per_second)
        .add("cpu_time", sample.cpu * row.per_second)
        .add("time_unit", row.unit);
    if (index < peaks.size()) entry.add("peak_bytes", peaks[index]);
    if (!label.empty()) entry.add("label", label);
    return entry.text();
  }

  std::string aggregate(std::string_view name, double real, double cpu, std::string_view unit, bool is_part) const {
    JsonObject entry = begin("_" + std::string(name), "aggregate");
    entry.add("threads", measured_.threads)
        .add("aggregate_name", name)
        .add("aggregate_unit", is_part ? "percentage" : "time")
        .add("iterations", repetitions_)
        .add("real_time", real)
        .add("cpu_time", cpu)
        .add("time_unit", unit);
    return entry.text();
  }

 private:
  const Measured &measured_;
  const std::string name_;
  int64_t family_, instance_, repetitions_;
};

void add_figure(std::vector<std::string> &rows, const Measured &one, size_t family, size_t figure) {
  const std::vector<Sample> &samples = one.samples[figure];
  const FigureRow &row = figure_rows[figure];
  const Entries entries(one, family, figure, row.name, static_cast<int64_t>(samples.size()));
  const std::vector<double> &peaks = figure == steady_run ? one.peak_bytes : one.cold_peak_bytes;
  const bool has_peaks = figure == steady_run || figure == cold_compile;
  for (size_t i = 0; i < samples.size(); ++i)
    rows.push_back(entries.round(i, samples[i], row, has_peaks ? peaks : std::vector<double>(),
                                 figure == warm_compile ? one.not_hit : ""));
  std::vector<double> real, cpu;
  for (const Sample &sample : samples) {
    real.push_back(sample.real * row.per_second);
    cpu.push_back(sample.cpu * row.per_second);
  }
  const Quartiles of_real = quartiles_of(real), of_cpu = quartiles_of(cpu);
  const double real_mean = mean_of(real), cpu_mean = mean_of(cpu), real_off = deviation_of(real),
               cpu_off = deviation_of(cpu);
  rows.push_back(entries.aggregate("mean", real_mean, cpu_mean, row.unit, false));
  rows.push_back(entries.aggregate("median", of_real.median, of_cpu.median, row.unit, false));
  rows.push_back(entries.aggregate("stddev", real_off, cpu_off, row.unit, false));
  rows.push_back(entries.aggregate("cv", real_mean > 0 ? real_off / real_mean : 0,
                                   cpu_mean > 0 ? cpu_off / cpu_mean : 0, row.unit, true));
  rows.push_back(entries.aggregate("p25", of_real.low, of_cpu.low, row.unit, false));
  rows.push_back(entries.aggregate("p75", of_real.high, of_cpu.high, row.unit, false));
}

std::vector<std::string> benchmarks_of(const std::vector<Measured> &all) {
  std::vector<std::string> rows;
  for (size_t family = 0; family < all.size(); ++family) {
    const Measured &one = all[family];
    if (!one.error.empty()) {
      JsonObject entry = Entries(one, family, 0, "", 1).iteration(0);
      entry.add("error_occurred", true)
          .add("error_message", one.error)
          .add("iterations", int64_t{0})
          .add("real_time", 0.0)
          .add("cpu_time", 0.0)
          .add("time_unit", "ns");
      rows.push_back(entry.text());
      continue;
    }
    for (size_t figure = 0; figure < figure_count; ++figure)
      if (!one.samples[figure].empty()) add_figure(rows, one, family, figure);
  }
  return rows;
}

std::vector<std::string> kernels_of(const std::vector<Measured> &all) {
  std::vector<std::string> rows;
  for (const Measured &one : all) {
    if (!one.error.empty()) continue;
    for (const StepTime &step : one.steps) {
      if (!step.is_kernel) continue;
      JsonObject row;
      row.add("run_name", one.variant->name + "/run")
          .add("kernel", step.name)
          .add("runs", step.runs)
          .add("ns", step.ns)
          .add("bytes", step.bytes)
          .add("flops", step.flops);
      if (one.roof.bytes_per_second > 0) row.add("roof_share", one.roof.share(step.bytes, step.flops, step.ns * 1e-9));
      rows.push_back(row.text());
    }
  }
  return rows;
}

std::vector<std::string> against_of(const Comparison &comparison) {
  std::vector<std::string> rows;
  for (const Compared &one : comparison.figures) {
    const auto quartiles = [](const Quartiles &of) {
      return JsonObject().add("p25", of.low).add("median", of.median).add("p75", of.high).text();
    };
    const std::string_view change = one.change == Change::none     ? "noise"
                                    : one.change == Change::slower ? (one.is_memory ? "larger" : "slower")
                                    : one.is_memory                ? "smaller"
                                                                   : "faster";
    rows.push_back(JsonObject()
                       .add("name", one.name)
                       .raw("before", quartiles(one.before))
                       .raw("now", quartiles(one.now))
                       .add("unit", one.is_memory ? "bytes" : "s")
                       .add("change", change)
                       .text());
  }
  return rows;
}

}  // namespace

std::string json_of(const std::vector<Measured> &all, const Comparison *comparison) {
  std::vector<std::string> failures, differences;
  for (const Measured &one : all) {
    if (!one.error.empty())
      failures.push_back(JsonObject().add("name", one.variant->name).add("error", one.error).text());
    if (!one.difference.empty())
      differences.push_back(JsonObject()
                                .add("name", one.variant->name)
                                .add("difference", one.difference)
                                .add("beyond", one.is_beyond)
                                .text());
  }
  std::string text = "{\n  \"context\": " + context_json();
  const auto member = [&](std::string_view name, const std::vector<std::string> &rows) {
    text += ",\n  " + json_text(name) + ": " + list_of(rows);
  };
  member("benchmarks", benchmarks_of(all));
  member("kernels", kernels_of(all));
  member("failures", failures);
  member("differences", differences);
  if (comparison) member("against", against_of(*comparison));
  return text + "\n}\n";
}

}  // namespace kiln::cli::bench
