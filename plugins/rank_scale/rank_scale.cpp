// Multiplies each f32 output by the answer to a question, host.rank by default. A pass that reads what is in no key
// asks for it: then what it makes is given only to who has the same answer.
#include <kiln/pass.hpp>

KILN_PLUGIN_NOTE(0, 0, "rank_scale");

namespace {

using kiln::pass::Attr;
using kiln::pass::Rewriter;

std::vector<Attr> options() { return {{"question", "host.rank"}}; }

uint64_t rewrite(Rewriter &graph) {
  const std::optional<int64_t> rank = graph.ask_integer(graph.text_option("question"));
  if (!rank) return 0;
  const std::array<float, 1> factor = {static_cast<float>(*rank)};
  std::vector<kiln_value> outputs = graph.outputs();
  uint64_t rewrites = 0;
  for (kiln_value &output : outputs) {
    if (graph.dtype(output) != KILN_F32) continue;
    if (graph.is(kiln::pass::node_of(output), graph.op("copy_"))) continue;  // what is written is read by nothing
    output = graph.add(graph.op("mul"), {output, graph.constant(factor)});
    rewrites++;
  }
  if (rewrites) graph.set_outputs(outputs);
  return rewrites;
}

// The outputs of nested graphs are not the graph's.
constexpr kiln::pass::Definition definition = {
    "rank_scale",
    "2",
    {0xb2, 0x0d, 0x64, 0x1e, 0x7f, 0x93, 0x4a, 0x58, 0x8c, 0x21, 0xe9, 0x35, 0x06, 0xda, 0x4f, 0x70},
    KILN_STAGE_POST_GRAD,
    rewrite,
    options,
    0,
    KILN_PASS_NUMERICS | KILN_PASS_TOP_ONLY};

}  // namespace

const kiln_plugin *kiln_plugin_entry_v1(void) { return kiln::pass::plugin<definition>(); }
