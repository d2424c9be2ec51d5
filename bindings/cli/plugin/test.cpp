// kiln plugin test: the golden graphs of a plugin's folder, golden/CASE.json, against golden/CASE.txt.
#include <algorithm>
#include <filesystem>
#include <map>

#include "../regions.h"
#include "../session.h"
#include "trial.h"
#include "verbs.h"

namespace kiln::cli {
namespace {

namespace fs = std::filesystem;

constexpr Flag plugin_test_flags[] = {
    {"--plugin", "P.so", "the plugin (the one .so in DIR/build, or in DIR)"},
    {"--update", "", "write the texts anew instead of comparing them"},
    tolerance_flag,
};

// Of that ending, by name; none where there is no such folder.
std::vector<fs::path> files_in(const fs::path &folder, std::string_view ending) {
  std::vector<fs::path> found;
  std::error_code absent;
  for (const fs::directory_entry &entry : fs::directory_iterator(folder, absent))
    if (entry.path().extension() == ending) found.push_back(entry.path());
  std::ranges::sort(found);
  return found;
}

std::string plugin_in(const fs::path &folder) {
  for (const fs::path &place : {folder / "build", folder}) {
    const std::vector<fs::path> found = files_in(place, ".so");
    if (found.size() == 1) return found[0].string();
    if (found.size() > 1)
      throw Usage(place.string() + " has " + found[0].filename().string() + " and " + found[1].filename().string() +
                  "; say which: --plugin P.so");
  }
  throw Failure(folder.string() + ": there is no plugin (.so) in it or its folder build; build it, or give --plugin");
}

std::string section(const std::string &title, const std::string &text) { return title + "\n\n" + text + "\n"; }

// What a backend of the plugin takes of the graph.
std::string regions_on(const Context &context, const Graph &graph, const std::string &backend) {
  Options options;
  options.set("backend", backend);
  options.set("code", false);
  return regions_text(report_of(kiln_executable_describe, compile(context, graph, options).executable.get()));
}

// Kiln's own passes that run behind a plugin's: another version's may do otherwise.
std::vector<std::string> passes_behind(const Context &context) {
  constexpr int64_t first_of_own = 1000;
  const Report report = report_of(kiln_context_report, context.get());
  std::vector<std::string> names;
  for (size_t i = 0; i < report.count("passes"); ++i)
    if (report.text(path_of("passes", i, "identity")) == "build" &&
        report.i64(path_of("passes", i, "priority")) >= first_of_own)
      names.push_back(report.text(path_of("passes", i, "name")));
  return names;
}

// How often each pass of the plugin rewrote something, in all cases.
using Rewrites = std::map<std::string, int64_t>;

// The text of a case, by what the plugin makes of its graph now.
std::string golden_of(const Context &context, const Graph &graph, const Registered &registered, Rewrites &rewrites) {
  Options options = passed(registered);
  options.set("disable_passes", passes_behind(context));
  const Compilation made = compile(context, graph, options);
  for (size_t i = 0; i < made.report.count("passes"); ++i)
    if (const auto own = rewrites.find(made.report.text(path_of("passes", i, "name"))); own != rewrites.end())
      own->second += made.report.i64(path_of("passes", i, "rewrites"));
  std::string text = section("before", text_of(graph)) + section("after", text_of(graph_of(context, made.executable)));
  for (const std::string &backend : registered.backends)
    text += section("on " + backend, regions_on(context, graph, backend));
  text.pop_back();
  return text;
}

// What the plugin's passes, ops and backends compute, against the oracle; "": the same.
std::string wrong_numbers(const Context &context, const Graph &graph, const Registered &registered, double tolerance) {
  std::vector<std::string> backends = registered.backends;
  backends.insert(backends.begin(), "cpu");
  const std::vector<Array> inputs = draw(context, graph, 1), expected = oracle(context, graph, inputs);
  for (const std::string &backend : backends) {
    Options options;
    options.set("backend", backend);
    const std::string apart =
        difference(graph, run(compile(context, graph, options).executable, inputs), expected, tolerance);
    if (!apart.empty()) return apart + " from the reference, on backend " + backend;
  }
  return "";
}

// "line 7 is 'y = neg(x): f32[n]'; expected 'y = x: f32[n]'"
std::string first_difference(std::string_view actual, std::string_view expected) {
  for (size_t line = 1;; ++line) {
    const std::string_view a = actual.substr(0, actual.find('\n')), e = expected.substr(0, expected.find('\n'));
    if (a != e)
      return "line " + std::to_string(line) + " is '" + std::string(a) + "'; expected '" + std::string(e) + "'";
    actual.remove_prefix(std::min(a.size() + 1, actual.size()));
    expected.remove_prefix(std::min(e.size() + 1, expected.size()));
  }
}

// What is wrong with a case; "": nothing.
std::string problem_of(const std::string &plugin, const Registered &registered, const fs::path &path, const Args &args,
                       Rewrites &rewrites) {
  const Context context = context_with(plugin);
  const Graph graph = parse(context, read_file(path.string()));
  const fs::path text = fs::path(path).replace_extension(".txt");
  const std::string actual = golden_of(context, graph, registered, rewrites);
  if (std::string wrong = wrong_numbers(context, graph, registered, tolerance_of(args, registered)); !wrong.empty())
    return wrong;
  if (args.has("--update")) return write_file(text.string(), actual), "";
  if (!fs::exists(text)) return text.filename().string() + " is not there; --update writes it";
  const std::string expected = read_file(text.string());
  if (actual == expected) return "";
  return text.filename().string() + ": " + first_difference(actual, expected) +
         "; if that is meant, --update writes it anew";
}

int run_verb(const Args &args) {
  const fs::path folder = args.operands()[0];
  const std::string plugin = args.get("--plugin").value_or("");
  const std::vector<fs::path> cases = files_in(folder / "golden", ".json");
  if (cases.empty()) throw Failure((folder / "golden").string() + ": there is no graph (.json) in it");
  const std::string path = plugin.empty() ? plugin_in(folder) : plugin;
  const Registered registered(path);
  Rewrites rewrites;
  for (const std::string &pass : registered.passes) rewrites.emplace(pass, 0);
  int code = 0;
  for (const fs::path &file : cases) {
    std::string problem;
    try {
      problem = problem_of(path, registered, file, args, rewrites);
    } catch (const Failure &failure) {
      problem = failure.what();
    }
    print((problem.empty() ? "ok    " : "FAIL  ") + printable(file.stem().string()) +
          (problem.empty() ? "" : ": " + printable(problem)) + "\n");
    if (!problem.empty()) code = 1;
  }
  for (const auto &[pass, count] : rewrites)
    if (count == 0) print("note  pass '" + printable(pass) + "' rewrote nothing in any of them\n");
  return code;
}

}  // namespace

const Command plugin_test_command{
    "plugin test",
    "DIR",
    "Compares what a plugin makes of DIR/golden/CASE.json with CASE.txt, and its numbers.",
    1,
    1,
    plugin_test_flags,
    run_verb};

}  // namespace kiln::cli
