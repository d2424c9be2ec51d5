// kiln version: the library that runs, its build, and this machine.
#include "commands.h"
#include "session.h"

namespace kiln::cli {
namespace {

constexpr Flag version_flags[] = {json_flag};

// In KiB, or "none".
std::string cache_text(const Report &report, const char *level) {
  const int64_t bytes = report.i64(std::string("caches.") + level);
  return bytes == 0 ? "none" : std::to_string(bytes / 1024) + " KiB";
}

int version_main(const Args &args) {
  const Report report = report_of(kiln_build_report);
  if (args.has("--json")) {
    print(report.json() + "\n");
    return 0;
  }
  print("kiln " + report.text("version") + "  ABI " + report.shown("abi.major") + "." + report.shown("abi.minor") +
        "  build " + report.text("build_id") + "  compiler " + report.text("compiler") + "  target " +
        report.text("target") + "  caches " + cache_text(report, "l1") + " " + cache_text(report, "l2") + " " +
        cache_text(report, "l3") + "\n");
  return 0;
}

}  // namespace

const Command version_command{
    "version",   "", "Tells the library's version and build, and what this machine is: target and caches of data.",
    0,           0,  version_flags,
    version_main};

}  // namespace kiln::cli
