// The patterns of docs/patterns.md, each run on a graph in which it is found.
#include <fstream>
#include <map>
#include <sstream>

#include "tests/paths.h"
#include "tests/unit/runtime/patterns/patterns.h"

namespace kiln {
namespace {

std::vector<std::string> examples() {
  std::ifstream in(test::source_dir + "/docs/patterns.md");
  const std::string page = (std::stringstream() << in.rdbuf()).str();
  std::vector<std::string> found;
  const std::string opens = "```json\n";
  for (size_t at = page.find(opens); at != page.npos; at = page.find(opens, at)) {
    at += opens.size();
    found.push_back(page.substr(at, page.find("```", at) - at));
  }
  return found;
}

struct Found {
  std::string graph, after;
};

TEST(PatternDocs, EachExampleIsFoundAndRewrites) {
  const std::string linear = R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":"f32","shape":["n",2,3]}},
    {"name":"b","type":{"dtype":"f32","shape":[4]}}],"parameters":[{"name":"w","type":{"dtype":"f32","shape":[3,4]}}],
    "nodes":[{"name":"p","op":"matmul","inputs":["x","w"]},{"name":"s","op":"add","inputs":["b","p"]},
    {"name":"y","op":"relu","inputs":["s"]}],"outputs":[{"name":"y","value":"y"},{"name":"p","value":"p"}]})";
  const std::map<std::string, Found> graphs = {
      {"silu",
       {test::f32_graph(
            "x", "2", R"({"name":"s","op":"sigmoid","inputs":["x"]},{"name":"y","op":"mul","inputs":["s","x"]})", "y"),
        "silu"}},
      {"linear", {linear, "matmul permute linear add relu"}},
      {"sum_and_difference",
       {test::f32_graph("ab", "2",
                        R"({"name":"s","op":"add","inputs":["b","a"]},{"name":"d","op":"sub","inputs":["a","b"]})",
                        "s d"),
        "neg sub add"}},
      {"no_double_neg",
       {test::f32_graph("x", "2", R"({"name":"a","op":"neg","inputs":["x"]},{"name":"b","op":"neg","inputs":["a"]},
          {"name":"c","op":"abs","inputs":["b"]})",
                        "c"),
        "abs"}}};
  const std::vector<std::string> all = examples();
  EXPECT_EQ(all.size(), graphs.size());
  for (const std::string &json : all) {
    const Result<patterns::Pattern> read = patterns::read_pattern(json, builtin_ops());
    ASSERT_TRUE(read.ok()) << read.status().message() << "\n" << json;
    const auto found = graphs.find(read->name);
    ASSERT_NE(found, graphs.end()) << read->name;
    EXPECT_EQ(test::ops_after({json}, found->second.graph), found->second.after) << read->name;
  }
}

}  // namespace
}  // namespace kiln
