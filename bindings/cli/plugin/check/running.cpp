// Tests of what is compiled with the plugin and run: ops on their samples, backends.
#include <cstring>

#include "../../session.h"
#include "tests.h"

namespace kiln::cli::plugin_check {
namespace {

Options with(std::string_view name, std::string_view value) {
  Options options;
  options.set(name, value);
  return options;
}

// The outputs on both, which must be those of the oracle, and the same twice.
void expect_oracle(const Context &context, const Item &item, const Graph &graph, const Options &options,
                   const std::string &how) {
  const std::vector<Array> inputs = draw(context, graph, 1, item.range), expected = oracle(context, graph, inputs);
  const Executable executable = compile(context, graph, options).executable;
  const std::vector<Array> once = run(executable, inputs), again = run(executable, inputs);
  if (const std::string apart = difference(graph, once, expected, item.tolerance); !apart.empty())
    fail(item, apart + " from the reference, " + how);
  for (size_t i = 0; i < once.size(); ++i)
    if (std::memcmp(once[i].tensor()->data, again[i].tensor()->data, cli::bytes_of(*once[i].tensor())) != 0)
      fail(item, "a second run gives other outputs, " + how);
}

// The same graph with the op's node marked to be run by the op's function, where it has both.
Item kept(const Item &item) {
  Item marked = item;
  const std::string end = "}], \"outputs\"";
  const size_t at = marked.json.rfind(end);
  marked.json.insert(at, ", \"annotations\": {\"kiln.decompose\": {\"text\": \"keep\"}}");
  return marked;
}

void test_op(const Context &context, const std::string &name) {
  kiln_op op = 0;
  check(kiln_op_find(context.get(), name.data(), name.size(), &op));
  const Report report = report_of(kiln_op_describe, context.get(), op);
  const std::vector<Item> items = samples_of(context, op);
  for (size_t i = 0; i < report.count("args"); ++i)
    if (report.text(path_of(path_of("args", i, "dtypes"), 0)) == "token") return;  // its effect is no number
  if (items.empty())
    throw Failure("op '" + name + "' has no samples, so that nothing of it is checked: add \"samples\" to its schema");
  for (const Item &item : items) {
    const Graph graph = parse(context, item.json);
    for (const char *mode : {"all", "none"})
      expect_oracle(context, item, graph, with("mode", mode), std::string("under mode ") + mode);
    const Item marked = kept(item);
    const Graph other = parse(context, marked.json);
    try {
      compile(context, other, with("mode", "none"));
    } catch (const Failure &) {
      continue;  // it has no function
    }
    expect_oracle(context, marked, other, with("mode", "none"), "by its function");
  }
}

}  // namespace

void test_ops(const Checked &subject) {
  const Registered registered(subject.path);
  const Context context = context_of(subject);
  for (const std::string &name : registered.ops) test_op(context, name);
}

void test_backends(const Checked &subject) {
  const Registered registered(subject.path);
  if (registered.backends.empty()) return;
  const Context context = context_of(subject);
  std::vector<Item> items = some_graphs(subject, 20);
  for (Item &item : models()) items.push_back(std::move(item));
  for (Item &item : samples(context, false, 3)) items.push_back(std::move(item));
  for (const std::string &backend : registered.backends) {
    size_t taken = 0;
    for (const Item &item : items) {
      const Graph graph = parse(context, item.json);
      try {
        if (!takes_some(context, item, backend)) continue;
        ++taken;
        expect_oracle(context, item, graph, with("backend", backend), "on backend " + backend);
      } catch (const Failure &failure) {
        if (std::string_view(failure.what()).starts_with("graph '")) throw;
        fail(item, failure.what());
      }
    }
    if (taken == 0)
      throw Failure("backend '" + backend + "' takes a node of no graph; give one: kiln plugin check P.so GRAPH");
  }
}

}  // namespace kiln::cli::plugin_check
