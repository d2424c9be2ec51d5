// Tests of what passes make of graphs.
#include <algorithm>
#include <chrono>
#include <functional>

#include "../../session.h"
#include "effects.h"
#include "tests.h"

namespace kiln::cli::plugin_check {
namespace {

constexpr size_t samples_of_each_op = 3;
constexpr uint64_t random_graphs = 150;

std::vector<Item> corpus(const Checked &subject, const Context &context, const Registered &registered) {
  std::vector<Item> items = some_graphs(subject, 20);
  if (subject.alone) return items;
  for (Item &item : pattern_graphs(context, registered)) items.push_back(std::move(item));
  for (Item &item : models()) items.push_back(std::move(item));
  for (Item &item : samples(context, false, samples_of_each_op)) items.push_back(std::move(item));
  return items;
}

// To be looked at; empty where the graph cannot be compiled at all.
Executable compiled(const Context &context, const Registered &registered, const Item &item, const Graph &graph) {
  try {
    return compile(context, graph, passed(registered)).executable;
  } catch (const Failure &failure) {
    try {
      compile(context, graph, without_passes(registered));
    } catch (const Failure &) {
      return {};
    }
    throw Uncompiled(item, failure);
  }
}

// What a run makes, and what it notes on the way.
struct Observed {
  std::vector<Array> outputs, notes;
};
Observed observed(const std::function<std::vector<Array>()> &run) {
  take_notes();
  Observed found;
  found.outputs = run();
  found.notes = take_notes();
  return found;
}

// How the effects differ; "": they do not.
std::string difference_of_notes(const std::vector<Array> &actual, const std::vector<Array> &expected,
                                double tolerance) {
  if (actual.size() != expected.size())
    return std::to_string(actual.size()) + " effects happen in a run, and " + std::to_string(expected.size()) +
           " did before the passes";
  for (size_t i = 0; i < expected.size(); ++i)
    if (const std::string apart = difference(*actual[i].tensor(), *expected[i].tensor(), tolerance); !apart.empty())
      return "what effect number " + std::to_string(i + 1) + " of a run is given " + apart +
             " from what it was before the passes";
  return "";
}

// Where a pass has rewritten something: that the outputs, and the effects, are those of the graph as it was.
void compare(const Context &context, const Registered &registered, const Item &item, const Graph &graph,
             double tolerance) {
  tolerance = std::max(tolerance, item.tolerance);
  const Executable looked_at = compiled(context, registered, item, graph);
  if (!looked_at || text_with_constants(graph_of(context, looked_at)) == text_with_constants(graph)) return;
  const std::vector<Array> inputs = draw(context, graph, 1, item.range);
  Observed expected, actual;
  try {
    expected = observed([&] { return oracle(context, graph, inputs); });
  } catch (const Failure &) {
    return;  // no numbers for which it means something
  }
  try {
    actual = observed([&] { return run(compile(context, graph, interpreted(registered)).executable, inputs); });
  } catch (const Failure &failure) {
    fail(item, std::string("cannot be run any more: ") + failure.what());
  }
  if (const std::string apart = difference(graph, actual.outputs, expected.outputs, tolerance); !apart.empty())
    fail(item, apart + " from what it was before the passes");
  if (const std::string apart = difference_of_notes(actual.notes, expected.notes, tolerance); !apart.empty())
    fail(item, apart);
}

// That the graphs which are given are graphs: what is wrong with one is no test's failure.
void expect_valid(const Checked &subject) {
  const Context context = context_of(subject);
  for (const std::string &file : subject.files) {
    try {
      parse(context, read_file(file));
    } catch (const Failure &failure) {
      throw Failure("the plugin loads; " + file + " is no graph, with its ops or without: " + failure.what());
    }
  }
}

}  // namespace

void test_load(const Checked &subject) {
  const auto begin = std::chrono::steady_clock::now();
  const Registered registered(subject.path);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  if (took.count() > 2) throw Failure("loading it took " + std::to_string(took.count()) + " s");
  if (registered.passes.empty() && registered.ops.empty() && registered.backends.empty() &&
      registered.report.count("functions") == 0)
    throw Failure("its setup registers nothing");
  for (int i = 0; i < 3; ++i) context_with(subject.path);  // one after another
  const Context first = context_with(subject.path), second = context_with(subject.path);
  expect_valid(subject);
}

void test_invariants(const Checked &subject) {
  const Registered registered(subject.path);
  expect_invariants(subject, registered, context_of(subject));
}

void expect_invariants(const Checked &subject, const Registered &registered, const Context &context) {
  for (const Item &item : corpus(subject, context, registered))
    compiled(context, registered, item, parse(context, item.json));
}

void test_numerics(const Checked &subject) {
  const Registered registered(subject.path);
  const Context context = context_of(subject);
  for (const Item &item : corpus(subject, context, registered)) {
    const Graph graph = parse(context, item.json);
    compare(context, registered, item, graph, tolerance_of(*subject.args, registered));
  }
}

void test_repeat(const Checked &subject) {
  const Registered registered(subject.path);
  const Context context = context_of(subject);
  const std::vector<Item> items = some_graphs(subject, 60);
  for (const Item &item : items)
    if (after(context, registered, item) != after(context, registered, item))
      fail(item, "the second compile in a context makes something else of it");
  const std::string first = all_texts(context, registered, items);
  if (const std::string at = parting(first, all_texts(context, registered, items)); !at.empty())
    throw Failure("after other graphs a compile makes something else of " + at);
  if (const std::string at = parting(first, all_texts(context_of(subject), registered, items)); !at.empty())
    throw Failure("another context makes something else of " + at);
}

void test_names(const Checked &subject) {
  const Registered registered(subject.path);
  const Context context = context_of(subject);
  const std::string bytes = bytes_of(subject);
  for (uint64_t seed = subject.seed; seed < subject.seed + 40; ++seed) {
    std::string digests[3];
    const Dress dresses[] = {{}, {"another_", false}, {"node_", true}};
    for (size_t i = 0; i < 3; ++i) {
      const Item item = random_graph(seed, bytes, dresses[i]);
      const Graph graph = parse(context, item.json);
      const Executable executable = compiled(context, registered, item, graph);
      if (!executable) continue;
      const Report report = compile(context, graph, passed(registered)).report;
      for (size_t k = 0; k < report.count("stages"); ++k) digests[i] += report.text(path_of("stages", k, "digest"));
    }
    const Item item = random_graph(seed, bytes);
    if (digests[1] != digests[0]) fail(item, "with other names of nodes it becomes another graph");
    if (digests[2] != digests[0]) fail(item, "with annotations debug.* on its nodes it becomes another graph");
  }
}

void test_random(const Checked &subject) {
  const Registered registered(subject.path);
  const Context context = context_of(subject);
  const std::string bytes = bytes_of(subject);
  for (uint64_t seed = subject.seed; seed < subject.seed + (subject.alone ? 1 : random_graphs); ++seed) {
    const Item item = random_graph(seed, bytes);
    const Graph graph = parse(context, item.json);
    compare(context, registered, item, graph, tolerance_of(*subject.args, registered));
  }
}

}  // namespace kiln::cli::plugin_check
