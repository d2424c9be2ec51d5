// The demo: each model first cold (a fresh cache folder of its own), then warm in a new process; one table, and JSON.
//
//   kiln_demo [--all] [--json FILE]    the whole demo; --all: with weights of 16, 8 and 4 bits, too
//   kiln_demo --worker MODEL FORM MODE FILES cold|warm CACHE FILE
//                                      one row of it, in a process of its own; FILE gets the row as JSON
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "handles.h"
#include "json.h"
#include "session.h"
#include "stats.h"
#include "tests/models/model.h"
#include "tests/temporary_folder.h"

extern char **environ;

namespace kiln::demo {
namespace {

using namespace cli;

// What the weights of a model are stored in: f32 as it was trained, and what quantize.py makes of that.
// And what is compiled together: all of it, or each of its layers, which are equal.
struct Variant {
  std::string model, form, mode = "all";
};
const Variant trained[] = {{"digits", "f32"}, {"chars", "f32"}, {"chars", "f32", "marked"}};
const Variant all_variants[] = {{"digits", "f32"}, {"digits", "f16"},          {"digits", "bf16"}, {"digits", "int8"},
                                {"chars", "f32"},  {"chars", "f32", "marked"}, {"chars", "f16"},   {"chars", "bf16"},
                                {"chars", "int8"}, {"chars", "int4"}};
constexpr const char *runs[] = {"cold", "warm"};

// Runs a program to its end; true when it exits with 0.
bool runs_well(const std::vector<std::string> &words) {
  std::vector<char *> argv;
  for (const std::string &word : words) argv.push_back(const_cast<char *>(word.c_str()));
  argv.push_back(nullptr);
  pid_t child = 0;
  int status = -1;
  std::fflush(stdout);
  if (posix_spawn(&child, argv[0], nullptr, nullptr, argv.data(), environ) != 0)
    throw Failure("cannot start " + words[0]);
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool maps_llvm() { return read_file("/proc/self/maps").find("libkiln_llvm") != std::string::npos; }

// What a warm run must be, and a cold one; empty: as it must.
std::string unexpected(const Report &report, bool warm) {
  const std::string lookup = report.text("lookup");
  const int64_t compiled = report.i64("kernels_compiled");
  if (!warm) return lookup != "MISS" ? "a cold run is " + lookup : compiled == 0 ? "a cold run compiled nothing" : "";
  if (lookup != "HIT") return "a warm run is " + lookup + " (" + report.text("reason") + ")";
  if (report.count("passes_run") != 0) return "a warm run ran the pass " + report.key("passes_run", 0);
  if (compiled != 0) return "a warm run compiled " + std::to_string(compiled) + " kernels";
  if (report.boolean("llvm_loaded") || maps_llvm()) return "a warm run loaded LLVM";
  return "";
}

// "3: fold_batch_norm 3": how many ran, and those that rewrote something.
std::string passes_of(const Report &report) {
  const size_t count = report.count("passes_run");
  std::string text = count ? std::to_string(count) : "none";
  for (size_t i = 0; i < count; ++i) {
    const std::string name = report.key("passes_run", i);
    const int64_t rewrites = report.i64("passes_run." + name);
    if (rewrites) text += (text.find(':') == std::string::npos ? ": " : ", ") + name + " " + std::to_string(rewrites);
  }
  return text;
}

int worker(const Variant &variant, const std::string &files, const std::string &run, const std::string &cache,
           const std::string &json) {
  const std::string &name = variant.model;
  Stopwatch watch;
  Stats stats;
  Model model(name, variant.form, variant.mode, files, cache);
  stats.compile = model.compile();
  const Evaluation evaluation = model.evaluate();
  stats.total_ms = watch.total();
  stats.call_bytes = evaluation.call_bytes;
  std::string wrong = unexpected(stats.compile, run == "warm");  // before the reference runs

  const Evaluation reference = model.evaluate_reference();
  const double error = max_abs_difference(evaluation.outputs, reference.outputs);
  if (wrong.empty()) wrong = model.judge(evaluation, reference, error);

  std::printf("%-7s %-7s %6.2f MB  %-6s  %-5s %-24s %9.2e  %-6s %-21s %8lld %9.1f ms %9.1f ms\n", name.c_str(),
              variant.form.c_str(),
              static_cast<double>(std::filesystem::file_size(files + "/weights.safetensors")) * 1e-6,
              variant.mode.c_str(), run.c_str(), evaluation.shown.c_str(), error, stats.compile.text("lookup").c_str(),
              passes_of(stats.compile).c_str(), static_cast<long long>(stats.compile.i64("kernels_compiled")),
              stats.compile.f64("total_ms"), stats.total_ms);
  write_file(json, json_of(stats, "  \"model\": " + json_text(name) + ",\n  \"weights\": " + json_text(variant.form) +
                                      ",\n  \"mode\": " + json_text(variant.mode) + ",\n  \"run\": " + json_text(run) +
                                      ",\n  \"quality\": " + json_number(evaluation.quality) +
                                      ",\n  \"max_abs_error\": " + json_number(error) + ",\n"));
  if (!wrong.empty()) throw Failure(name + ", " + variant.form + ", " + variant.mode + ", " + run + ": " + wrong);
  return 0;
}

// The folder with a variant's graph and weights, which are made in `folder` unless they are as trained.
std::string files_of(const Variant &variant, const test::TemporaryFolder &folder) {
  if (variant.form == "f32") return model_folder(variant.model);
  const std::string files = folder.file(variant.model + "." + variant.form);
  const std::string script = KILN_MODELS_DIR "/quantize.py";
  if (!runs_well({"/usr/bin/env", "python3", script, variant.model, variant.form, files}))
    throw Failure("quantize.py cannot store " + variant.model + " as " + variant.form);
  return files;
}

int demo(const char *self, std::span<const Variant> variants, const char *json) {
  const test::TemporaryFolder folder;
  std::string rows;
  bool good = true;
  std::printf("%-7s %-7s %9s  %-6s  %-5s %-24s %9s  %-6s %-21s %8s %12s %12s\n", "model", "weights", "size", "mode",
              "run", "quality", "error", "lookup", "passes run", "compiled", "compile", "total");
  for (const Variant &variant : variants) {
    const std::string files = files_of(variant, folder);
    for (const char *run : runs) {
      const std::string row = folder.file("row.json"),
                        cache = folder.file(variant.model + "." + variant.form + "." + variant.mode + ".cache");
      good &= runs_well({self, "--worker", variant.model, variant.form, variant.mode, files, run, cache, row});
      if (std::filesystem::exists(row)) {
        rows.append(rows.empty() ? "" : ",\n").append(read_file(row));
        rows.pop_back();  // the line feed
      }
      std::filesystem::remove(row);
    }
  }
  if (json) write_file(json, "[\n" + rows + "\n]\n");
  std::printf("\n200 characters, sampled by bindings/c/examples/chars.c after the prompt:\n\n");
  setenv("KILN_CACHE", folder.file("chars.f32.all.cache").c_str(), 1);
  good &= runs_well({KILN_EXAMPLE_CHARS, model_folder("chars"), plugin_of("chars")});
  return good ? 0 : 1;
}

}  // namespace
}  // namespace kiln::demo

int main(int count, char **words) {
  std::vector<std::string> args(words + 1, words + count);
  try {
    if (args.size() == 8 && args[0] == "--worker")
      return kiln::demo::worker({args[1], args[2], args[3]}, args[4], args[5], args[6], args[7]);
    const bool all = std::erase(args, "--all") != 0;
    const std::span<const kiln::demo::Variant> variants =
        all ? std::span<const kiln::demo::Variant>(kiln::demo::all_variants) : kiln::demo::trained;
    if (args.empty()) return kiln::demo::demo(words[0], variants, nullptr);
    if (args.size() == 2 && args[0] == "--json") return kiln::demo::demo(words[0], variants, args[1].c_str());
  } catch (const std::exception &failure) {
    std::fprintf(stderr, "demo: %s\n", failure.what());
    return 1;
  }
  std::fprintf(stderr, "usage: demo [--all] [--json FILE]\n");
  return 2;
}
