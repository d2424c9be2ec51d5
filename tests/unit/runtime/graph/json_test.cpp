#include "runtime/graph/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "jit/base/file.h"
#include "runtime/ops/op.h"
#include "tests/paths.h"
#include "tests/unit/runtime/graph/fake_ops.h"

namespace kiln {
namespace {

using fake::Build;

std::string read(std::string_view text) {
  Result<GraphPtr> graph = read_json(text, fake::ops());
  return graph.ok() ? "ok" : graph.status().message();
}

constexpr std::string_view example = R"json({"kiln": 1,
 "symbols": {"n": {"min": 1, "max": 4096, "divisor": 2, "hint": 8}},
 "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n", 4]}},
            {"name": "t", "type": {"dtype": "f32", "shape": [4, 3], "strides": [1, 4]}}],
 "parameters": [{"name": "w", "type": {"dtype": "f32", "shape": ["2*n"]}}],
 "constants": [{"name": "c", "type": {"dtype": "f32", "shape": [2, 2]}, "data": [1, "nan", "-inf", 0.1]},
               {"name": "b", "type": {"dtype": "bool", "shape": [2]}, "data": [true, false]}],
 "nodes": [{"name": "s", "op": "split", "inputs": ["x"], "attrs": {"dim": 1}},
           {"name": "m", "op": "reshape", "inputs": ["s:1"], "attrs": {"shape": ["n*2"]}},
           {"name": "y", "op": "add", "inputs": ["m", "w"],
            "annotations": {"kiln.region": {"text": "a"}, "k": {"i64": [1, "9007199254740993"]}, "d": {"dtype": "f16"},
                            "q": {"bool": true}, "f": {"f64": ["inf", 0.5]}}},
           {"name": "e", "op": "every", "attrs": {"i": -3, "is": [1], "f": "-inf", "fs": [1, 0.1], "text": "ä\n", "dtype": "i8",
            "shape": ["n // 2", 3], "start": "max(n, 7)", "flag": true,
            "tensors": [{"type": {"dtype": "u8", "shape": [2]}, "data": [1, 255]}]}},
           {"name": "z", "op": "call", "inputs": ["y"], "attrs": {"graph": "block"}},
           {"name": "z2", "op": "call", "inputs": ["z"], "attrs": {"graph": "block"}}],
 "outputs": [{"name": "out", "value": "z2"}, {"name": "e", "value": "e"}, {"name": "c", "value": "c"}, {"name": "b", "value": "b"}],
 "graphs": {"block": {"inputs": [{"name": "a", "type": {"dtype": "f32", "shape": ["k"]}}],
                      "nodes": [{"name": "r", "op": "call", "inputs": ["a"], "attrs": {"graph": "leaf"}}],
                      "outputs": [{"name": "r", "value": "r"}]},
            "leaf": {"inputs": [{"name": "a", "type": {"dtype": "f32", "shape": ["k"]}}],
                     "nodes": [{"name": "r", "op": "relu", "inputs": ["a"]}],
                     "outputs": [{"name": "r", "value": "r"}]}}})json";

TEST(Json, WrittenGraphsReadBackEqual) {
  // The fake call infers the inner symbol k as it is, which nothing binds outside.
  std::string text(example);
  for (size_t at; (at = text.find("\"k\"]")) != std::string::npos;) text.replace(at, 3, "\"n\"");
  Result<GraphPtr> first = read_json(text, fake::ops());
  ASSERT_TRUE(first.ok()) << first.status().message();
  std::string written = write_json(**first);
  Result<GraphPtr> second = read_json(written, fake::ops());
  ASSERT_TRUE(second.ok()) << second.status().message() << "\n" << written;
  EXPECT_EQ(digest_of(**first), digest_of(**second)) << written;
  EXPECT_EQ(write_json(**second), written);
  EXPECT_EQ((*second)->find("s")->results.size(), 2u);
  EXPECT_EQ((*second)->find("e")->attrs.at("text"), AttrValue("ä\n"));
  EXPECT_EQ((*second)->find("z")->attrs.at("graph").graph(), (*second)->find("z2")->attrs.at("graph").graph())
      << "stored once";
}

TEST(Json, GraphsBuiltByEditsReadBackEqual) {
  Build b;
  ValueId x = b.input("x", {Expr::symbol("n"), 4});
  ValueId y = b.add("relu", {x});
  ValueId c = Build::take(b.edit.constant(std::make_shared<TensorData>(TensorData{DType::f32, {}, Bytes(4)})));
  GraphPtr g = b.finish({b.add("add", {c, y}), b.add("copy_", {x, y}), b.add("add", {y, y})});
  Result<GraphPtr> back = read_json(write_json(*g), fake::ops());
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(digest_of(*g), digest_of(**back)) << print(*g) << print(**back);
}

// Of all magnitudes; those beyond 2^53 of which the shortest form has digits alone are floats all the same.
TEST(Json, FiniteFloatsReadBackTheSameBits) {
  std::vector<double> numbers = {0x1p53, 0x1p53 + 2, 9007199254740994.0, 1e20, 123456789012345678901.0, 4e21, 5e-324};
  for (double power = 0x1p-1074; power < 0x1p1023; power *= 2)
    numbers.insert(numbers.end(), {power, std::nextafter(power, 0), std::nextafter(power, HUGE_VAL), power * 1.1});
  for (double power = 1e-300; power < 1e300; power *= 10) numbers.push_back(std::trunc(power));
  for (size_t i = 0, count = numbers.size(); i < count; ++i) numbers.push_back(-numbers[i]);
  std::vector<float> singles(numbers.begin(), numbers.end());
  const auto constant = [](DType dtype, const auto &list) {
    TensorData data{dtype, {static_cast<int64_t>(list.size())}, Bytes(list.size() * sizeof list[0])};
    std::memcpy(data.bytes.data(), list.data(), data.bytes.size());
    return std::make_shared<TensorData>(std::move(data));
  };
  std::erase_if(singles, [](float f) { return !std::isfinite(f); });

  Build b;
  const ValueId doubles = Build::take(b.edit.constant(constant(DType::f64, numbers)));
  const ValueId floats = Build::take(b.edit.constant(constant(DType::f32, singles)));
  const ValueId y = b.add("relu", {b.input("x", {4})});
  ASSERT_TRUE(b.edit.annotate(y.node, "numbers", AttrValue(numbers)).ok());
  const GraphPtr g = b.finish({doubles, floats, y});
  const Result<GraphPtr> back = read_json(write_json(*g), fake::ops());
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(digest_of(**back), digest_of(*g));
  EXPECT_EQ((*back)->find((*back)->outputs()[0].value.node)->constant->bytes, constant(DType::f64, numbers)->bytes);
  EXPECT_EQ((*back)->find((*back)->outputs()[2].value.node)->annotations.at("numbers"), AttrValue(numbers));
}

TEST(Json, ErrorsSayWhere) {
  EXPECT_EQ(read("{}"), "at the top: member 'kiln' is missing");
  EXPECT_EQ(read("{\"kiln\": 2}"), "kiln: schema version 2; this build reads version 1");
  EXPECT_EQ(read("{\"kiln\": 1, \"input\": []}"),
            "at the top: unknown member 'input'; known are kiln, symbols, inputs, parameters, constants, nodes, "
            "outputs, graphs");
  EXPECT_EQ(read("[]"), "at the top: expected an object, found a list");
  auto with = [](std::string_view nodes, std::string_view rest = "") {
    return read(str_cat(R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": [4]}}], "nodes": [)",
                        nodes, "]", rest, "}"));
  };
  EXPECT_EQ(with(R"({"name": "y", "op": "ad"})"), "nodes[0].op: unknown op 'ad'; did you mean 'add'?");
  EXPECT_EQ(with(R"({"name": "y", "op": "relu", "inputs": ["z"]})"),
            "nodes[0].inputs[0]: no input, parameter, constant or node is named 'z'");
  EXPECT_EQ(with(R"({"name": "y", "op": "relu", "inputs": ["x:1"]})"),
            "nodes[0].inputs[0]: 'x' has 1 results, 'x:1' is none of them");
  EXPECT_EQ(with(R"({"name": "y", "op": "relu", "inputs": ["x:one"]})"),
            "nodes[0].inputs[0]: expected NODE or NODE:K, found 'x:one'");
  EXPECT_EQ(with(R"({"name": "s", "op": "split", "inputs": ["x"]}, {"name": "y", "op": "relu", "inputs": ["s"]})"),
            "nodes[1].inputs[0]: 's' has 2 results; write 's:0' for the first");
  EXPECT_EQ(with(R"({"name": "y", "op": "relu", "inputs": []})"),
            "nodes[0]: node 'y': [relu] takes 1 operands, 0 are given");
  EXPECT_EQ(with(R"({"name": "y", "op": "split", "inputs": ["x"], "attrs": {"axis": 0}})"),
            "nodes[0].attrs: op 'split' has no attribute 'axis'; it has dim");
  EXPECT_EQ(with(R"({"name": "y", "op": "split", "inputs": ["x"], "attrs": {"dim": 0.5}})"),
            "nodes[0].attrs.dim: [split] expected an integer, found 0.5");
  EXPECT_EQ(
      with(R"({"name": "y", "op": "every", "attrs": {"shape": ["2*"]}})"),
      "nodes[0].attrs.shape[0]: [every] expression '2*': expected a number, a name or '(' at character 3, found the "
      "end");
  EXPECT_EQ(with(R"({"name": "y", "op": "relu", "inputs": ["x"], "annotations": {"k": 3}})"),
            "nodes[0].annotations.k: expected an object, found 3");
  EXPECT_EQ(with(R"({"name": "x", "op": "relu", "inputs": ["x"]})"), "nodes[0]: node 'x': name 'x' is taken already");
  EXPECT_EQ(with("", R"(, "outputs": [{"name": "o", "value": "q"}])"),
            "outputs[0].value: no input, parameter, constant or node is named 'q'");
  EXPECT_EQ(with("", R"(, "outputs": [{"name": "o", "value": "x"}, {"name": "o", "value": "x"}])"),
            "outputs: two outputs are named 'o'");
  EXPECT_EQ(with("", R"(, "constants": [{"name": "c", "type": {"dtype": "f32", "shape": [2]}, "data": [1]}])"),
            "constants[0].data: 1 elements, expected 2 for f32[2]");
  EXPECT_EQ(with("", R"(, "constants": [{"name": "c", "type": {"dtype": "i8", "shape": [1]}, "data": [300]}])"),
            "constants[0].data[0]: expected a number of dtype i8, found 300");
  EXPECT_EQ(with("", R"(, "parameters": [{"name": "w", "type": {"dtype": "f8", "shape": []}}])"),
            "parameters[0].type.dtype: unknown dtype 'f8'; known are f64, f32, f16, bf16, i64, i32, i16, i8, u8, bool, "
            "u16, u32, u64, f8_e4m3fn, f8_e5m2, token");
  EXPECT_EQ(with("", R"(, "parameters": [{"name": "w", "type": {"dtype": "f32", "shape": [-1]}}])"),
            "parameters[0].type: dim 0 of f32[-1] is negative");
  EXPECT_EQ(with("", R"(, "symbols": {"n": {"max": 4}})"),
            "invariant 'symbols' broken by symbol 'n': no input has it as a dimension, so nothing binds it");
}

// The example of FORMAT.md is read with the real ops.
TEST(Json, DocumentedExampleReads) {
  Result<Bytes> page = read_file(test::source_dir + "/runtime/graph/FORMAT.md");
  ASSERT_TRUE(page.ok()) << page.status().message();
  std::string_view text(reinterpret_cast<const char *>(page->data()), page->size());
  size_t begin = text.find("```json\n") + 8;
  Result<GraphPtr> graph = read_json(text.substr(begin, text.find("```", begin) - begin), builtin_ops());
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ((*graph)->symbols().at("batch"), (SymbolInfo{1, 4096, 1, 8}));
}

TEST(Json, GraphsThatContainThemselvesAreRefused) {
  EXPECT_EQ(read(R"({"kiln": 1, "nodes": [{"name": "c", "op": "call", "attrs": {"graph": "a"}}],
    "graphs": {"a": {"nodes": [{"name": "c", "op": "call", "attrs": {"graph": "b"}}]},
               "b": {"nodes": [{"name": "c", "op": "call", "attrs": {"graph": "a"}}]}}})"),
            "graphs.b.nodes[0].attrs.graph: [call] graph 'a' would contain itself");
  EXPECT_EQ(read(R"({"kiln": 1, "nodes": [{"name": "c", "op": "call", "attrs": {"graph": "a"}}]})"),
            "nodes[0].attrs.graph: [call] no member of 'graphs' is named 'a'");
}

// `depth` graphs, each of which the one around it calls: in each other's "graphs", or all at the top.
std::string nested(int depth, bool is_flat) {
  const std::string input = R"("inputs": [{"name": "x", "type": {"dtype": "f32", "shape": [4]}}], )";
  const std::string output = R"("outputs": [{"name": "y", "value": "y"}])";
  const auto call = [](int of) {
    return str_cat(R"("nodes": [{"name": "y", "op": "call", "inputs": ["x"], "attrs": {"graph": "g)", of, R"("}}], )");
  };
  // What stands deepest in a text: a tensor's elements, in an attribute's type.
  std::string inner =
      str_cat(R"({"constants": [{"name": "y", "type": {"dtype": "f32", "shape": [4]}, "data": [1, 2, 3, 4]}], )", input,
              output, "}");
  std::string all = str_cat(R"("g0": )", inner);
  for (int i = 1; i < depth; ++i) {
    str_append(all, str_cat(R"(, "g)", i, R"(": {)", input, call(i - 1), output, "}"));
    inner = str_cat("{", input, call(i - 1), output, R"(, "graphs": {"g)", i - 1, R"(": )", inner, "}}");
  }
  return str_cat(R"({"kiln": 1, )", input, call(depth - 1), output, R"(, "graphs": {)",
                 is_flat ? all : str_cat(R"("g)", depth - 1, R"(": )", inner), "}}");
}

TEST(Json, GraphsNestAsDeepAsTheFormatSays) {
  for (const bool is_flat : {true, false}) {
    const Result<GraphPtr> graph = read_json(nested(32, is_flat), builtin_ops());
    ASSERT_TRUE(graph.ok()) << is_flat << ": " << graph.status().message();
    const Result<GraphPtr> back = read_json(write_json(**graph), builtin_ops());
    ASSERT_TRUE(back.ok()) << is_flat << ": " << back.status().message();
    EXPECT_EQ(digest_of(**back), digest_of(**graph));
    const Result<GraphPtr> deeper = read_json(nested(33, is_flat), builtin_ops());
    ASSERT_FALSE(deeper.ok()) << is_flat;
    EXPECT_NE(deeper.status().message().find("graphs are nested deeper than 32"), std::string::npos)
        << deeper.status().message();
  }
}

TEST(Json, TenThousandNodesReadAndWriteInReasonableTime) {
  Build b;
  ValueId v = b.input("x", {4});
  for (int i = 0; i < 10000; ++i) v = b.add("relu", {v});
  GraphPtr g = b.finish({v});
  Result<GraphPtr> back = read_json(write_json(*g), fake::ops());
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(digest_of(**back), digest_of(*g));
}

}  // namespace
}  // namespace kiln
