// Attention is one kernel, in tiles of rows, and gives the bits that its parts give as kernels of their own: across the
// borders of tiles, panels and blocks, for keys that are hidden, and for what is not finite.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runtime/graph/json.h"
#include "runtime/ops/sample_shapes.h"
#include "runtime/ops/samples.h"
#include "tests/backend/backends.h"

namespace kiln::testing {
namespace {

using ops::ints;
using ops::shape_from;

constexpr double infinity = std::numeric_limits<double>::infinity();

struct Shapes {
  int64_t batch, heads, groups, queries, keys, depth, width;
};
std::string name_of(const Shapes &s) {
  return str_cat(s.batch, "x", s.heads, "/", s.groups, " ", s.queries, "x", s.keys, " ", s.depth, " ", s.width);
}

// Of one attention, with q, k and v of a type, drawn by a seed.
Case attention(const Shapes &s, const AttrMap &attrs, DType type = DType::f32, bool known = true,
               std::vector<TensorType> more = {}) {
  Sample sample;
  sample.name = name_of(s);
  const auto dim = [&](const char *symbol, int64_t size) {
    if (known) return Dim(size);
    sample.sizes[symbol] = size;
    return ops::sym(symbol);
  };
  const Dim batch = dim("b", s.batch), queries = dim("t", s.queries), keys = dim("s", s.keys);
  sample.inputs = {make_type(type, {batch, s.heads, queries, s.depth}),
                   make_type(type, {batch, s.groups, keys, s.depth}),
                   make_type(type, {batch, s.groups, keys, s.width})};
  sample.inputs.insert(sample.inputs.end(), more.begin(), more.end());
  sample.attrs = attrs;
  sample.low = -3;
  sample.high = 3;
  Result<Case> made = make_case(*find_op("attention"), sample, 5);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return std::move(*made);
}

size_t kernel_count(const Case &c, const char *cpu = "v3") {
  Result<GraphPtr> graph = flat_and_decomposed(c.graph);
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  const Result<Lowered> lowered = lower(**graph);
  EXPECT_TRUE(lowered.ok()) << lowered.status().message();
  const Result<kernel::Fused> fused = kernel::fuse(lowered->program, *Target::by_name(cpu), {});
  EXPECT_TRUE(fused.ok()) << fused.status().message();
  return fused->launches.size();
}

// At every level, by one thread and by several.
void expect_same_bits(const Case &c) {
  for (const std::string &level : levels_here()) {
    SCOPED_TRACE(str_cat(c.name, " ", level));
    CompileOptions options;
    options.cpu = level;
    options.fuse = false;
    const Result<std::vector<TensorData>> apart = run_compiled(c, options);
    options.fuse = true;
    const Result<std::vector<TensorData>> fused = run_compiled(c, options);
    ASSERT_TRUE(apart.ok()) << apart.status().message();
    ASSERT_TRUE(fused.ok()) << fused.status().message();
    for (size_t r = 0; r < apart->size(); ++r) {
      const RefTensor x = to_reference((*fused)[r]), y = to_reference((*apart)[r]);
      ASSERT_EQ(x.f.size(), y.f.size());
      for (size_t e = 0; e < x.f.size(); ++e)
        ASSERT_TRUE(std::bit_cast<uint64_t>(x.f[e]) == std::bit_cast<uint64_t>(y.f[e]) ||
                    (std::isnan(x.f[e]) && std::isnan(y.f[e])))
            << "result " << r << " element " << e << ": " << x.f[e] << " and " << y.f[e];
    }
  }
}

const AttrMap causal = {{"causal", true}};

// Tiles are of up to 96 rows, panels of 8 to 32 columns and 4 to 12 rows, blocks of 1,024 k, sums of 16 to 64 points.
const std::vector<Shapes> shapes = {{1, 2, 2, 97, 97, 16, 16}, {2, 3, 3, 64, 64, 8, 24}, {1, 2, 1, 131, 67, 19, 33},
                                    {1, 4, 2, 50, 203, 33, 7}, {1, 8, 8, 5, 1030, 8, 8}, {1, 1, 1, 200, 2100, 5, 9},
                                    {1, 8, 2, 3, 40, 64, 64},  {1, 1, 1, 9, 1, 3, 1},    {1, 1, 1, 300, 130, 1100, 4},
                                    {1, 2, 2, 40, 40, 3, 530}};

const Shapes plain = {2, 4, 4, 70, 90, 16, 16}, grouped = {2, 4, 2, 70, 90, 16, 16};

TEST(Attention, IsOneKernel) {
  const std::vector<std::pair<const char *, AttrMap>> attributes = {{"none", {}},
                                                                    {"causal", causal},
                                                                    {"window", {{"window", ints({20, 3})}}},
                                                                    {"softcap", {{"softcap", 0.75}, {"causal", true}}}};
  for (const auto &[name, attrs] : attributes) {
    for (const DType type : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
      for (const bool known : {true, false}) {
        EXPECT_EQ(kernel_count(attention(plain, attrs, type, known)), 1u) << name << kiln::name_of(type) << known;
        EXPECT_EQ(kernel_count(attention(grouped, attrs, type, known)), 1u) << name << kiln::name_of(type) << known;
      }
    }
  }
  EXPECT_EQ(kernel_count(attention(plain, {{"logsumexp", true}, {"causal", true}})), 1u);
  EXPECT_EQ(kernel_count(attention(plain, causal, DType::f32, true, {make_type(DType::boolean, {70, 90})})), 1u);
  EXPECT_EQ(kernel_count(attention(plain, causal, DType::f32, false, {make_type(DType::f32, shape_from("4, t, s"))})),
            1u);
}

TEST(Attention, HasASmallKernelMoreForWhatIsNotInStepWithItsRows) {
  EXPECT_EQ(kernel_count(attention(grouped, {{"logsumexp", true}})), 2u) << "logarithms, put together of heads";
}

TEST(Attention, StaysApartWhereEachRowHasKeysOfItsOwnAndWhereRowsAreLong) {
  EXPECT_EQ(kernel_count(attention({2, 4, 4, 1, 90, 16, 16}, causal)), 3u) << "one query";
  EXPECT_EQ(kernel_count(attention({1, 1, 1, 64, 40000, 16, 16}, causal)), 3u);
}

TEST(Attention, HasTheBitsOfItsParts) {
  for (const Shapes &s : shapes) expect_same_bits(attention(s, {}));
}

TEST(Attention, HasTheBitsOfItsPartsWhereKeysAreHidden) {
  const std::vector<AttrValue> windows = {ints({30, 5}), ints({3, 0}), ints({40, -1}), ints({-1, 7})};
  for (size_t i = 0; i < shapes.size(); ++i) {
    const AttrValue &window = windows[i % windows.size()], &other = windows[(i + 1) % windows.size()];
    expect_same_bits(attention(shapes[i], {{"causal", true}, {"logsumexp", true}}));
    expect_same_bits(attention(shapes[i], {{"window", window}}));
    expect_same_bits(attention(shapes[i], {{"window", other}}, DType::f32, /*known=*/false));
    expect_same_bits(attention(shapes[i], causal, DType::f32, /*known=*/false));
  }
}

TEST(Attention, HasTheBitsOfItsPartsInEachType) {
  for (const DType type : {DType::f64, DType::f16, DType::bf16})
    for (const Shapes &s : {shapes[0], shapes[2], shapes[5]}) expect_same_bits(attention(s, causal, type));
}

TEST(Attention, HasTheBitsOfItsPartsUnderMasksThatHideWholeRows) {
  const Shapes s = {1, 2, 2, 110, 150, 8, 8};
  Case masked = attention(s, causal, DType::f32, true, {make_type(DType::boolean, {110, 150})});
  RefTensor mask = to_reference(masked.arguments[3]);
  for (size_t i = 0; i < mask.i.size(); ++i) mask.i[i] = i / 150 % 7 != 3 && i % 3 != 0;
  masked.arguments[3] = from_reference(mask);
  expect_same_bits(masked);
}

// What a hidden key weighs is 0 times its value: NaN where that is not finite, in each row.
TEST(Attention, HidesNoNumberThatIsNotFinite) {
  for (const Shapes &s : {Shapes{1, 2, 2, 200, 200, 8, 20}, Shapes{1, 1, 1, 60, 2100, 4, 33}}) {
    for (const auto &[operand, value] : {std::pair{1, infinity}, {2, infinity}, {2, NAN}, {0, NAN}}) {
      for (const auto &[name, reach] : {std::pair{"causal", AttrValue(true)}, {"window", ints({9, 4})}}) {
        for (const double place : {0.02, 0.5, 0.99}) {
          Case c = attention(s, {{name, reach}, {"logsumexp", true}});
          RefTensor t = to_reference(c.arguments[static_cast<size_t>(operand)]);
          t.f[static_cast<size_t>(place * static_cast<double>(t.f.size()))] = value;
          c.arguments[static_cast<size_t>(operand)] = from_reference(t);
          expect_same_bits(c);
        }
      }
    }
  }
}

// 0 keeps the sign that the sum of all products has, those of hidden keys among them.
TEST(Attention, HasTheSignOfItsPartsWhereAllIsZero) {
  Case c = attention({1, 1, 1, 70, 70, 4, 8}, causal);
  RefTensor v = to_reference(c.arguments[2]);
  for (size_t i = 0; i < v.f.size(); ++i) v.f[i] = i % 8 < 4 ? -1e-44 : i < 300 ? -0.0 : 1.0;
  c.arguments[2] = from_reference(v);
  expect_same_bits(c);
}

// The same written out: a product, a softmax of what `masks` makes of "scaled", and a product.
Case by_hand(const std::string &masks, const char *masked, int64_t queries = 75, int64_t keys = 83) {
  const std::string nodes = str_cat(
      R"({"name":"scores","op":"matmul","inputs":["q","k"],"attrs":{"transpose_b":true}},
         {"name":"scaled","op":"mul","inputs":["scores","scale"]},)",
      masks, R"({"name":"weights","op":"softmax","inputs":[")", masked, R"("],"attrs":{"dim":-1}},
         {"name":"y","op":"matmul","inputs":["weights","v"]})");
  const std::vector<std::pair<const char *, std::vector<int64_t>>> inputs = {
      {"q", {2, 3, queries, 20}}, {"k", {2, 3, keys, 20}}, {"v", {2, 3, keys, 18}}, {"scale", {}}};
  const std::string types = join(inputs, ",", [](const auto &input) {
    const std::string dims = join(input.second, ",", [](int64_t dim) { return std::to_string(dim); });
    return str_cat(R"({"name":")", input.first, R"(","type":{"dtype":"f32","shape":[)", dims, "]}}");
  });
  const Result<GraphPtr> graph = read_json(
      str_cat(R"({"kiln":1,"inputs":[)", types, R"(],"nodes":[)", nodes, R"(],"outputs":[{"name":"y","value":"y"}]})"),
      builtin_ops());
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  Case c{.name = "by hand", .graph = *graph, .arguments = {}, .tolerances = {1e-5}, .sizes = {}};
  std::mt19937_64 random(3);
  const Sample sample{.low = -2, .high = 2};
  for (const auto &[name, shape] : inputs) c.arguments.push_back(random_tensor(DType::f32, shape, sample, random));
  return c;
}

TEST(Attention, IsFoundInWhatIsWrittenByHand) {
  const Case c = by_hand("", "scaled");
  EXPECT_EQ(kernel_count(c), 1u);
  expect_same_bits(c);
}

// Query i sees keys up to i + `more`; of those that see none all is NaN.
Case causal_by_hand(int64_t queries, int64_t keys, int64_t more) {
  const std::string shape = str_cat(R"({"shape":[)", queries, ",", keys, R"(],"dim":)");
  return by_hand(str_cat(R"({"name":"key","op":"iota","attrs":)", shape, R"(1}},
                            {"name":"query","op":"iota","attrs":)",
                         shape, R"(0}},
                            {"name":"more","op":"full","attrs":{"dtype":"i64","shape":[],"value":)",
                         more, R"(}},
                            {"name":"last","op":"add","inputs":["query","more"]},
                            {"name":"visible","op":"le","inputs":["key","last"]},
                            {"name":"hidden","op":"full","attrs":{"dtype":"f32","shape":[],"value":"-inf"}},
                            {"name":"masked","op":"where","inputs":["visible","scaled","hidden"]},)"),
                 "masked", queries, keys);
}

TEST(Attention, HasTheBitsOfItsPartsWhereKeysAreHiddenByHand) {
  for (const int64_t more : {-20, -1, 0, 8}) {
    const Case c = causal_by_hand(75, 83, more);
    EXPECT_EQ(kernel_count(c), 1u) << more;
    expect_same_bits(c);
  }
}

// Without a limit on one side: so far behind that it can be no sum of places and sizes.
TEST(Attention, HasTheBitsOfItsPartsWhereABoundIsTheGreatestNumber) {
  const auto within = [](const char *left, const char *right) {
    return by_hand(str_cat(R"({"name":"key","op":"iota","attrs":{"shape":[75,83],"dim":1}},
                              {"name":"query","op":"iota","attrs":{"shape":[75,83],"dim":0}},
                              {"name":"ahead","op":"sub","inputs":["key","query"]},
                              {"name":"left","op":"full","attrs":{"dtype":"i64","shape":[],"value":0,"exact":")",
                           left, R"("}},
                              {"name":"right","op":"full","attrs":{"dtype":"i64","shape":[],"value":0,"exact":")",
                           right, R"("}},
                              {"name":"begun","op":"ge","inputs":["ahead","left"]},
                              {"name":"not_over","op":"le","inputs":["ahead","right"]},
                              {"name":"visible","op":"and","inputs":["begun","not_over"]},
                              {"name":"hidden","op":"full","attrs":{"dtype":"f32","shape":[],"value":"-inf"}},
                              {"name":"masked","op":"where","inputs":["visible","scaled","hidden"]},)"),
                   "masked");
  };
  expect_same_bits(within("-5", "3"));
  expect_same_bits(within("-5", "9223372036854775807"));
  expect_same_bits(within("-9223372036854775808", "3"));
}

// Sums are cut at each 4,096 keys: where tiles see one, two, three of five pieces.
TEST(Attention, HasTheBitsOfItsPartsWherePiecesOfSumsAreHidden) {
  for (const int64_t more : {50, 4080, 8300}) expect_same_bits(causal_by_hand(30, 17000, more));
}

}  // namespace
}  // namespace kiln::testing
