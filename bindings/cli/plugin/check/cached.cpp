// The cache: what one context and one process make, others find, and what they find is the same.
#include "cached.h"

#include <algorithm>

#include "../../temporary_folder.h"

namespace kiln::cli::plugin_check {
namespace {

constexpr uint64_t cached_graphs = 8;
constexpr std::string_view made_begin = "graph";

std::string late_passes_of(const Report &compiled, const Registered &registered) {
  std::string names;
  for (size_t i = 0; i < registered.passes.size(); ++i) {
    const std::string &name = registered.passes[i];
    if (registered.report.text(path_of("passes", i, "timing")) == "early") continue;
    if (compiled.has_member("passes_run", name)) names += (names.empty() ? "" : ", ") + name;
  }
  return names;
}

Turn turn_of(const Context &context, const Registered &registered, const Item &item, const std::string &backend) {
  Turn turn;
  turn.name = item.name + (backend.empty() ? "" : " on backend " + backend);
  try {
    const Graph graph = parse(context, item.json);
    Options options;
    if (!backend.empty()) options.set("backend", backend);
    const Compilation compiled = compile(context, graph, options);
    const std::vector<Array> outputs = run(compiled.executable, draw(context, graph, 1));
    turn.made =
        digest_of(made_begin, text_with_constants(graph_of(context, compiled.executable))) + ", " + digest_of(outputs);
    turn.lookup = compiled.report.text("lookup");
    turn.reason = compiled.report.text("reason");
    turn.ran = late_passes_of(compiled.report, registered);
  } catch (const Failure &failure) {
    turn.made = failure.what();
  }
  return turn;
}

}  // namespace

std::vector<Item> cached_items(const Checked &subject) {
  std::vector<Item> items = some_graphs(subject, cached_graphs);
  if (subject.alone) return items;
  for (Item &item : models()) items.push_back(std::move(item));
  return items;
}

std::vector<Turn> turns(const Context &context, const Registered &registered, const std::vector<Item> &items) {
  std::vector<Turn> turns;
  for (const Item &item : items) {
    turns.push_back(turn_of(context, registered, item, ""));
    for (const std::string &backend : registered.backends)
      if (takes_some(context, item, backend)) turns.push_back(turn_of(context, registered, item, backend));
  }
  return turns;
}

bool are_bypassed(const std::vector<Turn> &turns) {
  return std::ranges::any_of(turns, [](const Turn &turn) { return turn.lookup == "BYPASS"; });
}

std::string text_of(const std::vector<Turn> &turns) {
  std::string text;
  for (const Turn &turn : turns) {
    text += std::string(heading) + turn.name + "\n";
    if (!turn.lookup.empty()) {
      text += turn.lookup + (turn.lookup == "HIT" ? "" : ": " + turn.reason) + "\n";
      text += (turn.ran.empty() ? "no late pass ran" : "passes ran: " + turn.ran) + "\n";
    }
    text += turn.made + "\n";
  }
  return text;
}

void expect_found(std::vector<Turn> made, const std::string &found, const std::string &where) {
  for (Turn &turn : made) {
    if (turn.lookup.empty()) continue;
    turn.lookup = "HIT";
    turn.ran.clear();
  }
  if (const std::string at = parting(text_of(made), found); !at.empty())
    throw Failure(where + " does not find what was made, or finds something else: " + at);
}

std::string made_of(const std::string &text) {
  std::string made;
  for (const std::string &line : split(text, '\n'))
    if (line.starts_with(heading) || line.starts_with(made_begin)) made += line + "\n";
  return made;
}

std::string turns_of_process(const Checked &subject, const std::string &cache, const std::vector<std::string> &facts) {
  std::vector<std::string> words = {"--cache", cache};
  for (const std::string &fact : facts) words.insert(words.end(), {std::string("--fact"), fact});
  return texts_of_process(subject, {}, words);
}

std::string turns_for_comparing(const Checked &subject, const std::string &cache) {
  const Registered registered(subject.path);
  const Context context = context_of(subject, cache);
  std::string text = text_of(turns(context, registered, cached_items(subject)));
  check(kiln_context_close(context.get()));
  return text;
}

void test_cache(const Checked &subject) {
  const TemporaryFolder folder;
  const Registered registered(subject.path);
  const std::vector<Item> items = cached_items(subject);
  std::vector<Turn> made;
  {
    const Context context = context_of(subject, folder.path());
    made = turns(context, registered, items);
    check(kiln_context_close(context.get()));
  }
  if (are_bypassed(made)) return;  // without an identity nothing is cached
  expect_found(made, text_of(turns(context_of(subject, folder.path()), registered, items)), "a second context");
  expect_found(made, turns_of_process(subject, folder.path()), "another process");
}

}  // namespace kiln::cli::plugin_check
