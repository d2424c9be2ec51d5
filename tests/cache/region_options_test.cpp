// Options of one region: by annotations of its nodes, and by options of the compile that name it.
#include <bit>

#include "runtime/report/compile_report.h"
#include "tests/cache/compiling.h"

namespace kiln {
namespace {

using test::f32_graph;

// x -> a -> b in region r, then c in none, then d -> e in region r again. `marks` are further annotations, by node.
std::string chain(std::map<std::string, std::string> marks = {}) {
  const auto node = [&](const std::string &name, const std::string &op, const std::string &input, bool marked) {
    const std::string more = marks.contains(name) ? marks[name] : "";
    return str_cat(R"({"name":")", name, R"(","op":")", op, R"(","inputs":[")", input, R"("],"annotations":{)",
                   marked ? R"("kiln.region":{"text":"r"})" : "", marked && !more.empty() ? "," : "", more, "}}");
  };
  return f32_graph(
      "x", R"("n")",
      str_cat(node("a", "sin", "x", true), ",", node("b", "exp", "a", true), ",", node("c", "neg", "b", false), ",",
              node("d", "cos", "c", true), ",", node("e", "tanh", "d", true)),
      "e");
}
constexpr std::string_view unfused = R"("kiln.region.fuse":{"bool":false})";
constexpr std::string_view fused = R"("kiln.region.fuse":{"bool":true})";
constexpr std::string_view backward = R"("kiln.phase":{"text":"backward"})";

class RegionOptionsTest : public test::Compiling {
 protected:
  CompileOptions options(NamedRegionOptions named = {}) const {
    CompileOptions out{.mode = Mode::marked};
    out.of_regions = std::move(named);
    return out;
  }
  // "fuse=false 2, 2": options and kernels of each region, or the error.
  std::string regions(const std::string &graph, const CompileOptions &how) {
    Result<Compiled> compiled = compile(graph, how);
    if (!compiled.ok()) return compiled.status().message();
    return join(report_.partition->parts, ", ", [](const PartitionSummary::Part &part) {
      return str_cat(join(part.options, " ", [](const std::string &text) { return text; }),
                     part.options.empty() ? "" : " ", part.kernels);
    });
  }
};

TEST_F(RegionOptionsTest, AMarkOnOneNodeIsForItsWholeRegion) {
  EXPECT_EQ(regions(chain(), options()), "1, 1");
  EXPECT_EQ(regions(chain({{"d", std::string(unfused)}}), options()), "fuse=false 2, fuse=false 2");
  CompileOptions none_fused = options();
  none_fused.fuse = false;
  EXPECT_EQ(regions(chain({{"d", std::string(fused)}}), none_fused), "fuse=true 1, fuse=true 1");
}

TEST_F(RegionOptionsTest, WhatTheCompileSaysOfARegionWinsOverItsMarks) {
  EXPECT_EQ(regions(chain(), options({{"region.r.fuse", false}})), "fuse=false 2, fuse=false 2");
  EXPECT_EQ(regions(chain({{"a", std::string(unfused)}}), options({{"region.r.fuse", true}})), "1, 1");
  EXPECT_EQ(
      regions(chain({{"a", std::string(unfused)}, {"b", std::string(fused)}}), options({{"region.r.fuse", true}})),
      "1, 1");
}

TEST_F(RegionOptionsTest, PhasesMayDifferAndAreThenCompiledApart) {
  // e and, but for the phase, what it could be fused with.
  const std::string graph = chain({{"e", std::string(backward)}});
  EXPECT_EQ(regions(graph, options()), "1, 1");
  EXPECT_EQ(regions(graph, options({{"region.r.backward.fuse", false}})), "1, 1, fuse=false 1");
  ASSERT_EQ(report_.partition->splits.size(), 2u);
  EXPECT_EQ(report_.partition->splits[1].why, "options");
  EXPECT_EQ(report_.partition->splits[1].node, "e");
  EXPECT_EQ(regions(graph, options({{"region.r.fuse", false}, {"region.r.forward.fuse", true}})), "1, 1, fuse=false 1");
  EXPECT_EQ(regions(chain({{"a", std::string(unfused)}, {"e", str_cat(backward, ",", fused)}}), options()),
            "fuse=false 2, fuse=false 1, 1");
}

TEST_F(RegionOptionsTest, TwoNodesThatDifferAreAnErrorThatNamesBoth) {
  EXPECT_EQ(
      regions(chain({{"a", std::string(unfused)}, {"d", std::string(fused)}}), options()),
      "region 'r': annotation 'kiln.region.fuse' is false on node 'a' and true on node 'd'; the nodes of a region "
      "and phase have one value");
}

TEST_F(RegionOptionsTest, ARegionThatThereIsNotIsAnErrorThatNamesThoseThereAre) {
  EXPECT_EQ(regions(chain(), options({{"region.q.fuse", false}})),
            "option 'region.q.fuse': no node is marked for region 'q'; there are 'r'");
  CompileOptions all = options({{"region.r.fuse", false}});
  all.mode = Mode::all;
  EXPECT_EQ(
      regions(chain(), all),
      "option 'region.r.fuse': under mode 'all' there are no regions; expected mode 'marked' or 'except_fallback'");
  CompileOptions forward_whole = options({{"region.r.forward.fuse", false}});
  forward_whole.mode_forward = Mode::all;
  EXPECT_EQ(
      regions(chain(), forward_whole),
      "option 'region.r.forward.fuse': under mode 'all' there are no regions of that phase; expected mode 'marked' "
      "or 'except_fallback'");
}

TEST_F(RegionOptionsTest, AreInTheKey) {
  expect(Outcome::miss, "no record", chain(), options());
  expect(Outcome::miss, "component 'options'", chain(), options({{"region.r.fuse", false}}));
  expect(Outcome::miss, "component 'options'", chain(), options({{"region.r.fuse", true}}));
  expect(Outcome::hit, "hit", chain(), options({{"region.r.fuse", false}}));
}

TEST_F(RegionOptionsTest, EqualRegionsThatDifferInThemAreCompiledApart) {
  const auto node = [](const std::string &name, const std::string &op, const std::string &input,
                       const std::string &region) {
    return str_cat(R"({"name":")", name, R"(","op":")", op, R"(","inputs":[")", input,
                   R"("],"annotations":{"kiln.region":{"text":")", region, "\"}}}");
  };
  const std::string graph = f32_graph("x", R"("n")",
                                      str_cat(node("a", "sin", "x", "p"), ",", node("b", "exp", "a", "p"), ",",
                                              node("c", "sin", "b", "q"), ",", node("d", "exp", "c", "q")),
                                      "d");
  EXPECT_EQ(regions(graph, options()), "1, 1");
  EXPECT_EQ(report_.partition->parts[1].same_as, 0u);
  EXPECT_EQ(regions(graph, options({{"region.q.fuse", false}})), "1, fuse=false 2");
  EXPECT_FALSE(report_.partition->parts[1].same_as);
}

TEST_F(RegionOptionsTest, AGraphThatTwoRegionsCarryIsCompiledForEach) {
  const std::string graph =
      R"({"kiln":1,"inputs":[{"name":"p","type":{"dtype":"bool","shape":[]}},{"name":"x","type":{"dtype":"f32","shape":["n"]}}],
      "graphs":{"f":{"inputs":[{"name":"v","type":{"dtype":"f32","shape":["n"]}}],
                     "nodes":[{"name":"s","op":"sin","inputs":["v"]},{"name":"e","op":"exp","inputs":["s"]}],
                     "outputs":[{"name":"r","value":"e"}]}},
      "nodes":[{"name":"a","op":"cond","inputs":["p","x"],"attrs":{"then_graph":"f","else_graph":"f"},
                "annotations":{"kiln.region":{"text":"q"}}},
               {"name":"b","op":"cond","inputs":["p","a"],"attrs":{"then_graph":"f","else_graph":"f"},
                "annotations":{"kiln.region":{"text":"r"},"kiln.region.fuse":{"bool":false}}}],
      "outputs":[{"name":"b","value":"b"}]})";
  EXPECT_EQ(regions(graph, options()), "1, fuse=false 2");
  EXPECT_EQ(regions(graph, options({{"region.r.fuse", true}})), "1, 1");
}

TEST_F(RegionOptionsTest, OfACallWithoutARegionTheyAreForTheRegionsInItsGraph) {
  const std::string graph =
      R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":"f32","shape":["n"]}}],
      "graphs":{"f":{"inputs":[{"name":"v","type":{"dtype":"f32","shape":["n"]}}],
                     "nodes":[{"name":"s","op":"sin","inputs":["v"],"annotations":{"kiln.region":{"text":"q"}}},
                              {"name":"e","op":"exp","inputs":["s"],"annotations":{"kiln.region":{"text":"q"}}}],
                     "outputs":[{"name":"r","value":"e"}]}},
      "nodes":[{"name":"a","op":"call","inputs":["x"],"attrs":{"graph":"f"},
                "annotations":{"kiln.region.fuse":{"bool":false}}}],
      "outputs":[{"name":"b","value":"a"}]})";
  EXPECT_EQ(regions(graph, options()), "fuse=false 2");
}

// A square in bf16 less what it is rounded to: zero where it is rounded, and what rounding takes away where it is not.
TEST_F(RegionOptionsTest, RoundingMayBeRelaxedInOneRegionAlone) {
  const std::string graph =
      R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":"bf16","shape":[1]}},{"name":"y","type":{"dtype":"bf16","shape":[1]}}],
      "nodes":[{"name":"s","op":"mul","inputs":["x","x"],"annotations":{"kiln.region":{"text":"r"}}},
               {"name":"d","op":"sub","inputs":["s","y"],"annotations":{"kiln.region":{"text":"r"}}}],
      "outputs":[{"name":"d","value":"d"}]})";
  const auto difference = [&](const CompileOptions &how) {
    Result<Compiled> compiled = compile(graph, how);
    EXPECT_TRUE(compiled.ok()) << compiled.status().message();
    if (!compiled.ok()) return -1.0f;
    Result<std::unique_ptr<Call>> call = Call::create(compiled->executable);
    const auto bits = [](float value) { return static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16); };
    uint16_t x = bits(1.0078125f), y = bits(1.015625f), d = 1;  // x * x = 1.01568603515625
    const int64_t size = 1;
    const std::vector<ArrayRef> args = {{&x, DType::bf16, 1, &size, nullptr},
                                        {&y, DType::bf16, 1, &size, nullptr},
                                        {&d, DType::bf16, 1, &size, nullptr}};
    EXPECT_TRUE((*call)->run(args).ok());
    return std::bit_cast<float>(static_cast<uint32_t>(d) << 16);
  };
  EXPECT_EQ(difference(options()), 0);
  EXPECT_EQ(difference(options({{"region.r.rounding", "relaxed"}})), 0.00006103515625f);
}

TEST(RegionOptionNames, AreCheckedByNameAndKind) {
  EXPECT_TRUE(check_region_option("region.r.fuse", false).ok());
  EXPECT_TRUE(check_region_option("region.r.backward.rounding", "relaxed").ok());
  for (const char *name : {"region.r", "region..fuse", "region.r.fuze", "region.r.sideways.fuse", "region.r.mode"}) {
    const Status status = check_region_option(name, true);
    EXPECT_EQ(status.code(), Code::unknown_name) << name;
    EXPECT_NE(status.message().find(name), std::string::npos) << status.message();
  }
  EXPECT_EQ(check_region_option("region.r.fuse", "no").message(), "option 'region.r.fuse' is of kind bool, not text");
  EXPECT_EQ(check_region_option("region.r.rounding", "loose").message(),
            "option 'region.r.rounding' is 'loose', expected one of strict, relaxed");
}

}  // namespace
}  // namespace kiln
