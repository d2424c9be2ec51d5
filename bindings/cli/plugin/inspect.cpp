// kiln plugin inspect: what a plugin would register, and with which identity.
#include "../session.h"
#include "verbs.h"

namespace kiln::cli {
namespace {

constexpr Flag plugin_inspect_flags[] = {json_flag};

std::string identity_of(const Report &report, size_t pass) {
  const std::string uuid = path_of("passes", pass, "uuid");
  return report.has(uuid) ? "  uuid " + report.shown(uuid) : "  no identity: compiles with it are not cached";
}

std::string option_line(const std::string &name, const std::string &value) {
  return "  option " + printable(name) + " = " + value + "\n";
}

int plugin_inspect_main(const Args &args) {
  const std::string &path = args.operands()[0];
  const Report report = report_of(kiln_plugin_inspect, path.data(), path.size());
  if (args.has("--json")) {
    print(report.json() + "\n");
    return 0;
  }
  print(report.text("name") + "  ABI " + report.shown("abi_major") + ", needs minor " +
        report.shown("host_minor_needed") + " of the host\n");
  for (size_t i = 0; i < report.count("links"); ++i)
    print("links " + report.shown(path_of("links", i, "name")) + "  " + report.shown(path_of("links", i, "identity")) +
          "\n");
  for (size_t i = 0; i < report.count("files"); ++i) print("uses " + report.shown(path_of("files", i, "path")) + "\n");
  for (size_t i = 0; i < report.count("passes"); ++i) {
    const auto shown = [&](std::string_view member) { return report.shown(path_of("passes", i, member)); };
    print("pass " + shown("name") + "  version " + shown("version") + "  " + shown("stage") + "  " + shown("timing") +
          "  priority " + shown("priority") + identity_of(report, i) + "\n");
    const std::string options = path_of("passes", i, "options");
    for (size_t k = 0; k < report.count(options); ++k)
      print(option_line(report.key(options, k), report.shown(options + "." + report.key(options, k))));
  }
  for (size_t i = 0; i < report.count("ops"); ++i)
    print("op " + report.shown(path_of("ops", i, "name")) + "  " + report.shown(path_of("ops", i, "identity")) + "\n");
  for (size_t i = 0; i < report.count("backends"); ++i) {
    const std::string backend = path_of("backends", i), options = backend + ".options";
    print("backend " + report.shown(backend + ".name") + "  " + report.shown(backend + ".identity") + "\n");
    for (size_t k = 0; k < report.count(options); ++k)
      print(option_line(report.text(path_of(options, k, "name")), report.shown(path_of(options, k, "default"))));
  }
  return 0;
}

}  // namespace

const Command plugin_inspect_command{
    "plugin inspect",   "P.so", "Shows what a plugin registers, and with which identity.", 1, 1, plugin_inspect_flags,
    plugin_inspect_main};

}  // namespace kiln::cli
