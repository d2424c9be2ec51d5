// kiln version: the library that runs, its build, and this machine.
#include "commands.h"
#include "session.h"

namespace kiln::cli {
namespace {

constexpr Flag flags[] = {json_flag};

int run(const Args &args) {
  const Report report = report_of(kiln_build_report);
  if (args.has("--json")) {
    print(report.json() + "\n");
    return 0;
  }
  print("kiln " + report.text("version") + "  ABI " + report.shown("abi.major") + "." + report.shown("abi.minor") +
        "  build " + report.text("build_id") + "  compiler " + report.text("compiler") + "  target " +
        report.text("target") + "\n");
  return 0;
}

}  // namespace

const Command version_command{"version", "", "Tells the library's version, build and target.", 0, 0, flags, run};

}  // namespace kiln::cli
