// Values of 16 bits are rounded once, where the op of the graph that makes them ends.
#include <gtest/gtest.h>

#include "jit/base/small_float.h"
#include "runtime/ops/samples.h"
#include "tests/backend/backends.h"
#include "tests/unit/runtime/graphs.h"

namespace kiln::testing {
namespace {

TensorData halves(const std::vector<double> &values, DType dtype) {
  RefTensor t{dtype, {static_cast<int64_t>(values.size())}, values, {}};
  return from_reference(t);
}

Case case_of(GraphPtr graph, std::vector<TensorData> arguments) {
  const size_t outputs = graph->outputs().size();
  return {"", std::move(graph), std::move(arguments), std::vector<double>(outputs, 0.0), {}};
}

GraphPtr small_graph(std::string_view dtype, std::string_view nodes, size_t size) {
  return test::graph_of(str_cat(R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": ")", dtype,
                                R"(", "shape": [)", size, R"(]}}], "nodes": [)", nodes,
                                R"(], "outputs": [{"name": "y", "value": "y"}]})"));
}

TEST(SmallFloats, EachAdditionRoundsItsSum) {
  // 2048 + 1 is a tie, which goes to 2048, twice; 2048 + (1 + 1) would be 2050.
  const Case made = case_of(small_graph("f16", R"({"name": "one", "op": "full", "attrs": {"value": 1, "dtype": "f16",
      "shape": []}}, {"name": "s", "op": "add", "inputs": ["x", "one"]}, {"name": "y", "op": "add", "inputs": ["s", "one"]})",
                                        2),
                            {halves({2048, 3}, DType::f16)});
  for (const Backend &backend : backends()) {
    const Result<std::vector<TensorData>> got = backend.run(made);
    ASSERT_TRUE(got.ok()) << backend.name << ": " << got.status().message();
    EXPECT_EQ(to_reference((*got)[0]).f, (std::vector<double>{2048, 5})) << backend.name;
  }
}

// What f32 does not hold is not rounded to it on its way: each of these is above a tie in f64, and one in f32.
TEST(SmallFloats, AccumulationsRoundOnce) {
  struct Wide {
    DType from, to;
    double x, y;
  };
  for (const auto &[from, to, x, y] : {Wide{DType::f64, DType::bf16, 1 + 0x1p-8 + 0x1p-40, 1 + 0x1p-7},
                                       Wide{DType::f64, DType::f16, 1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-10},
                                       Wide{DType::i64, DType::bf16, 0x1p40 + 0x1p32 + 1, 0x1p40 + 0x1p33},
                                       Wide{DType::i32, DType::bf16, 0x1p30 + 0x1p22 + 1, 0x1p30 + 0x1p23}}) {
    for (const std::string op : {"sum", "prod", "cumsum", "cumprod"}) {
      const std::string dim = op.starts_with("cum") ? R"("dim": 0, )" : "";
      RefTensor one{from, {1}, {}, {}};
      one.allocate();
      if (one.is_float())
        one.f[0] = x;
      else
        one.i[0] = static_cast<int64_t>(x);
      const Case made = case_of(small_graph(name_of(from),
                                            str_cat(R"({"name": "y", "op": ")", op, R"(", "inputs": ["x"], "attrs": {)",
                                                    dim, R"("dtype": ")", name_of(to), R"("}})"),
                                            1),
                                {from_reference(one)});
      const std::vector<Backend> all = backends_and_reference();
      for (const Backend &backend : all) {
        const Result<std::vector<TensorData>> got = backend.run(made);
        ASSERT_TRUE(got.ok()) << backend.name << ": " << got.status().message();
        EXPECT_EQ(to_reference((*got)[0]).f, std::vector<double>{y})
            << op << " of " << name_of(from) << ", " << backend.name;
      }
    }
  }
}

// Its kernels compute in double; what lies between two of them is of its type all the same.
TEST(SmallFloats, TheBackendReferenceRoundsF32WhereANodeEnds) {
  const Case made =
      case_of(test::graph_of(R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "f64", "shape": [2]}}],
      "nodes": [{"name": "f", "op": "convert", "inputs": ["x"], "attrs": {"dtype": "f32"}},
                {"name": "square", "op": "mul", "inputs": ["f", "f"]},
                {"name": "y", "op": "convert", "inputs": ["f"], "attrs": {"dtype": "i64"}},
                {"name": "z", "op": "isinf", "inputs": ["square"]}],
      "outputs": [{"name": "y", "value": "y"}, {"name": "z", "value": "z"}]})"),
              {ops::tensor_of<double>(DType::f64, {2}, {0x1p24 + 1, 1e30})});
  CompileOptions options;
  options.backend = "reference";
  const Result<std::vector<TensorData>> got = run_compiled(made, options);
  ASSERT_TRUE(got.ok()) << got.status().message();
  EXPECT_EQ(to_reference((*got)[0]).i[0], 1 << 24);
  EXPECT_EQ(to_reference((*got)[1]).i, (std::vector<int64_t>{0, 1})) << "1e60 is no number of f32";
}

// Fused or not, the bits are the same: what lies between two ops is rounded either way.
TEST(SmallFloats, FusionChangesNoBit) {
  for (const char *dtype : {"f16", "bf16"}) {
    std::vector<double> values;
    for (int i = 0; i < 300; ++i) values.push_back(std::sin(i * 0.7) * 3);
    const Case made = case_of(small_graph(dtype, R"({"name": "a", "op": "gelu", "inputs": ["x"]},
        {"name": "b", "op": "mul", "inputs": ["a", "x"]}, {"name": "c", "op": "softmax", "inputs": ["b"]},
        {"name": "d", "op": "sqrt", "inputs": ["c"]}, {"name": "y", "op": "sub", "inputs": ["d", "b"]})",
                                          300),
                              {halves(values, *dtype_from_name(dtype))});
    for (const std::string &level : levels_here()) {
      const auto fused = compiled("", level, true).run(made), apart = compiled("", level, false).run(made);
      ASSERT_TRUE(fused.ok() && apart.ok());
      EXPECT_EQ((*fused)[0].bytes, (*apart)[0].bytes) << dtype << " at " << level;
    }
  }
}

// What attributes and constants say becomes an 8-bit float as convert makes it; an infinity that a constant has stays.
TEST(SmallFloats, EightBitNumbersSaturateWhereverTheyAreWritten) {
  struct Expected {
    const char *dtype, *number;
    uint8_t bits, constant;
  };
  for (const auto &[dtype, number, bits, constant] :
       {Expected{"f8_e5m2", "1e9", 0x7b, 0x7b}, Expected{"f8_e5m2", "-61440", 0xfb, 0xfb},
        Expected{"f8_e5m2", "\"inf\"", 0x7b, 0x7c}, Expected{"f8_e5m2", "\"-inf\"", 0xfb, 0xfc},
        Expected{"f8_e4m3fn", "1e9", 0x7e, 0x7e}, Expected{"f8_e4m3fn", "\"-inf\"", 0xfe, 0xfe},
        Expected{"f8_e4m3fn", "\"nan\"", 0x7f, 0x7f}, Expected{"f8_e5m2", "\"nan\"", 0x7e, 0x7e}}) {
    const std::string attr = str_cat(R"("value": )", number), type = str_cat(R"("dtype": ")", dtype, "\"");
    const Case made =
        case_of(test::graph_of(str_cat(R"({"kiln": 1, "inputs": [{"name": "x", "type": {)", type, R"(, "shape": [1]}}],
            "constants": [{"name": "k", "type": {)",
                                       type, R"(, "shape": [1]}, "data": [)", number, R"(]}],
            "nodes": [{"name": "filled", "op": "full", "attrs": {)",
                                       attr, ", ", type, R"(, "shape": [1]}},
                      {"name": "wide", "op": "full", "attrs": {)",
                                       attr, R"(, "dtype": "f32", "shape": [1]}},
                      {"name": "converted", "op": "convert", "inputs": ["wide"], "attrs": {)",
                                       type, R"(}},
                      {"name": "padded", "op": "pad", "inputs": ["x"], "attrs": {"low": [0], "high": [1], )",
                                       attr, R"(}},
                      {"name": "copied", "op": "clone", "inputs": ["k"]}, {"name": "beside", "op": "concat", "inputs":
                       ["x", "k"], "attrs": {"dim": 0}}],
            "outputs": [{"name": "a", "value": "filled"}, {"name": "b", "value": "converted"}, {"name": "c", "value":
             "padded"}, {"name": "d", "value": "copied"}, {"name": "e", "value": "beside"}]})")),
                {halves({1}, *dtype_from_name(dtype))});
    const uint8_t one = made.arguments[0].bytes[0];
    for (const Backend &backend : backends()) {
      const auto got = backend.run(made);
      ASSERT_TRUE(got.ok()) << backend.name << ": " << got.status().message();
      const std::string where = str_cat(backend.name, ": ", number, " as ", dtype);
      EXPECT_EQ((*got)[0].bytes, Bytes{bits}) << where;
      EXPECT_EQ((*got)[1].bytes, Bytes{bits}) << where;
      EXPECT_EQ((*got)[2].bytes, (Bytes{one, bits})) << where;
      EXPECT_EQ((*got)[3].bytes, Bytes{constant}) << where;
      EXPECT_EQ((*got)[4].bytes, (Bytes{one, constant})) << where;
    }
  }
}

}  // namespace
}  // namespace kiln::testing
