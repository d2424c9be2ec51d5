#include "stats.h"

#include <sys/resource.h>

#include <cstdio>
#include <memory>

#include "json.h"

namespace kiln::cli {
namespace {

// What each kernel takes of a GPU, as the compile told.
std::string device_kernels_json(const Report &compile) {
  std::string text;
  for (size_t i = 0; compile && i < compile.count("device_kernels"); ++i) {
    text +=
        (i ? ", {" : "{") + json_text("entry") + ": " + json_text(compile.text(path_of("device_kernels", i, "entry")));
    for (const char *name : {"registers", "spill_bytes", "shared_bytes"})
      text += ", " + json_text(name) + ": " + std::to_string(compile.i64(path_of("device_kernels", i, name)));
    text += "}";
  }
  return "[" + text + "]";
}

// Of each element of a list those members that it has: texts, or one number.
std::string rows_json(const Report &compile, std::string_view list, std::initializer_list<std::string_view> names) {
  std::string text;
  for (size_t i = 0; compile.has(list) && i < compile.count(list); ++i) {
    std::string row;
    for (const std::string_view name : names) {
      const std::string path = path_of(list, i, name);
      if (!compile.has(path)) continue;
      row.append(row.empty() ? "" : ", ").append(json_text(name)).append(": ");
      row += name == "same_as" ? std::to_string(compile.i64(path)) : json_text(compile.text(path));
    }
    text += (i ? ", {" : "{") + row + "}";
  }
  return "[" + text + "]";
}

// An object of numbers, if it is there.
std::string counts_json(const Report &compile, const std::string &path) {
  std::string text;
  for (size_t i = 0; compile.has(path) && i < compile.count(path); ++i) {
    const std::string name = compile.key(path, i);
    text += (i ? ", " : "") + json_text(name) + ": " + std::to_string(compile.i64(path + "." + name));
  }
  return "{" + text + "}";
}

void add_phase(std::string &text, bool &first, std::string_view name, double ms) {
  text.append(first ? "" : ", ").append(json_text(name)).append(": ").append(json_number(ms));
  first = false;
}

}  // namespace

uint64_t peak_bytes() {
  if (const std::unique_ptr<std::FILE, decltype(&std::fclose)> status(std::fopen("/proc/self/status", "r"),
                                                                      &std::fclose);
      status) {
    char line[256];
    unsigned long long kilobytes = 0;
    while (std::fgets(line, sizeof line, status.get()))
      if (std::sscanf(line, "VmHWM: %llu", &kilobytes) == 1) return kilobytes * 1024;
  }
  rusage usage = {};  // of a process that another made, also what that one had in memory then
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

std::string json_of(const Stats &stats, std::string_view members) {
  const Report &compile = stats.compile;
  std::string phases;
  bool first = true;
  for (size_t i = 0; compile && i < compile.count("phases"); ++i) {
    const std::string name = compile.key("phases", i);
    add_phase(phases, first, name, compile.f64("phases." + name));
  }
  for (const auto &[name, ms] : stats.phases) add_phase(phases, first, name, ms);

  std::string text = "{\n";
  const auto member = [&text](std::string_view name, const std::string &value) {
    text.append("  ").append(json_text(name)).append(": ").append(value).append(",\n");
  };
  text += members;
  member("lookup", json_text(compile ? compile.text("lookup") : "BYPASS"));
  member("reason", json_text(compile ? compile.text("reason") : "an artifact: nothing to look up"));
  member("key", json_text(compile ? compile.text("key") : ""));
  member("passes_run", counts_json(compile, "passes_run"));
  member("kernels_compiled", std::to_string(compile ? compile.i64("kernels_compiled") : 0));
  member("kernels_from_cache", std::to_string(compile ? compile.i64("kernels_from_cache") : 0));
  member("launches", std::to_string(compile ? compile.i64("launches") : 0));
  member("materialised", std::to_string(compile ? compile.i64("materialised") : 0));
  if (compile && compile.has("in_place.missed")) {
    member("in_place", std::to_string(compile.i64("in_place.made")));
    member("copies", std::to_string(compile.i64("in_place.missed")));
    member("copied_bytes", json_text(compile.text("in_place.missed_bytes")));
  }
  member("llvm_loaded", compile && compile.boolean("llvm_loaded") ? "true" : "false");
  member("device_kernels", device_kernels_json(compile));
  member("fallbacks", counts_json(compile, "made.partition.fallback_counts"));
  member("pieces", rows_json(compile, "pieces", {"lookup", "reason", "key", "same_as"}));
  member("entries", rows_json(compile, "entries", {"name", "state", "lookup"}));
  member("entry", json_text(stats.entry));
  member("compile_ms", json_number(compile ? compile.f64("total_ms") : 0));
  member("phases", "{" + phases + "}");
  member("total_ms", json_number(stats.total_ms));
  member("call_bytes", std::to_string(stats.call_bytes));
  return text + "  \"peak_bytes\": " + std::to_string(peak_bytes()) + "\n}\n";
}

}  // namespace kiln::cli
