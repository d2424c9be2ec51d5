// A pass of patterns by kiln/pass.hpp; pattern_test.cpp runs it. One pattern is built part by part and has a
// replacement, one calls a function, and the pass counts by itself.
#include <kiln/pass.hpp>

KILN_PLUGIN_NOTE(0, KILN_FEATURE_PATTERNS, "pattern_author");

namespace {

using kiln::pass::Pattern;
using kiln::pass::PatternBuilder;
using kiln::pass::Rewriter;

Pattern silu() {
  PatternBuilder pattern("silu");
  pattern.capture("x").dtype({"f32", "f64"}).shape({"...", "d"});
  pattern.node("s", "sigmoid", {"x"});
  pattern.node("y", "mul", {"x", "s"});
  pattern.made("fused", "silu", {"x"});
  pattern.replace({"y"}, {"fused"});
  return pattern.build();
}

// x * c with a c of at least 1 becomes x + (c - 1) * x, in two nodes; one below stays.
void scale(Rewriter &graph) {
  const double by = graph.matched_number("c");
  if (by < 1) return;
  const kiln_value x = graph.matched("x");
  const kiln_value rest = graph.constant({static_cast<float>(by - 1)});
  graph.replace_match({graph.add(graph.op("add"), {x, graph.add(graph.op("mul"), {x, rest})})});
}
Pattern scaled() {
  PatternBuilder pattern("scaled");
  pattern.capture("x").shape({int64_t{2}});
  pattern.capture("c").number();
  pattern.node("y", "mul", {"x", "c"});
  pattern.outputs({"y"});
  return kiln::pass::calling<scale>(pattern.build());
}

uint64_t rewrite(Rewriter &graph) {
  const uint64_t rewrites = graph.apply_patterns();
  graph.note("rewrote " + std::to_string(rewrites));
  return rewrites;
}

constexpr kiln::pass::Definition definition = {
    "pattern_author", "1", {0x51, 0x0a}, KILN_STAGE_POST_GRAD, rewrite, kiln::pass::no_options, 0, 0, {}, [] {
      return std::vector<Pattern>{silu(), scaled()};
    }};

}  // namespace

const kiln_plugin *kiln_plugin_entry_v1(void) { return kiln::pass::plugin<definition>(); }
