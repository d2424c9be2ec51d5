// kiln passes: what a compile of a graph would run, in order; and how near the graph comes to a pass's patterns.
#include "commands.h"
#include "session.h"

namespace kiln::cli {
namespace {

constexpr Flag pass_flag{"--pass", "NAME", "of explain: the pass whose patterns are explained"};
constexpr Flag passes_flags[] = {json_flag,     pass_flag,      plugin_flag,         plugin_option_flag, fact_flag,
                                 backend_flag,  cpu_flag,       arch_flag,           rounding_flag,      mode_flag,
                                 fallback_flag, passes_flag,    disable_passes_flag, option_flag,        strict_flag,
                                 cache_flag,    specialize_flag};

// "of fuse_rms_norm.so, version 1, late, priority 0, uuid and file 4f09…".
std::string described(const Report &report, const std::string &pass) {
  const auto shown = [&](std::string_view member) { return report.shown(pass + "." + std::string(member)); };
  const std::string plugin = shown("plugin"), identity = shown("identity");
  std::string text = plugin.empty() ? "built in" : "of " + plugin;
  if (const std::string version = shown("version"); !version.empty()) text += ", version " + version;
  text += ", " + shown("timing") + ", priority " + shown("priority");
  if (identity == "none" && shown("timing") == "late") return text + ", no identity: the cache is bypassed";
  if (identity == "none") return text + ", no identity";
  return identity == "build" ? text : text + ", " + identity + " " + shown("uuid");
}

std::string text_of(const Report &report) {
  std::string text = "backend " + report.text("backend") + ", mode " + report.text("mode") + "\n";
  if (const std::string bypass = report.text("bypass"); !bypass.empty()) text += "BYPASS: " + bypass + "\n";
  for (size_t i = 0; i < report.count("stages"); ++i) {
    const std::string stage = path_of("stages", i), steps = stage + ".steps";
    text += padded(report.text(stage + ".name"), 16) + report.text(stage + ".doc") + "\n";
    for (size_t k = 0; k < report.count(steps); ++k) {
      const std::string step = path_of(steps, k);
      const bool is_pass = report.has(step + ".identity");
      text += padded("  " + std::string(is_pass ? "pass " : "") + report.text(step + ".name"), 24) + " " +
              (is_pass ? described(report, step) : report.text(step + ".doc")) + "\n";
    }
  }
  return text;
}

std::string explained(const Report &report) {
  std::string text = "pass " + report.text("pass") + " of " + report.text("plugin") + ", stage " +
                     report.text("stage") + ": " + report.shown("rewrites") + " rewrites\n";
  for (size_t i = 0; i < report.count("patterns"); ++i) {
    const std::string pattern = path_of("patterns", i), closest = pattern + ".closest";
    text += "pattern " + report.text(pattern + ".name") + ": " + report.shown(pattern + ".found") + " found, " +
            report.shown(pattern + ".matches") + " rewritten";
    if (const std::string expected = report.shown(pattern + ".expected"); expected != "0")
      text += ", " + expected + " expected";
    text += "\n";
    const std::string failed = report.text(closest + ".failed"), graph = report.text(closest + ".graph"),
                      node = report.text(closest + ".node");
    if (failed.empty()) continue;
    if (!node.empty())
      text += "  closest: at '" + node + "'" + (graph.empty() ? "" : " in the graph of " + graph) + ", " +
              report.shown(closest + ".met") + " of " + report.shown(closest + ".of") + "\n";
    text += "  " + failed + "\n";
  }
  return text;
}

// GRAPH, or explain GRAPH.
int passes_main(const Args &args) {
  const bool explains = args.operands().size() == 2;
  if (explains && args.operands()[0] != "explain") throw Usage("expected GRAPH, or explain GRAPH --pass NAME");
  if (explains != args.has(pass_flag.name)) throw Usage("--pass NAME goes with explain GRAPH");
  const Session session(args);
  const Subject subject = load(session, args.operands().back());
  if (!subject.graph) throw Usage("passes run on a graph; this is an artifact, whose report is in kiln inspect --json");
  const Options options = compile_options(args, session);
  Report report;
  try {
    if (explains) {
      const std::string pass = *args.get(pass_flag.name);
      report =
          report_of(kiln_pass_explain, session.context(), subject.graph.get(), options.get(), pass.data(), pass.size());
    } else {
      report = report_of(kiln_compile_passes, session.context(), subject.graph.get(), options.get());
    }
  } catch (const Failure &failure) {
    if (is_of_usage(failure)) throw Usage(failure.what());
    throw;
  }
  print(args.has(json_flag.name) ? report.json() + "\n" : explains ? explained(report) : text_of(report));
  return 0;
}

}  // namespace

const Command passes_command{"passes",
                             "[explain] GRAPH",
                             "Shows what a compile would run, in order, without compiling; with explain, how near the "
                             "graph comes to the patterns of one pass.",
                             1,
                             2,
                             passes_flags,
                             passes_main};

}  // namespace kiln::cli
