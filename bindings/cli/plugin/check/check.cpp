// kiln plugin check: each test in a process of its own, with a time limit.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>

#include "../../child_process.h"
#include "../../session.h"
#include "../../stats.h"
#include "../verbs.h"
#include "cached.h"

namespace kiln::cli {
namespace plugin_check {
namespace {

namespace fs = std::filesystem;

constexpr Flag plugin_check_flags[] = {
    {"--level", "1..10", "how much is tested; each level has the tests of those below it (10)"},
    {"--only", "TEST", "run one test, in this process"},
    {"--seconds", "N", "how long a test may take before it counts as hanging (600; load 20)"},
    {"--seed", "N", "of the random graphs: N, N + 1, … (1)"},
    {"--reproduce", "SEED", "test on the one random graph of this seed, and write it"},
    {"--graph", "NAME", "write the graph that a failure names (model chars, random 7), and test nothing"},
    tolerance_flag,
    fact_flag,
    {"--texts", "F", "write what the plugin makes of graphs to a file, to be compared, and test nothing"},
    {"--cache", "DIR", "of --texts: what is compiled and run with this cache"},
};

// The graphs that are named, then those of the plugin's folder, if it is built in one (kiln plugin test).
std::vector<std::string> graphs_of(const Args &args, const fs::path &plugin) {
  std::vector<std::string> files;
  for (size_t i = 1; i < args.operands().size(); ++i) files.push_back(fs::absolute(args.operands()[i]).string());
  if (!files.empty()) return files;
  for (const fs::path &folder : {plugin.parent_path(), plugin.parent_path().parent_path()}) {
    std::error_code absent;
    for (const fs::directory_entry &entry : fs::directory_iterator(folder / "golden", absent))
      if (entry.path().extension() == ".json") files.push_back(entry.path().string());
    if (!files.empty()) break;
  }
  std::ranges::sort(files);
  return files;
}

Checked subject_of(const Args &args) {
  Checked subject;
  const fs::path plugin = fs::absolute(args.operands()[0]);
  subject.path = plugin.string();
  subject.files = graphs_of(args, plugin);
  for (const std::string &file : subject.files)
    (void)read_file(file);  // one that is not there is not the plugin's fault
  subject.seconds = args.integer("--seconds", 1, 100000).value_or(0);
  subject.args = &args;
  set_facts(plain_context().get(), args);  // wrong use is told before anything is tested
  const auto reproduced = args.integer("--reproduce", 0);
  subject.alone = reproduced.has_value();
  subject.seed = static_cast<uint64_t>(reproduced ? *reproduced : args.integer("--seed", 0).value_or(1));
  return subject;
}

const Test &test_named(const std::string &name) {
  std::vector<std::string_view> known;
  for (const Test &test : tests()) {
    if (test.name == name) return test;
    known.push_back(test.name);
  }
  throw Usage("--only: there is no test '" + name + "'" + suggestion(name, known));
}

void print_failure(const Test &test, const std::string &what, std::string_view mend) {
  print("FAIL  " + padded(std::string(test.name), 14) + printable(what) + "\n      mend: " + std::string(mend) + "\n");
}

std::string passed_line(const Test &test) { return "ok    " + std::string(test.name) + "\n"; }

int run_here(const Test &test, const Checked &subject) {
  try {
    test.run(subject);
  } catch (const Uncompiled &failure) {
    return print_failure(test, failure.what(), test_named("invariants").mend), 1;
  } catch (const std::exception &failure) {
    return print_failure(test, failure.what(), test.mend), 1;
  }
  print(passed_line(test));
  return 0;
}

std::vector<std::string> words_for(const Test &test, const Checked &subject) {
  std::vector<std::string> words = {"plugin", "check", subject.path, "--only", std::string(test.name)};
  const std::vector<std::string> same = words_for_same(subject);
  words.insert(words.end(), same.begin(), same.end());
  return words;
}

// Whether it passed; says so, or what failed.
bool passes(const Test &test, const Checked &subject) {
  Stopwatch watch;
  Spawn spawn;
  spawn.words = words_for(test, subject);
  spawn.seconds = subject.seconds > 0 ? static_cast<int>(subject.seconds) : test.seconds;
  const Ended ended = run_process(spawn);
  // The plugin may end the process itself, with any status: what tells is the line.
  if (ended.code == 0 && ended.output.find(passed_line(test)) != std::string::npos) {
    char line[64];
    std::snprintf(line, sizeof line, "ok    %-14s%.1f s\n", std::string(test.name).c_str(), watch.total() / 1000);
    print(line);
    return true;
  }
  const size_t told = ended.output.rfind("FAIL  ");
  if (ended.code > 0 && told != std::string::npos)
    print(ended.output.substr(told));
  else
    print_failure(test,
                  ended.how.empty()
                      ? "it ended the process, with exit code " + std::to_string(ended.code) + ": " + ended.output
                      : ended.how,
                  test.mend);
  return false;
}

// What fails to load is tested no further.
int run_all(const Args &args, const Checked &subject) {
  const int64_t level = args.integer("--level", 1, 10).value_or(10);
  size_t failed = 0, count = 0;
  std::string beyond;
  for (const Test &test : tests()) {
    if (test.level > level) {
      beyond += (beyond.empty() ? "; not at this level: " : ", ") + std::string(test.name);
      continue;
    }
    ++count;
    if (passes(test, subject)) continue;
    ++failed;
    if (test.name == "load") break;
  }
  print(std::to_string(count - failed) + " of " + std::to_string(count) + " tests passed, at level " +
        std::to_string(level) + beyond + "\n");
  return failed > 0 ? 1 : 0;
}

int reproduce(const Checked &subject) {
  const Item item = random_graph(subject.seed, bytes_of(subject));
  print(item.json);
  int code = 0;
  for (const char *name : {"invariants", "numerics", "repeat"})
    code = std::max(code, passes(test_named(name), subject) ? 0 : 1);
  return code;
}

int write_graph(const Checked &subject, const std::string &name) {
  constexpr std::string_view random = "random ";
  if (name.starts_with(random)) {
    const int64_t seed = to_integer(name.substr(random.size()), 0, INT64_MAX, "--graph");
    return print(random_graph(static_cast<uint64_t>(seed), bytes_of(subject)).json), 0;
  }
  const Context context = context_of(subject);
  std::vector<Item> items;
  if (name.starts_with("pattern ")) {
    items = pattern_graphs(context, Registered(subject.path));
  } else {
    items = models();
    for (const bool registered : {false, true})
      for (Item &item : samples(context, registered)) items.push_back(std::move(item));
  }
  std::vector<std::string_view> known;
  for (const Item &item : items) {
    if (item.name == name) return print(item.json + (item.json.ends_with('\n') ? "" : "\n")), 0;
    known.push_back(item.name);
  }
  throw Usage("--graph: there is no '" + name + "'" + suggestion(name, known));
}

int run_verb(const Args &args) {
  const Checked subject = subject_of(args);
  given_tolerance(args);  // a wrong flag is no failure of the plugin
  if (!fs::exists(subject.path)) throw Failure(subject.path + ": No such file or directory");
  if (const auto file = args.get("--texts")) {
    const auto cache = args.get("--cache");
    return write_file(*file, cache ? turns_for_comparing(subject, *cache) : texts_for_comparing(subject)), 0;
  }
  if (const auto name = args.get("--graph")) return write_graph(subject, *name);
  if (const auto name = args.get("--only")) return run_here(test_named(*name), subject);
  return subject.alone ? reproduce(subject) : run_all(args, subject);
}

}  // namespace

}  // namespace plugin_check

const Command plugin_check_command{
    "plugin check",
    "P.so [GRAPH …]",
    "Tests a plugin on samples of ops, models, random graphs and the graphs that are named.",
    1,
    1000,
    plugin_check::plugin_check_flags,
    plugin_check::run_verb};

}  // namespace kiln::cli
