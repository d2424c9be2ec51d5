#include "measure.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>

#include "../compare.h"
#include "../temporary_folder.h"
#include "process.h"
#include "statistics.h"

namespace kiln::cli::bench {
namespace {

namespace fs = std::filesystem;

std::string dims_of(const DLTensor &tensor) {
  std::string text;
  for (int32_t d = 0; d < tensor.ndim; ++d) text += (d ? ", " : "") + std::to_string(tensor.shape[d]);
  return "[" + text + "]";
}

// How the outputs in one file differ from those in another, and whether by too much.
void compare_outputs(const std::string &path, const std::string &expected_path, Measured &measured) {
  const auto open = [](const std::string &file) { return make<Tensors>(kiln_tensors_open, file.data(), file.size()); };
  const Tensors own = open(path), first = open(expected_path);
  double worst = 0;
  for (uint64_t i = 0; i < kiln_tensors_count(own.get()); ++i) {
    kiln_text name = {};
    const DLTensor *tensor = nullptr, *expected = nullptr;
    check(kiln_tensors_at(own.get(), i, &name, &tensor));
    check(kiln_tensors_find(first.get(), name.data, name.size, &expected));
    const bool same_type = tensor->dtype.code == expected->dtype.code && tensor->dtype.bits == expected->dtype.bits;
    if (!same_type || dims_of(*tensor) != dims_of(*expected)) {
      measured.difference = "'" + std::string(view(name)) + "' has another type or other dims, " + dims_of(*tensor) +
                            " beside " + dims_of(*expected);
      measured.is_beyond = true;
      return;
    }
    const Difference found = difference_of(*tensor, *expected);
    measured.is_beyond = measured.is_beyond || found.is_beyond;
    if (found.relative <= worst) continue;
    worst = found.relative;
    char numbers[80];
    std::snprintf(numbers, sizeof numbers, " by %.3g, relative %.3g, at ", found.absolute, found.relative);
    measured.difference = "'" + std::string(view(name)) + "'" + numbers + found.where;
  }
}

void take(const Json &told, std::string_view name, std::vector<Sample> &samples) {
  const Json *timed = told.find(name);
  if (!timed) throw Failure("what the process told has no '" + std::string(name) + "'");
  samples.push_back(
      {timed->number_at("real"), timed->number_at("cpu"), static_cast<int64_t>(timed->number_at("iterations"))});
}

std::vector<StepTime> steps_of(const Json &told) {
  std::vector<StepTime> steps;
  const Json *list = told.find("steps");
  for (size_t i = 0; list && i < list->values.size(); ++i) {
    const Json &row = list->values[i];
    StepTime &step = steps.emplace_back();
    step.name = row.text_at("name");
    step.is_outermost = row.number_at("outermost") != 0;
    step.is_kernel = row.number_at("kernel") != 0;
    step.ns = row.number_at("ns");
    step.bytes = row.number_at("bytes");
    step.flops = row.number_at("flops");
    step.runs = static_cast<int64_t>(row.number_at("runs"));
  }
  return steps;
}

class Rounds {
 public:
  Rounds(const std::vector<Variant> &variants, const Effort &effort) : effort_(effort), steps_(variants.size()) {
    for (const Variant &variant : variants) measured_.push_back({&variant, "", false});
  }

  // Nothing happens to what has failed.
  void measure(size_t index, int64_t round) {
    Measured &measured = measured_[index];
    try {
      fs::remove_all(cache());
      const Asked asked = {Stage::cold, measured.variant->words, cache(), effort_.seconds, "", false, effort_.limit};
      if (!measured.variant->is_artifact) measure_cold(asked, measured);
      measure_warm(asked, index, round);
    } catch (const Usage &usage) {
      measured.is_usage = true;
      measured.error = usage.what();
    } catch (const std::exception &failure) {
      measured.error = failure.what();
    }
  }
  bool has_failed(size_t index) const { return !measured_[index].error.empty(); }

  std::vector<Measured> take_all() {
    for (size_t i = 0; i < measured_.size(); ++i) {
      std::vector<std::vector<StepTime>> &rounds = steps_[i];
      if (has_failed(i) || rounds.empty()) continue;
      measured_[i].steps = rounds[0];
      for (size_t step = 0; step < rounds[0].size(); ++step) {
        std::vector<double> ns;
        for (const std::vector<StepTime> &round : rounds)
          if (step < round.size()) ns.push_back(round[step].ns);
        measured_[i].steps[step].ns = quartiles_of(std::move(ns)).median;
      }
    }
    return std::move(measured_);
  }

 private:
  std::string cache() const { return folder_.file("cache"); }

  static void measure_cold(const Asked &asked, Measured &measured) {
    const Json told = bench::measured(asked);
    take(told, "made", measured.samples[cold_compile]);
    measured.cold_peak_bytes.push_back(told.number_at("peak_bytes"));
  }

  void measure_warm(Asked asked, size_t index, int64_t round) {
    Measured &measured = measured_[index];
    asked.stage = Stage::warm;
    asked.roof = round == 0;
    if (round == 0) asked.outputs = folder_.file("outputs_" + std::to_string(index) + ".safetensors");
    const Json told = bench::measured(asked);
    if (measured.variant->is_artifact) {
      take(told, "made", measured.samples[open_artifact]);
    } else {
      take(told, "made", measured.samples[warm_compile]);
      const double seconds = told.number_at("lookup_seconds");
      measured.samples[lookup].push_back({seconds, seconds, 1});
      if (const std::string how = told.text_at("lookup"); how != "HIT")
        measured.not_hit = how + ": " + told.text_at("reason");
    }
    take(told, "first_run", measured.samples[first_run]);
    take(told, "run", measured.samples[steady_run]);
    measured.peak_bytes.push_back(told.number_at("peak_bytes"));
    measured.threads = static_cast<int64_t>(told.number_at("threads"));
    steps_[index].push_back(steps_of(told));
    if (round > 0) return;
    if (const Json *roof = told.find("roof"))
      measured.roof = {roof->number_at("bytes_per_second"), roof->number_at("flops_per_second")};
    const auto [first, is_first] = outputs_.emplace(measured.variant->inputs, asked.outputs);
    if (is_first) return;
    compare_outputs(asked.outputs, first->second, measured);
    fs::remove(asked.outputs);
  }

  const TemporaryFolder folder_;
  const Effort effort_;
  std::vector<Measured> measured_;
  std::vector<std::vector<std::vector<StepTime>>> steps_;  // by variant and round
  std::map<std::string, std::string> outputs_;             // of the first variant with these inputs, its file
};

}  // namespace

std::vector<Measured> measure(const std::vector<Variant> &variants, const Effort &effort,
                              const std::function<void(int64_t, const Variant &)> &progress) {
  Rounds rounds(variants, effort);
  for (int64_t round = 0; round < effort.rounds; ++round)
    for (size_t i = 0; i < variants.size(); ++i) {
      const size_t index = (i + static_cast<size_t>(round)) % variants.size();
      if (rounds.has_failed(index)) continue;
      progress(round, variants[index]);
      rounds.measure(index, round);
    }
  return rounds.take_all();
}

std::vector<double> real_of(const std::vector<Sample> &samples) {
  std::vector<double> real;
  for (const Sample &sample : samples) real.push_back(sample.real);
  return real;
}

}  // namespace kiln::cli::bench
