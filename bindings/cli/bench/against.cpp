// Figures of before beside those of now.
#include <algorithm>

#include "../handles.h"
#include "results.h"

namespace kiln::cli::bench {
namespace {

constexpr std::string_view memory_mark = " peak memory";  // behind the name of the figure that it stands with

double seconds_of(std::string_view unit) {
  return unit == "s" ? 1 : unit == "ms" ? 1e-3 : unit == "us" ? 1e-6 : 1e-9;  // ns where none is told
}

struct Series {
  std::string name;
  std::vector<double> values;
};

void add(std::vector<Series> &all, const std::string &name, double value) {
  const auto found = std::ranges::find(all, name, &Series::name);
  Series &series = found == all.end() ? all.emplace_back(Series{name, {}}) : *found;
  series.values.push_back(value);
}

// By name, in the order of the file.
std::vector<Series> series_of(const Json &file) {
  std::vector<Series> all;
  const Json *benchmarks = file.find("benchmarks");
  for (size_t i = 0; benchmarks && i < benchmarks->values.size(); ++i) {
    const Json &entry = benchmarks->values[i];
    if (entry.text_at("run_type") == "aggregate" || entry.number_at("error_occurred") != 0 || !entry.find("real_time"))
      continue;
    const std::string name = entry.text_at("name");
    add(all, name, entry.number_at("real_time") * seconds_of(entry.text_at("time_unit")));
    if (entry.find("peak_bytes")) add(all, name + std::string(memory_mark), entry.number_at("peak_bytes"));
  }
  return all;
}

std::vector<Series> series_of(const std::vector<Measured> &all) {
  std::vector<Series> series;
  for (const Measured &one : all) {
    if (!one.error.empty()) continue;
    for (size_t i = 0; i < figure_count; ++i) {
      if (one.samples[i].empty()) continue;
      const std::string name = one.variant->name + "/" + std::string(figure_rows[i].name);
      series.push_back({name, real_of(one.samples[i])});
      if (i == steady_run) series.push_back({name + std::string(memory_mark), one.peak_bytes});
      if (i == cold_compile) series.push_back({name + std::string(memory_mark), one.cold_peak_bytes});
    }
  }
  return series;
}

}  // namespace

bool Comparison::is_slower() const {
  return std::ranges::any_of(figures,
                             [](const Compared &one) { return one.change == Change::slower && !one.is_memory; });
}

Comparison compared_with(const Json &before, const std::string &path, const std::vector<Measured> &all, double least) {
  std::vector<Series> old = series_of(before);
  if (old.empty()) throw Failure(path + ": has no figures, expected JSON that kiln bench --json writes");
  Comparison comparison;
  for (const Series &now : series_of(all)) {
    const auto found = std::ranges::find(old, now.name, &Series::name);
    if (found == old.end()) {
      comparison.only_now.push_back(now.name);
      continue;
    }
    Compared one{now.name, quartiles_of(found->values), quartiles_of(now.values)};
    one.is_memory = now.name.ends_with(memory_mark);
    one.change = change_of(one.before, one.now, least);
    comparison.figures.push_back(std::move(one));
    old.erase(found);
  }
  for (const Series &left : old) comparison.only_before.push_back(left.name);
  return comparison;
}

}  // namespace kiln::cli::bench
