// Patterns that are refused: what is wrong, and where.
#include "tests/unit/runtime/patterns/patterns.h"

namespace kiln {
namespace {

using test::error_of;
using test::pattern_of;

const std::string good =
    R"("captures":[{"name":"x"}],"nodes":[{"name":"n","op":"neg","inputs":["x"]}],"outputs":["n"])";

TEST(ReadPattern, TakesAGoodOne) { EXPECT_EQ(error_of(pattern_of(good)), "none"); }

TEST(ReadPattern, IsAsStrictAsGraphsAre) {
  EXPECT_NE(error_of(pattern_of(good) + " x").find("expected"), std::string::npos);
  EXPECT_NE(error_of(R"({"kiln":1,"kiln":1})").find("kiln"), std::string::npos);
  EXPECT_EQ(error_of("[1]"), "at the top: expected an object, found a list");
  EXPECT_EQ(error_of(R"({"kiln":2,"pattern":"p"})"), "kiln: schema version 2; this build reads version 1");
  EXPECT_EQ(error_of(R"({"kiln":1})"), "at the top: member 'pattern' is missing");
  EXPECT_NE(error_of(pattern_of(good + R"(,"patern":1)")).find("unknown member 'patern'"), std::string::npos);
  EXPECT_NE(error_of(std::string(100, '[')), "none") << "deep";
  EXPECT_EQ(error_of(R"({"kiln":1,"pattern":"p","outputs":[]})"),
            "outputs: a pattern has an output, which its replacement takes the place of");
}

TEST(ReadPattern, NamesWhatOpsDoNotHave) {
  EXPECT_EQ(error_of(pattern_of(R"("nodes":[{"name":"n","op":"neq","inputs":["_"]}],"outputs":["n"])")).substr(0, 35),
            "nodes[0].op: unknown op 'neq'; did ");
  EXPECT_EQ(
      error_of(pattern_of(R"("nodes":[{"name":"n","op":"neg","inputs":["_"],"attrs":{"dim":1}}],"outputs":["n"])")),
      "nodes[0].attrs.dim: op 'neg' has no attribute 'dim'; it has none");
  EXPECT_NE(error_of(pattern_of(R"("nodes":[{"name":"n","op":"copy_","inputs":["_","_"]}],"outputs":["n"])"))
                .find("op 'copy_' does more than make its results"),
            std::string::npos);
  EXPECT_NE(error_of(pattern_of(R"("nodes":[{"name":"n","op":"reshape","inputs":["_"]}],"outputs":["n"])"))
                .find("attribute 'shape' of op 'reshape' has no default"),
            std::string::npos);
}

TEST(ReadPattern, HasNoCycleAndNoLooseEnd) {
  EXPECT_EQ(error_of(pattern_of(R"("nodes":[{"name":"a","op":"neg","inputs":["b"]},
    {"name":"b","op":"neg","inputs":["a"]}],"outputs":["b"])")),
            "nodes[0].inputs[0]: no capture, and no node before this one, is named 'b'; a node uses earlier ones only, "
            "so there can be no cycle");
  EXPECT_EQ(error_of(pattern_of(R"("captures":[{"name":"y"},{"name":"x"}],
    "nodes":[{"name":"n","op":"neg","inputs":["x"]}],"outputs":["n"])")),
            "at the top: nothing leads to 'y' from output 'n': no node uses it, or shares a value with what does");
  EXPECT_NE(error_of(pattern_of(R"("captures":[{"name":"x"},{"name":"y"}],"nodes":[
    {"name":"a","op":"neg","inputs":["x"]},{"name":"b","op":"neg","inputs":["y"]}],"outputs":["a","b"])"))
                .find("nothing leads to 'y'"),
            std::string::npos);
  EXPECT_EQ(error_of(pattern_of(R"("captures":[{"name":"x"},{"name":"x"}],"outputs":["x"])")),
            "captures[1].name: 'x' is the name of another capture or node");
  EXPECT_EQ(error_of(pattern_of(R"("captures":[{"name":"x"}],"outputs":["x"])")),
            "outputs[0]: an output is of a node that is always there");
}

TEST(ReadPattern, IsBounded) {
  std::string nodes = R"({"name":"n0","op":"neg","inputs":["_"]})";
  for (int i = 1; i < 1000; ++i) nodes += str_cat(R"(,{"name":"n)", i, R"(","op":"neg","inputs":["n)", i - 1, "\"]}");
  EXPECT_NE(error_of(pattern_of(str_cat("\"nodes\":[", nodes, R"(],"outputs":["n999"])")))
                .find("a pattern has 256 captures and nodes at most"),
            std::string::npos);
  std::string operands = "\"_\"";
  for (int i = 1; i < 2000; ++i) operands += ",\"_\"";
  EXPECT_NE(error_of(pattern_of(str_cat(R"("nodes":[{"name":"n","op":"concat","inputs":[)", operands,
                                        R"(],"attrs":{"dim":"any"}}],"outputs":["n"])")))
                .find("1024 operands at most"),
            std::string::npos);
}

TEST(ReadPattern, RefusesOperandsThatNoNodeHas) {
  const auto error = [](std::string_view op, std::string_view inputs) {
    return error_of(pattern_of(str_cat(R"("captures":[{"name":"x"}],"nodes":[{"name":"n","op":")", op,
                                       R"(","inputs":[)", inputs, R"(]}],"outputs":["n"])")));
  };
  EXPECT_EQ(error("neg", R"("x","x")"), "nodes[0]: op 'neg' never has 2 operands");
  EXPECT_EQ(error("add", R"("x")"), "nodes[0]: op 'add' never has 1 operands");
}

TEST(ReadPattern, SaysWhatAReplacementLacks) {
  const auto error = [](std::string_view replacement) {
    return error_of(pattern_of(str_cat(good, ",\"replacement\":", replacement)));
  };
  EXPECT_EQ(error(R"({"outputs":[]})"), "replacement.outputs: 0 outputs, and the pattern has 1");
  EXPECT_EQ(error(R"({"outputs":["z"]})"),
            "replacement.outputs[0]: no capture or node of the pattern, and no earlier node here, is named 'z'");
  EXPECT_EQ(error(R"({"nodes":[{"name":"m","op":"reshape","inputs":["x"],"attrs":{"shape":["d"]}}],"outputs":["m"]})"),
            "replacement.nodes[0].attrs.shape: no shape of the pattern names a size 'd'");
  EXPECT_EQ(error(R"({"nodes":[{"name":"m","op":"full","attrs":{"shape":[],"value":{"number":"x"},"dtype":"f32"}}],
                     "outputs":["m"]})"),
            "replacement.nodes[0].attrs.value.number: 'x' is no capture with 'number'");
  EXPECT_EQ(error(R"({"nodes":[{"name":"m","op":"neg","inputs":["x"],"when":"q"}],"outputs":["m"]})"),
            "replacement.nodes[0].when: no capture or node of the pattern is named 'q'");
}

}  // namespace
}  // namespace kiln
