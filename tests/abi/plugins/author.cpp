// Two passes by kiln/pass.hpp, which together use all of it; pass_header_test.cpp runs them.
#include <kiln/pass.hpp>
#include <stdexcept>

KILN_PLUGIN_NOTE(0, 0, "scale_outputs");

namespace {

using kiln::pass::Attr;
using kiln::pass::node_of;
using kiln::pass::Remove;
using kiln::pass::result_of;
using kiln::pass::Rewriter;

std::vector<Attr> options() { return {{"by", 2.0}, {"times", 1}, {"on", true}, {"word", "scaled"}}; }

// Multiplies each output by `by`, `times` times.
uint64_t scale_outputs(Rewriter &graph) {
  if (!graph.truth_option("on")) return 0;
  const double by = graph.number_option("by");
  const int64_t times = graph.integer_option("times");
  const std::string word = graph.text_option("word");
  std::vector<kiln_value> scaled = graph.outputs();
  const std::vector<float> factor = {static_cast<float>(by)};
  for (kiln_value &output : scaled) {
    for (int64_t i = 0; i < times; i++) {
      const std::vector<kiln_value> operands = {output, graph.constant(factor)};
      output = graph.add(graph.op("mul"), operands);
      graph.annotate(node_of(output),
                     {{"test.word", word}, {"test.bool", false}, {"test.list", std::vector<int64_t>{1, 2}}});
      graph.annotate(node_of(output), {{"test.list", Remove{}}});
    }
  }
  graph.set_outputs(scaled);
  graph.note("scaled " + std::to_string(scaled.size()) + " outputs");
  if (times > 3) graph.warn("scaled more than three times");
  if (times < 0) graph.fail(KILN_OUT_OF_RANGE, "times is below 0");
  if (times > 100) throw std::runtime_error("times is above 100");
  return scaled.size();
}

// mul(sum(x; keepdim), c) or mul(c, sum(x; keepdim)): the sum is written anew, of all attributes.
uint64_t copy_sums(Rewriter &graph) {
  uint64_t rewrites = 0;
  for (kiln_node node : graph.nodes()) {
    if (!graph.is(node, graph.op("mul"))) continue;
    const auto sum = graph.either_order(node, [&](kiln_value a, kiln_value b) -> std::optional<kiln_node> {
      if (!graph.is(node_of(a), graph.op("sum"), {"dims", "keepdim"}) || !graph.scalar(b)) return std::nullopt;
      return node_of(a);
    });
    if (!sum || graph.users(result_of(*sum)).size() != 1 || graph.use_count(result_of(*sum)) != 1) continue;
    const kiln_value copy =
        graph.add(graph.op("sum"), graph.operands(*sum),
                  {{"dims", graph.integers(*sum, "dims")}, {"keepdim", graph.truth(*sum, "keepdim") == 1}});
    if (!graph.same_dims(copy, result_of(*sum))) return 0;
    graph.replace(result_of(*sum), copy);
    rewrites++;
  }
  kiln_node first = 0;
  graph.check(graph.host().graph->find(graph.graph(), "x", 1, &first));  // by the tables themselves
  return rewrites;
}

constexpr kiln::pass::Definition scaling = {"scale_outputs", "1",     {0xa1, 1}, KILN_STAGE_POST_GRAD,
                                            scale_outputs,   options, 5};
constexpr kiln::pass::Definition copying = {"copy_sums", "1", {0xa1, 2}, KILN_STAGE_PRE_GRAD, copy_sums};

}  // namespace

const kiln_plugin *kiln_plugin_entry_v1(void) { return kiln::pass::plugin<scaling, copying>(); }
