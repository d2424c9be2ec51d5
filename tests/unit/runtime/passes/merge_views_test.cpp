#include "tests/unit/runtime/passes/cleaned.h"

namespace kiln {
namespace {

using test::cleaned;
using test::Cleaned;

Cleaned merged_views(std::string_view nodes, std::string_view dims = "6, 4, 10", std::string_view outputs = "y") {
  return cleaned(merge_views_pass, test::f32_graph("x", dims, nodes, outputs));
}
std::string attr(const Cleaned &made, std::string_view name) { return made.made().attrs.find(name)->second.text(); }

TEST(MergeViews, MergesPermutes) {
  const Cleaned made = merged_views(R"({"name":"a","op":"permute","inputs":["x"],"attrs":{"dims":[1,2,0]}},
      {"name":"y","op":"permute","inputs":["a"],"attrs":{"dims":[0,-1,1]}})");
  EXPECT_EQ(made.rewrites, 1u);
  EXPECT_EQ(made.made().name, "y");
  EXPECT_EQ(made.read(), "x");
  EXPECT_EQ(attr(made, "dims"), "[1, 0, 2]");
}

TEST(MergeViews, ViewsThatUndoEachOtherAreNone) {
  constexpr std::string_view back_and_forth = R"({"name":"a","op":"permute","inputs":["x"],"attrs":{"dims":[1,2,0]}},
      {"name":"b","op":"permute","inputs":["a"],"attrs":{"dims":[2,0,1]}})";
  const Cleaned inner = merged_views(str_cat(back_and_forth, R"(,{"name":"y","op":"exp","inputs":["b"]})"));
  EXPECT_EQ(inner.rewrites, 1u);
  EXPECT_EQ(inner.read(), "x");
  EXPECT_EQ(merged_views(back_and_forth, "6, 4, 10", "b").rewrites, 0u) << "an output is no input";
}

TEST(MergeViews, MergesWhatKeepsTheOrderOfElements) {
  const Cleaned made = merged_views(R"({"name":"a","op":"reshape","inputs":["x"],"attrs":{"shape":[24,10]}},
      {"name":"b","op":"unsqueeze","inputs":["a"],"attrs":{"dims":[0]}},
      {"name":"y","op":"reshape","inputs":["b"],"attrs":{"shape":[240]}})");
  EXPECT_EQ(made.rewrites, 2u);
  EXPECT_EQ(made.graph->nodes().size(), 2u);
  EXPECT_EQ(made.read(), "x");
}

TEST(MergeViews, MergesReshapesWithSymbolsWhereCountsAreKnownToBeEqual) {
  const Cleaned made = merged_views(R"({"name":"a","op":"reshape","inputs":["x"],"attrs":{"shape":["4*n"]}},
      {"name":"y","op":"reshape","inputs":["a"],"attrs":{"shape":[2,"2*n"]}})",
                                    "\"n\", 4");
  EXPECT_EQ(made.rewrites, 1u);
  const Cleaned checked = merged_views(R"({"name":"a","op":"reshape","inputs":["x"],"attrs":{"shape":["m"]}},
      {"name":"y","op":"reshape","inputs":["a"],"attrs":{"shape":["n"]}})",
                                       "\"n\", \"m\", \"n\"");
  EXPECT_EQ(checked.rewrites, 0u) << "a call checks sizes for it";
}

TEST(MergeViews, MergesSlicesOfOneDim) {
  const Cleaned made =
      merged_views(R"({"name":"a","op":"slice","inputs":["x"],"attrs":{"dim":2,"start":1,"end":10,"step":2}},
      {"name":"y","op":"slice","inputs":["a"],"attrs":{"dim":-1,"start":-4,"end":5,"step":3}})");
  EXPECT_EQ(made.rewrites, 1u);
  EXPECT_EQ(attr(made, "start") + " " + attr(made, "end") + " " + attr(made, "step"), "3 10 6");
}

TEST(MergeViews, KeepsSlicesOfSeveralDimsAndThoseThatGoBackwards) {
  EXPECT_EQ(merged_views(R"({"name":"a","op":"slice","inputs":["x"],"attrs":{"dim":0,"end":3}},
      {"name":"y","op":"slice","inputs":["a"],"attrs":{"dim":1,"end":3}})")
                .rewrites,
            0u);
  EXPECT_EQ(merged_views(R"({"name":"a","op":"slice","inputs":["x"],"attrs":{"dim":0,"start":-1,"end":-7,"step":-1}},
      {"name":"y","op":"slice","inputs":["a"],"attrs":{"dim":0,"end":3}})")
                .rewrites,
            0u);
}

TEST(MergeViews, MergesExpands) {
  const Cleaned made = merged_views(R"({"name":"a","op":"expand","inputs":["x"],"attrs":{"shape":[3,4]}},
      {"name":"y","op":"expand","inputs":["a"],"attrs":{"shape":[2,3,4]}})",
                                    "1, 4");
  EXPECT_EQ(made.rewrites, 1u);
  EXPECT_EQ(made.read(), "x");
}

TEST(MergeViews, LeavesMarkedViewsInTheirRegions) {
  const auto marked = [](std::string_view first, std::string_view then) {
    return merged_views(str_cat(
        R"({"name":"a","op":"permute","inputs":["x"],"attrs":{"dims":[1,2,0]},"annotations":{)", first,
        R"(}},{"name":"y","op":"permute","inputs":["a"],"attrs":{"dims":[1,2,0]},"annotations":{)", then, "}}"));
  };
  constexpr std::string_view r = R"("kiln.region":{"text":"r"})", s = R"("kiln.region":{"text":"s"})";
  EXPECT_EQ(marked(r, s).rewrites, 0u);
  const Cleaned both = marked(r, r);
  EXPECT_EQ(both.rewrites, 1u);
  EXPECT_EQ(both.made().annotations.at("kiln.region"), AttrValue("r"));
}

}  // namespace
}  // namespace kiln
