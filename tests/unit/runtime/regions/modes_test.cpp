// How marks and modes cut graphs, as their summary tells it.
#include "runtime/regions/modes.h"

#include <functional>
#include <map>
#include <set>

#include "jit/base/target.h"
#include "runtime/backends/rows.h"
#include "runtime/regions/summary.h"
#include "tests/unit/runtime/graphs.h"

namespace kiln {
namespace {

using Nodes = std::vector<std::string>;

// A node as "name op operand,operand region": the region may be missing, "!" falls back, "region+keep" is not
// decomposed.
std::string graph_of_nodes(const Nodes &nodes, const std::string &outputs) {
  const auto word = [](const std::string &text, size_t number) {
    size_t at = 0;
    for (; number > 0; --number) {
      at = text.find(' ', at);
      if (at == text.npos) return std::string();
      ++at;
    }
    return text.substr(at, text.find(' ', at) - at);
  };
  const std::string list = join(nodes, ",", [&](const std::string &node) {
    std::string operands = "\"";
    for (const char c : word(node, 2)) operands += c == ',' ? std::string("\",\"") : std::string(1, c);
    const std::string marks = word(node, 3), mark = marks.substr(0, marks.find('+'));
    std::string annotation = mark.empty()  ? ""
                             : mark == "!" ? R"("kiln.fallback":{"bool":true})"
                                           : str_cat(R"("kiln.region":{"text":")", mark, "\"}");
    if (mark != marks)
      str_append(annotation, str_cat(mark.empty() ? "" : ",", R"("kiln.decompose":{"text":")",
                                     marks.substr(mark.size() + 1), "\"}"));
    return str_cat(R"({"name":")", word(node, 0), R"(","op":")", word(node, 1), R"(","inputs":[)", operands,
                   R"("],"annotations":{)", annotation, "}}");
  });
  return test::f32_graph("xy", "4", list, outputs);
}

PartitionSummary cut(const GraphPtr &graph, Modes modes, const BackendInfo &backend = cpu_backend) {
  Result<LoweredGraphs> lowered = lower_graphs(graph, builtin_ops(), {.backend = backend, .modes = modes});
  EXPECT_TRUE(lowered.ok()) << lowered.status().message();
  if (!lowered.ok()) return {};
  EXPECT_TRUE(fuse(*lowered, *Target::by_name("x86-64")).ok());
  return summarize(*lowered, modes).value_or(PartitionSummary());
}

Modes mode(Mode both) { return {both, both}; }

// "m(a b) m(d e)": regions in an order in which they can run, without what falls back.
std::string regions(const PartitionSummary &summary) {
  return join(summary.parts, " ", [](const PartitionSummary::Part &part) {
    return str_cat(part.region, "(", join(part.nodes, " ", [](const std::string &name) { return name; }), ")");
  });
}
std::string regions(const Nodes &nodes, const std::string &outputs, Mode both = Mode::marked) {
  return regions(cut(test::graph_of(graph_of_nodes(nodes, outputs)), mode(both)));
}

TEST(Modes, AnUnmarkedNodeOnTheDataPathSplitsARegion) {
  EXPECT_EQ(regions({"a sin x m", "b cos a m", "c tanh b", "d exp c m", "e neg d m"}, "e"), "m(a b) m(d e)");
  EXPECT_EQ(regions({"a sin x m", "b cos a", "c tanh b m", "d exp c", "e neg d m"}, "e"), "m(a) m(c) m(e)");
  EXPECT_EQ(regions({"a sin x", "b cos a"}, "b"), "");
}

TEST(Modes, BranchesAroundAGapAreOneRegionForOneName) {
  const auto branches = [](const std::string &left, const std::string &right) {
    return Nodes{"a sin x " + left, "gap cos y", "b tanh x " + right, "c add a,b", "d add c,gap"};
  };
  EXPECT_EQ(regions(branches("m", "m"), "d"), "m(a b)");
  EXPECT_EQ(regions(branches("m", "n"), "d"), "m(a) n(b)");
}

TEST(Modes, AGapThatNothingDependsOnSplitsNothing) {
  EXPECT_EQ(regions({"a sin x m", "gap cos y", "b tanh a m", "c exp b m"}, "c gap"), "m(a b c)");
  Nodes nodes = {"m0 sin x m"};
  for (int k = 0; k < 20; ++k) {
    nodes.push_back(str_cat("gap", k, " cos m", k));
    nodes.push_back(str_cat("m", k + 1, " exp m", k, " m"));
  }
  EXPECT_EQ(cut(test::graph_of(graph_of_nodes(nodes, "m20 gap3 gap19")), mode(Mode::marked)).parts.size(), 1u);
}

TEST(Modes, RegionsThatWouldCloseACycleTogetherAreSplit) {
  const auto groups = [](const PartitionSummary &summary) {
    std::set<std::set<std::string>> all;
    for (const PartitionSummary::Part &part : summary.parts) all.emplace(part.nodes.begin(), part.nodes.end());
    return all;
  };
  // a1 -> b1 and b2 -> a2: either name could be whole, not both.
  const std::string pair = regions({"a1 sin x a", "b1 cos a1 b", "b2 exp y b", "a2 neg b2 a"}, "b1 a2");
  EXPECT_TRUE(pair == "b(b2) a(a1 a2) b(b1)" || pair == "a(a1) b(b1 b2) a(a2)") << pair;
  // The same whatever the order of nodes.
  const auto cut_in_order = [&](const Nodes &nodes) {
    return groups(cut(test::graph_of(graph_of_nodes(nodes, "b1 a2")), mode(Mode::marked)));
  };
  EXPECT_EQ(cut_in_order({"a1 sin x a", "b1 cos a1 b", "b2 exp y b", "a2 neg b2 a"}),
            cut_in_order({"b2 exp y b", "a2 neg b2 a", "a1 sin x a", "b1 cos a1 b"}));
  const PartitionSummary triple =
      cut(test::graph_of(graph_of_nodes(
              {"a1 sin x a", "b1 cos a1 b", "b2 exp y b", "c1 neg b2 c", "c2 tanh x c", "a2 abs c2 a"}, "b1 c1 a2")),
          mode(Mode::marked));
  EXPECT_EQ(triple.parts.size(), 4u);  // one of three is split
}

TEST(Modes, AllTakesMarksForNothingAndNoneCompilesNothingTogether) {
  const Nodes nodes = {"a sin x m", "b cos a n", "c tanh b"};
  EXPECT_FALSE(summarize({}, mode(Mode::all)));
  EXPECT_EQ(regions(nodes, "c", Mode::none), "");
  const PartitionSummary none = cut(test::graph_of(graph_of_nodes(nodes, "c")), mode(Mode::none));
  ASSERT_EQ(none.fallbacks.size(), 3u);
  EXPECT_EQ(none.fallbacks[0].why, "mode");
}

TEST(Modes, ExceptFallbackCompilesWhatIsNotMarkedToFallBack) {
  const Nodes nodes = {"a sin x", "b cos a", "c tanh b !", "d exp c m", "e neg d"};
  const PartitionSummary summary = cut(test::graph_of(graph_of_nodes(nodes, "e")), mode(Mode::except_fallback));
  EXPECT_EQ(regions(summary), "(a b) m(d) (e)");
  ASSERT_EQ(summary.fallbacks.size(), 1u);
  EXPECT_EQ(summary.fallbacks[0].node, "c");
  EXPECT_EQ(summary.fallbacks[0].op, "tanh");
  EXPECT_EQ(summary.fallbacks[0].by, "kernel");
  EXPECT_EQ(summary.fallbacks[0].why, "marked");
}

TEST(Modes, EachPhaseHasItsMode) {
  const GraphPtr graph = test::graph_of(test::f32_graph("x", "4", R"(
      {"name":"a","op":"sin","inputs":["x"],"annotations":{"kiln.region":{"text":"m"}}},
      {"name":"b","op":"cos","inputs":["a"],"annotations":{"kiln.phase":{"text":"backward"}}},
      {"name":"c","op":"exp","inputs":["b"],
       "annotations":{"kiln.phase":{"text":"recompute"},"kiln.region":{"text":"m"}}})",
                                                        "c"));
  EXPECT_EQ(regions(cut(graph, {Mode::marked, Mode::none})), "m(a)");
  EXPECT_EQ(regions(cut(graph, {Mode::none, Mode::except_fallback})), "(b) m(c)");
  EXPECT_EQ(regions(cut(graph, {Mode::all, Mode::marked})), "(a) m(c)");
  EXPECT_EQ(cut(graph, {Mode::all, Mode::marked}).mode, "all, backward marked");
}

TEST(Modes, ASplitSaysWhy) {
  const auto split = [](const Nodes &nodes, const std::string &outputs) {
    const PartitionSummary summary = cut(test::graph_of(graph_of_nodes(nodes, outputs)), mode(Mode::marked));
    return join(summary.splits, "; ", [](const PartitionSummary::Split &s) {
      return str_cat(s.region, " before ", s.node, ": ", s.why, " ", s.with);
    });
  };
  EXPECT_EQ(split({"a sin x m", "b cos a", "c exp b m"}, "c"), "m before c: unmarked b");
  EXPECT_EQ(split({"a sin x m", "b cos a n", "c exp b m"}, "c"), "m before c: name b");
  const std::string cycle = split({"a1 sin x a", "b1 cos a1 b", "b2 exp y b", "a2 neg b2 a"}, "b1 a2");
  EXPECT_NE(cycle.find(": cycle "), cycle.npos) << cycle;
}

constexpr std::string_view block = R"("graphs":{"f":{"inputs":[{"name":"u","type":{"dtype":"f32","shape":["k"]}}],
    "nodes":[{"name":"p","op":"sin","inputs":["u"]},{"name":"q","op":"softmax","inputs":["p"],"attrs":{"dim":0}}],
    "outputs":[{"name":"q","value":"q"}]}})";

GraphPtr graph_of_calls(const std::string &nodes, const std::string &output) {
  std::string json = test::f32_graph("x", R"("n")", nodes, output);
  json.insert(json.rfind('}'), str_cat(",", block));
  return test::graph_of(json);
}
std::string call(const std::string &name, const std::string &operand, const std::string &region) {
  return str_cat(R"({"name":")", name, R"(","op":"call","inputs":[")", operand, R"("],"attrs":{"graph":"f"})",
                 region.empty() ? "" : str_cat(R"(,"annotations":{"kiln.region":{"text":")", region, R"("}})"), "}");
}

TEST(Modes, AMarkedCallIsARegionAndAnotherIsInlined) {
  const PartitionSummary summary =
      cut(graph_of_calls(str_cat(call("a", "x", "m"), ",", call("b", "a", "")), "b"), mode(Mode::marked));
  EXPECT_EQ(regions(summary), "m(a)");
  ASSERT_EQ(summary.fallbacks.size(), 2u);
  EXPECT_EQ(summary.fallbacks[0].node, "b.p");
  EXPECT_EQ(summary.fallbacks[1].op, "softmax");  // never decomposed
}

TEST(Modes, EqualRegionsAreLoweredOnceWhateverTheyAreCalled) {
  Result<LoweredGraphs> lowered = lower_graphs(
      graph_of_calls(str_cat(call("a", "x", "m"), ",", call("b", "a", "n"), ",", call("c", "b", "m")), "c"),
      builtin_ops(), {.backend = cpu_backend, .modes = mode(Mode::marked)});
  ASSERT_TRUE(lowered.ok()) << lowered.status().message();
  EXPECT_EQ(lowered->graphs.size(), 2u);  // the whole, and the call's
  const std::optional<PartitionSummary> summary = summarize(*lowered, mode(Mode::marked));
  ASSERT_EQ(summary->parts.size(), 3u);
  EXPECT_FALSE(summary->parts[0].same_as);
  EXPECT_EQ(summary->parts[1].same_as, 0u);
  EXPECT_EQ(summary->parts[2].same_as, 0u);
  ASSERT_EQ(summary->splits.size(), 1u);  // of m
  EXPECT_EQ(summary->splits[0].why, "call");
}

TEST(Modes, MarkedWithoutAMarkIsAWarning) {
  const auto warnings = [](const Nodes &nodes) {
    return cut(test::graph_of(graph_of_nodes(nodes, "a")), mode(Mode::marked)).warnings.size();
  };
  EXPECT_EQ(warnings({"a sin x"}), 1u);
  EXPECT_EQ(warnings({"a sin x m"}), 0u);
}

TEST(Modes, GraphsOfControlNodesAreCutByTheirOwnMarks) {
  std::string json =
      test::f32_graph("x", "4", R"({"name":"p","op":"full","inputs":[],"attrs":{"value":1,"dtype":"bool","shape":[]}},
      {"name":"c","op":"cond","inputs":["p","x"],"attrs":{"then_graph":"f","else_graph":"g"}})",
                      "c");
  json.insert(json.rfind('}'), R"(,"graphs":{
      "f":{"inputs":[{"name":"u","type":{"dtype":"f32","shape":[4]}}],
           "nodes":[{"name":"r","op":"exp","inputs":["u"],"annotations":{"kiln.region":{"text":"m"}}},
                    {"name":"s","op":"sin","inputs":["r"]}],"outputs":[{"name":"s","value":"s"}]},
      "g":{"inputs":[{"name":"u","type":{"dtype":"f32","shape":[4]}}],
           "nodes":[{"name":"r","op":"neg","inputs":["u"]}],"outputs":[{"name":"r","value":"r"}]}})");
  const PartitionSummary summary = cut(test::graph_of(json), mode(Mode::marked));
  EXPECT_EQ(regions(summary), "m(c.then_graph.r)");
  ASSERT_EQ(summary.fallbacks.size(), 4u);
  EXPECT_EQ(summary.fallbacks[1].node, "c");
  EXPECT_EQ(summary.fallbacks[1].by, "steps");
}

// "b by reference for unsupported", ...
std::string fallbacks(const PartitionSummary &summary) {
  return join(summary.fallbacks, ", ", [](const PartitionSummary::Fallback &fallback) {
    return str_cat(fallback.node, " by ", fallback.by, " for ", fallback.why);
  });
}
const Nodes with_one_kept = {"a sin x m", "b softmax a m+keep", "c exp b m"};

TEST(Modes, ANodeThatTheBackendRefusesSplitsItsRegionAndItsReferenceKernelRunsIt) {
  const PartitionSummary summary = cut(test::graph_of(graph_of_nodes(with_one_kept, "c")), mode(Mode::marked));
  EXPECT_EQ(regions(summary), "m(a) m(c)");
  EXPECT_EQ(fallbacks(summary), "b by reference for unsupported");
  EXPECT_EQ(summary.fallbacks[0].reason,
            "it is marked to be kept whole, and there is code for its decomposition alone");
  ASSERT_EQ(summary.splits.size(), 1u);
  EXPECT_EQ(summary.splits[0].why, "unsupported");
  EXPECT_EQ(summary.splits[0].with, "b");
  EXPECT_EQ(summary.splits[0].op, "softmax");
  EXPECT_EQ(summary.splits[0].reason, summary.fallbacks[0].reason);
}

TEST(Modes, ARefusedNodeIsCutOutInEveryMode) {
  const GraphPtr graph = test::graph_of(graph_of_nodes(with_one_kept, "c"));
  EXPECT_EQ(regions(cut(graph, mode(Mode::all))), "(a) (c)");
  EXPECT_EQ(cut(graph, mode(Mode::all)).splits.size(), 1u);
  EXPECT_EQ(regions(cut(graph, mode(Mode::except_fallback))), "m(a) m(c)");
  EXPECT_EQ(fallbacks(cut(graph, mode(Mode::none))),
            "a by kernel for mode, b by reference for mode, c by kernel for mode");
  EXPECT_NE(cut(graph, mode(Mode::none)).fallbacks[1].reason, "");
}

TEST(Modes, AMarkedCallWithARefusedNodeIsInlinedAndItsMarksAreHandedDown) {
  const auto summary_of = [](const std::string &annotations, Mode both) {
    std::string json = test::f32_graph(
        "x", "4",
        str_cat(R"({"name":"a","op":"call","inputs":["x"],"attrs":{"graph":"f"},"annotations":{)", annotations, "}}"),
        "a");
    json.insert(json.rfind('}'), R"(,"graphs":{"f":{"inputs":[{"name":"u","type":{"dtype":"f32","shape":[4]}}],
        "nodes":[{"name":"p","op":"exp","inputs":["u"]},{"name":"q","op":"softmax","inputs":["p"]}],
        "outputs":[{"name":"q","value":"q"}]}})");
    return cut(test::graph_of(json), mode(both));
  };
  const std::string keep = R"("kiln.decompose":{"text":"keep"})", region = R"("kiln.region":{"text":"m"})";
  EXPECT_EQ(regions(summary_of(region, Mode::marked)), "m(a)");
  for (const auto &[annotations, both, whole] :
       {std::tuple(keep + "," + region, Mode::marked, "m(a.p)"), std::tuple(keep, Mode::all, "(a.p)")}) {
    EXPECT_EQ(regions(summary_of(annotations, both)), whole);
    EXPECT_EQ(fallbacks(summary_of(annotations, both)), "a.q by reference for unsupported");
  }
}

TEST(Modes, ANodeIsRefusedByItsTypes) {
  std::string json = test::f32_graph("x", "4", R"({"name":"a","op":"sin","inputs":["x"]},
      {"name":"b","op":"convert","inputs":["a"],"attrs":{"dtype":"bf16"}},
      {"name":"c","op":"convert","inputs":["b"],"attrs":{"dtype":"f32"}})",
                                     "c");
  const GraphPtr graph = test::graph_of(json);
  EXPECT_EQ(fallbacks(cut(graph, mode(Mode::all), skeleton_backend)), "b by reference for unsupported");
  EXPECT_EQ(regions(cut(graph, mode(Mode::all), skeleton_backend)), "(a) (c)");
  EXPECT_TRUE(cut(graph, mode(Mode::all)).fallbacks.empty()) << "of another backend";
}

TEST(Modes, WhereFallbackIsAnErrorARefusedNodeOfARegionIsOneWithOpAndReason) {
  Modes modes = mode(Mode::marked);
  modes.fallback = Fallback::error;
  const auto error_of = [&](const Nodes &nodes) {
    return lower_graphs(test::graph_of(graph_of_nodes(nodes, "c")), builtin_ops(),
                        {.backend = cpu_backend, .modes = modes})
        .status()
        .message();
  };
  EXPECT_EQ(
      error_of(with_one_kept),
      "node 'b' [softmax]: backend cpu does not take it: it is marked to be kept whole, and there is code for its "
      "decomposition alone; option 'fallback' is 'error'");
  EXPECT_EQ(error_of({"a sin x m", "b softmax a +keep", "c exp b m"}), "") << "no mode wants it compiled";
}

TEST(Modes, OpsThatHaveCodeOfTheirOwnAreTakenWhole) {
  EXPECT_EQ(regions({"a sin x m+keep", "b exp a m"}, "b"), "m(a b)");
  EXPECT_EQ(regions({"a softmax x m+always", "b exp a m"}, "b"), "m(a b)");
}

TEST(Modes, WhatCarriesAGraphWithARefusedNodeIsASteppingNodeWhoseGraphIsCut) {
  std::string json =
      test::f32_graph("x", "4", R"({"name":"p","op":"full","inputs":[],"attrs":{"value":1,"dtype":"bool","shape":[]}},
      {"name":"a","op":"sin","inputs":["x"]},
      {"name":"c","op":"cond","inputs":["p","a"],"attrs":{"then_graph":"f","else_graph":"g"}},
      {"name":"d","op":"call","inputs":["c"],"attrs":{"graph":"f"}})",
                      "d");
  json.insert(json.rfind('}'), R"(,"graphs":{
      "f":{"inputs":[{"name":"u","type":{"dtype":"f32","shape":[4]}}],
           "nodes":[{"name":"r","op":"exp","inputs":["u"]},
                    {"name":"s","op":"softmax","inputs":["r"],"annotations":{"kiln.decompose":{"text":"keep"}}}],
           "outputs":[{"name":"s","value":"s"}]},
      "g":{"inputs":[{"name":"u","type":{"dtype":"f32","shape":[4]}}],
           "nodes":[{"name":"r","op":"neg","inputs":["u"]}],"outputs":[{"name":"r","value":"r"}]}})");
  const PartitionSummary summary = cut(test::graph_of(json), mode(Mode::all));
  EXPECT_EQ(
      fallbacks(summary),
      "c by steps for unsupported, c.then_graph.s by reference for unsupported, d.s by reference for unsupported");
  EXPECT_EQ(
      summary.fallbacks[0].reason,
      "in its then_graph, node 's' [softmax]: it is marked to be kept whole, and there is code for its decomposition "
      "alone");
}

}  // namespace
}  // namespace kiln
