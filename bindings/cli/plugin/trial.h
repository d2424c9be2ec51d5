// What `kiln plugin test` and `kiln plugin check` do with a plugin: compile graphs with it, and run them.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../args.h"
#include "../arrays.h"
#include "../handles.h"
#include "../signature.h"

namespace kiln::cli {

// A context with the plugin; `cache` is a folder or "off". Warnings are not shown.
Context context_with(const std::string &plugin, std::string_view cache = "off");
// A context without plugins and cache.
Context plain_context();

Graph parse(const Context &context, std::string_view json);
// What of bytes, in few letters: "outputs 0123456789abcdef". The same in every process.
std::string digest_of(std::string_view what, std::string_view bytes);
// As one line a node.
std::string text_of(const Graph &graph);
// The same, and a digest of what constants hold.
std::string text_with_constants(const Graph &graph);

// What a plugin registers, by kiln_plugin_inspect.
struct Registered {
  explicit Registered(const std::string &plugin);
  Report report;
  std::vector<std::string> passes, ops, backends;
  bool changes_numerics = false;  // by what a pass says of itself
  bool has_lower_pass = false;    // which runs on what is compiled together alone
};

struct Compilation {
  Executable executable;
  Report report;
};
// Runs all passes that the context has and generates no code: nodes are run one by one by the reference's kernels, or
// by the functions of their ops.
Options interpreted(const Registered &registered);
// The same, to be looked at alone.
Options passed(const Registered &registered);
Compilation compile(const Context &context, const Graph &graph, const Options &options);
// The graph behind all passes; undecomposed of what was compiled as interpreted.
Graph graph_of(const Context &context, const Executable &executable);

inline constexpr Flag tolerance_flag{"--tolerance", "T",
                                     "how far outputs may be off, as a part of max(|expected|, 1) (by type)"};
std::optional<double> given_tolerance(const Args &args);
// What that says; where it is not given 0, by type, or of passes that change numerics what finds a wrong formula.
double tolerance_of(const Args &args, const Registered &registered);

// What floats and integers are drawn from: [low, high).
struct Range {
  double low, high;
  int64_t integer_low, integer_high;
};
// A run's inputs and parameters: drawn by (seed, name), of the sizes that the graph's hints and limits allow; without a
// range as `kiln run --random` draws them.
std::vector<Array> draw(const Context &context, const Graph &graph, uint64_t seed,
                        const std::optional<Range> &range = std::nullopt);
// The outputs on copies of these.
std::vector<Array> run(const Executable &executable, const std::vector<Array> &inputs);
// Where an array is further from the expected one than `kiln run --compare` allows, or, where that is not 0, than this
// part of max(|expected|, 1): "differs by 0.5, relative 0.25, at [3]"; "": nowhere. Of the outputs of a graph: "output
// 'y' differs by …".
std::string difference(const DLTensor &actual, const DLTensor &expected, double tolerance = 0);
std::string difference(const Graph &graph, const std::vector<Array> &actual, const std::vector<Array> &expected,
                       double tolerance = 0);
// The outputs of the graph as it is given, on backend reference.
std::vector<Array> oracle(const Context &context, const Graph &graph, const std::vector<Array> &inputs);

}  // namespace kiln::cli
