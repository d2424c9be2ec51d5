#include <bit>

#include "tests/unit/runtime/passes/cleaned.h"

namespace kiln {
namespace {

using test::cleaned;
using test::Cleaned;

// y = x + k, where k is made of the constants c and d, [3] of `dtype`, and s, a scalar, by `nodes`.
Cleaned folded(std::string_view nodes, std::string_view c = "1, 2, 3", std::string_view dtype = "f32",
               std::string_view output = "y") {
  const auto constant = [&](std::string_view name, std::string_view shape, std::string_view data) {
    return str_cat(R"({"name":")", name, R"(","type":{"dtype":")", dtype, R"(","shape":[)", shape, R"(]},"data":[)",
                   data, "]}");
  };
  return cleaned(
      fold_constants_pass,
      str_cat(R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":")", dtype, R"(","shape":["n",3]}}],"constants":[)",
              constant("c", "3", c), ",", constant("d", "3", "4, 5, 6"), ",", constant("s", "", "3"), "],\"nodes\":[",
              nodes, R"(,{"name":"y","op":"add","inputs":["x","k"]}],"outputs":[{"name":"y","value":")", output,
              "\"}]}"));
}
std::vector<float> floats(const Cleaned &made, std::string_view name) {
  const Node *node = made.graph->find(name);
  if (!node || !node->constant) return {};
  std::vector<float> values(static_cast<size_t>(node->constant->element_count()));
  std::memcpy(values.data(), node->constant->bytes.data(), node->constant->bytes.size());
  return values;
}

TEST(FoldConstants, ComputesWhatIsConstantRoundedAsACallDoes) {
  const Cleaned made = folded(R"({"name":"p","op":"mul","inputs":["c","d"]},{"name":"q","op":"div","inputs":["p","s"]},
      {"name":"k","op":"neg","inputs":["q"]})");
  EXPECT_EQ(made.rewrites, 3u);
  EXPECT_EQ(floats(made, "k"), (std::vector<float>{-4.f / 3, -10.f / 3, -6.f}));
  EXPECT_EQ(made.graph->find("p"), nullptr);
}

TEST(FoldConstants, MakesOneNumberAFull) {
  const Cleaned made = folded(R"({"name":"f","op":"full","attrs":{"value":0.1,"dtype":"f32","shape":["n",3]}},
      {"name":"k","op":"mul","inputs":["f","s"]})");
  EXPECT_EQ(made.rewrites, 1u);
  const Node &k = *made.graph->find("k");
  EXPECT_EQ(k.op->name, "full");
  EXPECT_EQ(k.attrs.at("value").f64(), 0.1f * 3.f);
  EXPECT_EQ(k.results[0].dims[0].text(), "n");
}

TEST(FoldConstants, LeavesWhatBackendsRoundDifferently) {
  EXPECT_EQ(folded(R"({"name":"k","op":"exp","inputs":["c"]})").rewrites, 0u);
  EXPECT_EQ(folded(R"({"name":"k","op":"cumsum","inputs":["c"],"attrs":{"dim":0}})").rewrites, 0u);
}

TEST(FoldConstants, LeavesErrorsAndNaNsToTheCall) {
  EXPECT_EQ(folded(R"({"name":"k","op":"div","inputs":["d","c"]})", "1, 0, 3", "i32").rewrites, 0u);
  EXPECT_EQ(folded(R"({"name":"k","op":"div","inputs":["d","c"]})", "1, 2, 3", "i32").rewrites, 1u);
  EXPECT_EQ(folded(R"({"name":"z","op":"sub","inputs":["c","c"]},{"name":"k","op":"div","inputs":["z","z"]})").rewrites,
            1u)
      << "0, and not 0 / 0";
}

TEST(FoldConstants, IsBoundedByElements) {
  const auto rows = [](int n) {
    return folded(str_cat(R"({"name":"u","op":"full","attrs":{"value":1,"dtype":"f32","shape":[)", n, R"(,3]}},
        {"name":"v","op":"add","inputs":["u","c"]},{"name":"k","op":"slice","inputs":["v"],"attrs":{"dim":0,"end":1}})"))
        .rewrites;
  };
  EXPECT_EQ(rows(1000), 2u);
  EXPECT_EQ(rows(2000), 0u);
}

TEST(FoldConstants, WrapsIntegersAndKeepsLongOnes) {
  const Cleaned made =
      folded(R"({"name":"f","op":"full","attrs":{"exact":"9223372036854775806","dtype":"i64","shape":[]}},
      {"name":"k","op":"sub","inputs":["f","s"]})",
             "1, 2, 3", "i64");
  EXPECT_EQ(made.rewrites, 1u);
  EXPECT_EQ(made.graph->find("k")->attrs.at("exact").text_value(), "9223372036854775803");
}

TEST(FoldConstants, GivesNoOutputToAConstant) {
  EXPECT_EQ(folded(R"({"name":"k","op":"mul","inputs":["c","d"]})", "1, 2, 3", "f32", "k").rewrites, 0u);
  const Cleaned number = folded(R"({"name":"k","op":"mul","inputs":["s","s"]})", "1, 2, 3", "f32", "k");
  EXPECT_EQ(number.rewrites, 1u);
  EXPECT_EQ(number.made().op->name, "full");
}

TEST(FoldConstants, LeavesMarkedNodesInTheirRegions) {
  EXPECT_EQ(folded(R"({"name":"k","op":"mul","inputs":["c","d"],"annotations":{"kiln.region":{"text":"r"}}})").rewrites,
            0u);
  EXPECT_EQ(folded(R"({"name":"k","op":"mul","inputs":["c","d"],"annotations":{"debug.line":{"i64":7}}})").rewrites,
            1u);
}

}  // namespace
}  // namespace kiln
