// kiln cache: what the cache holds, and whether it is sound.
#include <algorithm>
#include <ctime>

#include "commands.h"
#include "session.h"

namespace kiln::cli {
namespace {

constexpr Flag cache_flags[] = {{"--cache", "DIR", "the cache's folder (the user's cache folder)"}, json_flag};
constexpr std::string_view verbs[] = {"ls", "stats", "clear", "verify"};

std::string date(int64_t seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts = {};
  gmtime_r(&time, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%F %T", &parts);
  return text;
}

// "artifact      12345  2026-01-01 00:00:00  0123…  /path"
void print_entries(const Report &report) {
  for (size_t i = 0; i < report.count("entries"); ++i) {
    const auto shown = [&](std::string_view member) { return report.shown(path_of("entries", i, member)); };
    std::string kind = shown("kind"), bytes = shown("bytes");
    kind.resize(std::max<size_t>(kind.size(), 9), ' ');
    bytes.insert(0, bytes.size() < 10 ? 10 - bytes.size() : 0, ' ');
    print(kind + bytes + "  " + date(report.i64(path_of("entries", i, "modified"))) + "  " +
          shown("key").substr(0, 16) + "  " + printable(shown("path")) + "\n");
  }
}

int cache_main(const Args &args) {
  const std::string &verb = args.operands()[0];
  if (std::find(std::begin(verbs), std::end(verbs), verb) == std::end(verbs)) {
    throw Usage("unknown verb '" + verb + "' of cache" + suggestion(verb, verbs));
  }
  const Session session(args);
  const Report report = report_of(kiln_cache_command, session.context(), verb.data(), verb.size(), nullptr);
  const size_t problems = verb == "verify" ? report.count("problems") : 0;
  if (args.has("--json")) {
    print(report.json() + "\n");
  } else if (verb == "ls") {
    print_entries(report);
  } else if (verb == "stats") {
    print(printable(report.text("dir")) + ": " + report.shown("entries") + " entries, " + report.shown("bytes") +
          " of " + report.shown("max_bytes") + " bytes\n");
    if (report.i64("prepared.entries") > 0)
      print("prepared parameters: " + report.shown("prepared.entries") + " entries, " + report.shown("prepared.bytes") +
            " of " + report.shown("prepared.max_bytes") + " bytes\n");
  } else if (verb == "clear") {
    print(report.shown("removed") + " files removed\n");
  } else {
    for (size_t i = 0; i < problems; ++i) {
      print(
          printable(report.text(path_of("problems", i, "path")) + ": " + report.text(path_of("problems", i, "what"))) +
          "\n");
    }
    print(report.shown("entries") + " entries, " + std::to_string(problems) + " problems\n");
  }
  return problems ? 1 : 0;
}

}  // namespace

const Command cache_command{
    "cache", "ls|stats|clear|verify", "Lists, sums up, empties or checks the cache.", 1, 1, cache_flags, cache_main};

}  // namespace kiln::cli
