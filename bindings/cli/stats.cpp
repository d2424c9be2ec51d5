#include "stats.h"

#include <sys/resource.h>

#include <cmath>
#include <cstdio>

namespace kiln::cli {
namespace {

uint64_t peak_bytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

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

// The programs for some sizes that --specialize asked for.
std::string entries_json(const Report &compile) {
  std::string text;
  for (size_t i = 0; compile && i < compile.count("entries"); ++i) {
    text += i ? ", {" : "{";
    bool first = true;
    for (const char *name : {"name", "state", "lookup"}) {
      const std::string path = path_of("entries", i, name);
      if (!compile.has(path)) continue;
      text += (first ? "" : ", ") + json_text(name) + ": " + json_text(compile.text(path));
      first = false;
    }
    text += "}";
  }
  return "[" + text + "]";
}

void add_phase(std::string &text, bool &first, std::string_view name, double ms) {
  text.append(first ? "" : ", ").append(json_text(name)).append(": ").append(json_number(ms));
  first = false;
}

}  // namespace

std::string json_text(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result.append("\\").push_back(c);
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
      result += escape;
    } else {
      result.push_back(c);
    }
  }
  return result + "\"";
}

std::string json_number(double value) {
  if (!std::isfinite(value)) return std::isnan(value) ? "\"nan\"" : value > 0 ? "\"inf\"" : "\"-inf\"";
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.9g", value);
  return buffer;
}

std::string json_of(const Stats &stats, std::string_view members) {
  const Report &compile = stats.compile;
  std::string passes, phases;
  bool first = true;
  for (size_t i = 0; compile && i < compile.count("phases"); ++i) {
    const std::string name = compile.key("phases", i);
    add_phase(phases, first, name, compile.f64("phases." + name));
  }
  for (const auto &[name, ms] : stats.phases) add_phase(phases, first, name, ms);
  for (size_t i = 0; compile && i < compile.count("passes_run"); ++i) {
    const std::string name = compile.key("passes_run", i);
    passes += (i ? ", " : "") + json_text(name) + ": " + std::to_string(compile.i64("passes_run." + name));
  }

  std::string text = "{\n";
  const auto member = [&text](std::string_view name, const std::string &value) {
    text.append("  ").append(json_text(name)).append(": ").append(value).append(",\n");
  };
  text += members;
  member("lookup", json_text(compile ? compile.text("lookup") : "BYPASS"));
  member("reason", json_text(compile ? compile.text("reason") : "an artifact: nothing to look up"));
  member("key", json_text(compile ? compile.text("key") : ""));
  member("passes_run", "{" + passes + "}");
  member("kernels_compiled", std::to_string(compile ? compile.i64("kernels_compiled") : 0));
  member("kernels_from_cache", std::to_string(compile ? compile.i64("kernels_from_cache") : 0));
  member("launches", std::to_string(compile ? compile.i64("launches") : 0));
  member("materialised", std::to_string(compile ? compile.i64("materialised") : 0));
  member("llvm_loaded", compile && compile.boolean("llvm_loaded") ? "true" : "false");
  member("device_kernels", device_kernels_json(compile));
  member("entries", entries_json(compile));
  member("entry", json_text(stats.entry));
  member("compile_ms", json_number(compile ? compile.f64("total_ms") : 0));
  member("phases", "{" + phases + "}");
  member("total_ms", json_number(stats.total_ms));
  member("call_bytes", std::to_string(stats.call_bytes));
  return text + "  \"peak_bytes\": " + std::to_string(peak_bytes()) + "\n}\n";
}

}  // namespace kiln::cli
