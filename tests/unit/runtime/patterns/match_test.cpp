// What a pattern is found at, and why not.
#include "tests/unit/runtime/patterns/patterns.h"

namespace kiln {
namespace {

using test::f32_graph;
using test::graph_of;
using test::ops_after;
using test::pattern_of;
using test::why_not;

// mul(neg(x), y) becomes sub(x, y), whatever that means.
const std::string scaled = pattern_of(R"("captures":[{"name":"x"},{"name":"y"}],
  "nodes":[{"name":"n","op":"neg","inputs":["x"]},{"name":"m","op":"mul","inputs":["n","y"]}],"outputs":["m"],
  "replacement":{"nodes":[{"name":"s","op":"sub","inputs":["x","y"]}],"outputs":["s"]})");

std::string scaled_graph(std::string_view operands, std::string_view more = "", std::string_view outputs = "b") {
  return f32_graph(
      "xy", "2,3",
      str_cat(R"({"name":"a","op":"neg","inputs":["x"]},{"name":"b","op":"mul","inputs":)", operands, "}", more),
      outputs);
}

TEST(Match, OperandsOfACommutativeOpMayStandInEitherOrder) {
  EXPECT_EQ(ops_after({scaled}, scaled_graph(R"(["a","y"])")), "sub");
  EXPECT_EQ(ops_after({scaled}, scaled_graph(R"(["y","a"])")), "sub");
  std::string divided = scaled;
  divided.replace(divided.find("\"mul\""), 5, "\"div\"");
  EXPECT_EQ(ops_after({divided}, f32_graph("xy", "2", R"({"name":"a","op":"neg","inputs":["x"]},
    {"name":"b","op":"div","inputs":["y","a"]})",
                                           "b")),
            "neg div")
      << "div does not commute";
}

TEST(Match, ACaptureIsOneValueWhereverItStands) {
  const std::string square = pattern_of(R"("captures":[{"name":"x"}],"nodes":[
    {"name":"m","op":"mul","inputs":["x","x"]}],"outputs":["m"],
    "replacement":{"nodes":[{"name":"a","op":"abs","inputs":["x"]}],"outputs":["a"]})");
  EXPECT_EQ(ops_after({square}, f32_graph("xy", "2", R"({"name":"m","op":"mul","inputs":["x","x"]})", "m")), "abs");
  EXPECT_EQ(why_not(square, f32_graph("xy", "2", R"({"name":"m","op":"mul","inputs":["x","y"]})", "m")),
            "'x' is 'x' in one place and 'y' in another");
}

TEST(Match, TriesTheOtherOrderAgainWhenALaterPartFails) {
  // add(mul(x, y), x) where mul's operands are given the other way round.
  const std::string pattern = pattern_of(R"("captures":[{"name":"x"},{"name":"y"}],"nodes":[
    {"name":"m","op":"mul","inputs":["x","y"]},{"name":"a","op":"add","inputs":["m","x"]}],"outputs":["a"],
    "replacement":{"nodes":[{"name":"s","op":"sub","inputs":["x","y"]}],"outputs":["s"]})");
  const test::Rewritten made = test::rewrite(
      test::set_of({pattern}), graph_of(f32_graph("ab", "2", R"({"name":"m","op":"mul","inputs":["b","a"]},
      {"name":"s","op":"add","inputs":["a","m"]})",
                                                  "s")));
  ASSERT_EQ(made.count, 1u);
  const Node &sub = *made.graph->find(made.graph->outputs()[0].value.node);
  EXPECT_EQ(made.graph->find(sub.inputs[0].node)->name, "a");
  EXPECT_EQ(made.graph->find(sub.inputs[1].node)->name, "b");
}

TEST(Match, AnInnerValueThatIsUsedElsewhereIsRefused) {
  EXPECT_EQ(why_not(scaled, scaled_graph(R"(["a","y"])", R"(,{"name":"c","op":"abs","inputs":["a"]})", "b c")),
            "'a', which is 'n', is used by 'c', too");
  EXPECT_EQ(why_not(scaled, scaled_graph(R"(["a","y"])", "", "b a")),
            "'a', which is 'n', is an output of the graph, too");
}

TEST(Match, AnInnerValueThatMayBeUsedAnywhereIsKept) {
  std::string pattern = scaled;
  pattern.replace(pattern.find(R"("inputs":["x"]})"), 15, R"("inputs":["x"],"uses":"anywhere"})");
  EXPECT_EQ(ops_after({pattern}, scaled_graph(R"(["a","y"])", R"(,{"name":"c","op":"abs","inputs":["a"]})", "b c")),
            "neg abs sub");
}

TEST(Match, AnAttributeThatIsNotNamedHasItsDefault) {
  const auto pattern = [](std::string_view attrs) {
    return pattern_of(str_cat(R"("captures":[{"name":"x"}],"nodes":[{"name":"s","op":"sum","inputs":["x"],"attrs":)",
                              attrs, R"(}],"outputs":["s"],"replacement":{"nodes":[{"name":"m","op":"max",
      "inputs":["x"],"attrs":{"dims":{"attr":"s.dims"}}}],"outputs":["m"]})"));
  };
  const std::string graph =
      f32_graph("x", "2,3", R"({"name":"y","op":"sum","inputs":["x"],"attrs":{"dims":[1],"keepdim":true}})", "y");
  EXPECT_EQ(why_not(pattern(R"({"dims":[1]})"), graph),
            "attribute 'keepdim' of 'y' is true, and the pattern does not name it");
  EXPECT_EQ(why_not(pattern(R"({"dims":[1],"keepdim":true})"), graph), "1 found");
  EXPECT_EQ(why_not(pattern(R"({"dims":[0],"keepdim":true})"), graph), "attribute 'dims' of 'y' is [1], expected [0]");
}

TEST(Match, AttributesAreAskedByPredicates) {
  const auto why = [](std::string_view predicate) {
    return why_not(pattern_of(str_cat(R"("captures":[{"name":"x"}],"nodes":[{"name":"s","op":"sum","inputs":["x"],
      "attrs":{"dims":)",
                                      predicate, R"(}}],"outputs":["s"])")),
                   f32_graph("x", "2,3,4", R"({"name":"y","op":"sum","inputs":["x"],"attrs":{"dims":[2,0]}})", "y"));
  };
  EXPECT_EQ(why(R"({"any":true})"), "1 found");
  EXPECT_EQ(why(R"("any")"), "1 found");
  EXPECT_EQ(why(R"({"axes":[0,-1]})"), "1 found");
  EXPECT_EQ(why(R"({"axes":[-2]})"), "attribute 'dims' of 'y' is [2, 0], expected axes [-2]");
  EXPECT_EQ(why(R"({"among":[[1],[2,0]]})"), "1 found");
  EXPECT_EQ(why(R"({"among":[[1],[0]]})"), "attribute 'dims' of 'y' is [2, 0], expected [1] or [0]");
  const auto number = [](std::string_view predicate) {
    return why_not(pattern_of(str_cat(R"("captures":[{"name":"x"}],"nodes":[{"name":"s","op":"softmax","inputs":["x"],
      "attrs":{"dim":)",
                                      predicate, R"(}}],"outputs":["s"])")),
                   f32_graph("x", "2,3,4", R"({"name":"y","op":"softmax","inputs":["x"],"attrs":{"dim":1}})", "y"));
  };
  EXPECT_EQ(number(R"({"least":1,"most":1})"), "1 found");
  EXPECT_EQ(number(R"({"least":2})"), "attribute 'dim' of 'y' is 1, expected from 2 to inf");
}

TEST(Match, CapturesAskForDtypeShapeAndWhereTheyComeFrom) {
  const auto why = [](std::string_view capture) {
    return why_not(pattern_of(str_cat(R"("captures":[{"name":"x",)", capture, R"(}],
      "nodes":[{"name":"n","op":"neg","inputs":["x"]}],"outputs":["n"])")),
                   R"({"kiln":1,"inputs":[{"name":"a","type":{"dtype":"f32","shape":["n",3]}}],
      "nodes":[{"name":"y","op":"neg","inputs":["a"]}],"outputs":[{"name":"y","value":"y"}]})");
  };
  EXPECT_EQ(why(R"("dtype":"f32")"), "1 found");
  EXPECT_EQ(why(R"("dtype":["f16","f64"])"), "'x' is f32[n, 3], expected f16 or f64");
  EXPECT_EQ(why(R"("shape":["?",3])"), "1 found");
  EXPECT_EQ(why(R"("shape":["...",3])"), "1 found");
  EXPECT_EQ(why(R"("shape":["...","a","b","c"])"), "'x' is f32[n, 3], expected a rank of at least 3");
  EXPECT_EQ(why(R"("shape":[2,3])"), "'x' is f32[n, 3], expected 2 in place of n");
  EXPECT_EQ(why(R"("shape":["d","d"])"), "size d is n in one place and 3 in 'x'");
  EXPECT_EQ(why(R"("from":"input")"), "1 found");
  EXPECT_EQ(why(R"("from":"fixed")"), "'x' is 'a', which is not a parameter or a constant");
  EXPECT_EQ(why(R"("number":"any")"), "'x' is 'a', which is no scalar that the graph itself holds");
}

TEST(Match, ANumberIsAConstantOrFull) {
  const auto graph = [](std::string_view value) {
    return str_cat(R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":"f32","shape":[2]}}],
      "constants":[{"name":"c","type":{"dtype":"f32","shape":[]},"data":[0.5]}],
      "nodes":[{"name":"f","op":"full","attrs":{"value":0.25,"shape":[],"dtype":"f32"}},
      {"name":"y","op":"add","inputs":["x",")",
                   value, R"("]}],"outputs":[{"name":"y","value":"y"}]})");
  };
  const auto of_16_bits = [&](std::string_view dtype) {
    std::string text = graph("c");
    for (size_t at = 0; (at = text.find("f32", at)) != std::string::npos;) text.replace(at, 3, dtype);
    return text;
  };
  const std::string half = pattern_of(R"("captures":[{"name":"x"},{"name":"h","number":0.5}],
    "nodes":[{"name":"y","op":"add","inputs":["x","h"]}],"outputs":["y"])");
  EXPECT_EQ(why_not(half, graph("c")), "1 found");
  EXPECT_EQ(why_not(half, graph("f")), "'h' is 0.25, expected 0.5");
  EXPECT_EQ(why_not(half, of_16_bits("f16")), "1 found");
  EXPECT_EQ(why_not(half, of_16_bits("bf16")), "1 found");
}

TEST(Match, ANumberIsWhatItsTypeHolds) {
  const auto graph = [](std::string_view dtype, std::string_view value) {
    return str_cat(R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":")", dtype, R"(","shape":[2]}}],
      "constants":[{"name":"c","type":{"dtype":"f32","shape":[]},"data":[0.1]}],
      "nodes":[{"name":"f","op":"full","attrs":{)",
                   dtype == "i64" ? R"("value":0,"exact":"9007199254740995")" : R"("value":0.1)",
                   R"(,"shape":[],"dtype":")", dtype, R"("}},{"name":"y","op":"add","inputs":["x",")", value,
                   R"("]}],"outputs":[{"name":"y","value":"y"}]})");
  };
  const auto asking = [](std::string_view number) {
    return pattern_of(str_cat(R"("captures":[{"name":"x"},{"name":"h","number":)", number, R"(}],
      "nodes":[{"name":"y","op":"add","inputs":["x","h"]}],"outputs":["y"])"));
  };
  EXPECT_EQ(why_not(asking("0.1"), graph("f32", "c")), "1 found");
  EXPECT_EQ(why_not(asking("0.1"), graph("f32", "f")), "1 found");
  EXPECT_EQ(why_not(asking("0"), graph("i64", "f")), "'h' is 'f', which is no scalar that the graph itself holds");
}

TEST(Match, AxesThatAreNewCountInTheResult) {
  const auto why = [](std::string_view axes) {
    return why_not(pattern_of(str_cat(R"("captures":[{"name":"x"}],"nodes":[{"name":"u","op":"unsqueeze","inputs":["x"],
      "attrs":{"dims":{"axes":)",
                                      axes, R"(}}}],"outputs":["u"])")),
                   f32_graph("x", "2,3", R"({"name":"y","op":"unsqueeze","inputs":["x"],"attrs":{"dims":[2]}})", "y"));
  };
  EXPECT_EQ(why("[-1]"), "1 found");
  EXPECT_EQ(why("[-2]"), "attribute 'dims' of 'y' is [2], expected axes [-2]");
}

// With a bias, or without.
const std::string optional = pattern_of(R"("captures":[{"name":"x"},{"name":"w"},{"name":"b"}],
  "nodes":[{"name":"p","op":"matmul","inputs":["x","w"]},
           {"name":"s","op":"add","inputs":["p","b"],"optional":true},
           {"name":"r","op":"relu","inputs":["s"]}],"outputs":["r"],
  "replacement":{"nodes":[{"name":"l","op":"matmul","inputs":["w","x"]},
                          {"name":"t","op":"sub","inputs":["l","b"],"when":"b"}],"outputs":["t"]})");

TEST(Match, AnOptionalNodeMayBeMissing) {
  const auto graph = [](std::string_view nodes) { return f32_graph("xwb", "2,2", nodes, "r"); };
  EXPECT_EQ(ops_after({optional}, graph(R"({"name":"p","op":"matmul","inputs":["x","w"]},
    {"name":"r","op":"relu","inputs":["p"]})")),
            "matmul");
  EXPECT_EQ(ops_after({optional}, graph(R"({"name":"p","op":"matmul","inputs":["x","w"]},
    {"name":"s","op":"add","inputs":["b","p"]},{"name":"r","op":"relu","inputs":["s"]})")),
            "matmul sub");
}

TEST(Match, AnOptionalOperandMayBeLeftOut) {
  const std::string pattern = pattern_of(R"("captures":[{"name":"x"},{"name":"w"},{"name":"b","optional":true}],
    "nodes":[{"name":"y","op":"linear","inputs":["x","w","b"]}],"outputs":["y"],
    "replacement":{"nodes":[{"name":"n","op":"neg","inputs":["x"]},
                            {"name":"z","op":"linear","inputs":["n","w","b"]}],"outputs":["z"]})");
  for (const char *inputs : {R"(["x","w"])", R"(["x","w","b"])"}) {
    const std::string graph = str_cat(R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":"f32","shape":[2,3]}},
      {"name":"w","type":{"dtype":"f32","shape":[4,3]}},{"name":"b","type":{"dtype":"f32","shape":[4]}}],
      "nodes":[{"name":"y","op":"linear","inputs":)",
                                      inputs, R"(}],"outputs":[{"name":"y","value":"y"}]})");
    EXPECT_EQ(ops_after({pattern}, graph), "neg linear");
  }
}

TEST(Match, AnUnderscoreIsAnythingAndEachTimeAnother) {
  EXPECT_EQ(why_not(pattern_of(R"("nodes":[{"name":"a","op":"add","inputs":["_","_"]}],"outputs":["a"])"),
                    f32_graph("xy", "2", R"({"name":"s","op":"add","inputs":["x","y"]})", "s")),
            "1 found");
}

TEST(Match, ANodeMayBeOneOfSeveralOps) {
  const std::string pattern = pattern_of(R"("captures":[{"name":"x"}],
    "nodes":[{"name":"a","op":["relu","silu"],"inputs":["x"]}],"outputs":["a"])");
  EXPECT_EQ(why_not(pattern, f32_graph("x", "2", R"({"name":"y","op":"silu","inputs":["x"]})", "y")), "1 found");
  EXPECT_EQ(why_not(pattern, f32_graph("x", "2", R"({"name":"y","op":"tanh","inputs":["x"]})", "y")), "")
      << "nothing has the op that it begins at";
}

// Two products of one value become one each of the other's operand order.
const std::string pair = pattern_of(R"("captures":[{"name":"x"},{"name":"a"},{"name":"b"}],
  "nodes":[{"name":"p","op":"matmul","inputs":["x","a"]},{"name":"q","op":"div","inputs":["x","b"]}],
  "outputs":["p","q"],
  "replacement":{"nodes":[{"name":"s","op":"add","inputs":["x","a"]},{"name":"t","op":"sub","inputs":["x","b"]}],
                 "outputs":["s","t"]})");

TEST(Match, OutputsThatShareAValueAreFoundTogether) {
  EXPECT_EQ(ops_after({pair}, f32_graph("xab", "2,2", R"({"name":"p","op":"matmul","inputs":["x","a"]},
    {"name":"q","op":"div","inputs":["x","b"]})",
                                        "p q")),
            "add sub");
  EXPECT_EQ(why_not(pair, f32_graph("xab", "2,2", R"({"name":"p","op":"matmul","inputs":["x","a"]},
    {"name":"q","op":"div","inputs":["x","p"]})",
                                    "p q")),
            "'p' is of the match, and what it uses depends on it")
      << "replacing both would close a cycle";
}

TEST(Match, NodesOfDifferentAnnotationsAreNotOnePlace) {
  const std::string graph = f32_graph("xy", "2", R"({"name":"a","op":"neg","inputs":["x"]},
    {"name":"b","op":"mul","inputs":["a","y"],"annotations":{"mine":{"i64":1},"debug.a":{"i64":2}}})",
                                      "b");
  EXPECT_EQ(why_not(scaled, graph), "'a' and 'b' carry different annotations");
  std::string any = scaled;
  any.insert(any.size() - 1, R"(,"annotations":"any")");
  EXPECT_EQ(ops_after({any}, graph), "sub");
}

TEST(Match, ManyOrdersEndWithAReason) {
  // A tree of 2^7 sums whose last leaf is wanted to be what it is not, in whatever order.
  std::string nodes, captures, graph;
  std::vector<std::string> row, graph_row;
  for (int i = 0; i < 64; ++i) {
    captures += str_cat(i ? "," : "", R"({"name":"x)", i, R"(","shape":["d)", i % 2, "\"]}");
    row.push_back(str_cat("x", i));
    graph_row.push_back("x");
  }
  int count = 0;
  while (row.size() > 1) {
    std::vector<std::string> next, graph_next;
    for (size_t i = 0; i + 1 < row.size(); i += 2) {
      nodes += str_cat(count ? "," : "", R"({"name":"a)", count, R"(","op":"add","inputs":[")", row[i], "\",\"",
                       row[i + 1], "\"]}");
      graph += str_cat(count ? "," : "", R"({"name":"a)", count, R"(","op":"add","inputs":[")", graph_row[i], "\",\"",
                       graph_row[i + 1], "\"]}");
      next.push_back(str_cat("a", count));
      graph_next.push_back(str_cat("a", count++));
    }
    row = next, graph_row = graph_next;
  }
  nodes += R"(,{"name":"m","op":"sub","inputs":["a62","w"]})";
  graph += R"(,{"name":"m","op":"sub","inputs":["a62","x"]})";
  const std::string pattern = pattern_of(
      str_cat("\"captures\":[", captures, R"(,{"name":"w","shape":[9]}],"nodes":[)", nodes, R"(],"outputs":["m"])"));
  EXPECT_NE(why_not(pattern, f32_graph("x", "2", graph, "m")), "1 found");
}

}  // namespace
}  // namespace kiln
