// Convolutions under rounding=relaxed: those with windows of 3 by 3 are made of transformed tiles, where the weights
// are parameters.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "runtime/graph/json.h"
#include "runtime/regions/turn.h"
#include "tests/backend/backends.h"

namespace kiln::testing {
namespace {

struct ConvolutionForm {
  int64_t channels = 16, outputs = 16, height = 12, width = 12;
  std::string padding = "1,1";
  std::string images = "1", attrs = "", window = "3,3", dtype = "f32";
  bool parameters = true;
};

GraphPtr convolution_graph(const ConvolutionForm &form) {
  const auto type = [&](std::string_view name, std::string_view shape) {
    return str_cat(R"({"name":")", name, R"(","type":{"dtype":")", form.dtype, R"(","shape":[)", shape, "]}}");
  };
  const std::string x = type("x", str_cat(form.images, ",", form.channels, ",", form.height, ",", form.width)),
                    weights = str_cat(type("w", str_cat(form.outputs, ",", form.channels, ",", form.window)), ",",
                                      type("b", str_cat(form.outputs)));
  Result<GraphPtr> graph = read_json(
      str_cat(R"({"kiln":1,"inputs":[)", x, form.parameters ? R"(],"parameters":[)" : ",", weights,
              R"(],"nodes":[{"name":"c","op":"conv2d","inputs":["x","w","b"],"attrs":{"padding":[)", form.padding, "]",
              form.attrs, R"(}},{"name":"y","op":"relu","inputs":["c"]}],"outputs":[{"name":"y","value":"y"}]})"),
      builtin_ops());
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return std::move(*graph);
}

// Inputs, then parameters, by random numbers between -1 and 1.
std::vector<TensorData> convolution_arguments(const Graph &graph, const SymbolSizes &sizes) {
  std::mt19937_64 random(7);
  std::vector<TensorData> all;
  for (const auto &side : {graph.inputs(), graph.parameters()})
    for (const uint32_t id : side) {
      const TensorType &type = graph.find(id)->results[0];
      all.push_back(random_tensor(type.dtype, shape_at(type.dims, sizes), {.low = -1, .high = 1}, random));
    }
  return all;
}

std::vector<Results> run_rounded(const GraphPtr &graph, std::span<const GraphCall> calls, Rounding rounding,
                                 const std::string &cpu = "native") {
  CompileOptions options;
  options.rounding = rounding;
  options.cpu = cpu;
  options.want_ir = true;
  Result<std::vector<Results>> results = run_guarded(graph, calls, options, all_settings());
  EXPECT_TRUE(results.ok()) << results.status().message();
  return results.ok() ? std::move(*results) : std::vector<Results>(calls.size());
}

std::vector<double> doubles_of(const TensorData &data) { return to_reference(data).f; }

// As a region of the backend is flattened: the names of its ops.
std::vector<std::string> flat_ops(const GraphPtr &graph, Rounding rounding, std::string_view backend = "cpu") {
  const LowerOptions options{.backend = **find_backend(backend), .region = {.rounding = rounding}};
  const Result<GraphPtr> flat = flatten(graph, builtin_ops(), options);
  EXPECT_TRUE(flat.ok()) << flat.status().message();
  std::vector<std::string> names;
  if (flat.ok())
    for (const Node &node : (*flat)->nodes())
      if (node.op) names.emplace_back(node.op->name);
  return names;
}
int64_t tile_chosen(const ConvolutionForm &form, Rounding rounding = Rounding::relaxed,
                    std::string_view backend = "cpu") {
  const std::vector<std::string> names = flat_ops(convolution_graph(form), rounding, backend);
  const bool is_direct = std::ranges::find(names, "correlate2d") != names.end();
  EXPECT_NE(is_direct, std::ranges::find(names, "winograd_input") != names.end());
  if (is_direct) return 0;
  const LowerOptions options{.backend = **find_backend(backend), .region = {.rounding = rounding}};
  const Result<GraphPtr> flat = flatten(convolution_graph(form), builtin_ops(), options);
  for (const Node &node : (*flat)->nodes())
    if (node.op && node.op->name == "winograd_weight") return node.attrs.find("tile")->second.i64();
  return -1;
}

// The largest difference from sums in float64, in parts of the largest sum.
double part_of_largest(const TensorData &got, const TensorData &exact) {
  const std::vector<double> a = doubles_of(got), b = doubles_of(exact);
  EXPECT_EQ(got.shape, exact.shape);
  double largest = 0, error = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    largest = std::max(largest, std::abs(b[i]));
    error = std::max(error, std::abs(a[i] - b[i]));
    if (std::isnan(a[i])) return INFINITY;
  }
  return largest == 0 ? error : error / largest;
}

TEST(RelaxedConvolutions, AreWithinFourMillionthsOfTheLargestSumInEachFormThatIsTransformed) {
  const ConvolutionForm forms[] = {
      {},                                                                       // whole tiles
      {.height = 13, .width = 11},                                              // parts of tiles
      {.height = 9, .width = 30, .padding = "0,0"},                             // no padding
      {.height = 7, .width = 8, .padding = "2,2"},                              //
      {.height = 10, .width = 10, .padding = "0,2,3,1"},                        // of uneven ends
      {.channels = 19, .outputs = 37, .height = 8, .width = 8},                 // no whole vectors
      {.channels = 64, .outputs = 24, .height = 5, .width = 5},                 //
      {.channels = 33, .outputs = 16, .height = 4, .width = 3, .images = "3"},  // tiles of 2
      {.height = 7, .width = 7, .images = "2"},
      {.channels = 128, .outputs = 32, .height = 16, .width = 20, .images = "2"}};
  for (const ConvolutionForm &form : forms) {
    SCOPED_TRACE(str_cat(form.channels, " to ", form.outputs, ", ", form.height, " by ", form.width, ", padding ",
                         form.padding, ", images ", form.images));
    EXPECT_GT(tile_chosen(form), 0);
    const GraphPtr graph = convolution_graph(form);
    const GraphCall call{{}, convolution_arguments(*graph, {})};
    const Result<std::vector<TensorData>> exact = run_on_reference(*graph, call.arguments);
    ASSERT_TRUE(exact.ok()) << exact.status().message();
    for (const std::string &cpu : levels_and_native()) {
      const std::vector<Results> results = run_rounded(graph, {&call, 1}, Rounding::relaxed, cpu);
      ASSERT_FALSE(results[0].empty());
      EXPECT_LE(part_of_largest(results[0][0], (*exact)[0]), 4e-6) << cpu;
    }
  }
}

TEST(RelaxedConvolutions, OfASymbolicBatchServeEachSize) {
  const ConvolutionForm form{.channels = 16, .outputs = 17, .height = 9, .width = 14, .images = "\"n\""};
  EXPECT_EQ(tile_chosen(form), 4);
  const GraphPtr graph = convolution_graph(form);
  std::vector<GraphCall> calls;
  for (const int64_t n : {3, 1, 0, 5}) calls.push_back({{{"n", n}}, convolution_arguments(*graph, {{"n", n}})});
  for (GraphCall &call : calls)  // one binding
    for (size_t k = 1; k < 3; ++k) call.arguments[k] = calls[0].arguments[k];
  const std::vector<Results> results = run_rounded(graph, calls, Rounding::relaxed);
  for (size_t i = 0; i < calls.size(); ++i) {
    const Result<std::vector<TensorData>> exact = run_on_reference(*graph, calls[i].arguments);
    ASSERT_TRUE(exact.ok() && !results[i].empty());
    EXPECT_LE(part_of_largest(results[i][0], (*exact)[0]), 4e-6) << calls[i].sizes.at("n");
  }
}

TEST(RelaxedConvolutions, OfHalvesAreTransformedInThirtyTwoBits) {
  const ConvolutionForm form{.dtype = "f16"};
  EXPECT_EQ(tile_chosen(form), 4);
  const GraphPtr graph = convolution_graph(form);
  const GraphCall call{{}, convolution_arguments(*graph, {})};
  const Result<std::vector<TensorData>> exact = run_on_reference(*graph, call.arguments);
  const std::vector<Results> results = run_rounded(graph, {&call, 1}, Rounding::relaxed);
  ASSERT_TRUE(exact.ok() && !results[0].empty());
  EXPECT_LE(part_of_largest(results[0][0], (*exact)[0]), 0x1p-10);
}

TEST(RelaxedConvolutions, AreSumsOfProductsAsUnderStrictRoundingWhereTilesDoNotFit) {
  const ConvolutionForm forms[] = {{.channels = 15},
                                   {.outputs = 15},
                                   {.height = 2, .width = 2},
                                   {.attrs = R"(,"stride":[2,2])"},
                                   {.attrs = R"(,"stride":[1,2])"},
                                   {.attrs = R"(,"dilation":[2,2])"},
                                   {.window = "3,1"},
                                   {.padding = "2,2", .window = "5,5"},
                                   {.parameters = false}};
  for (const ConvolutionForm &form : forms)
    EXPECT_EQ(tile_chosen(form), 0) << form.channels << " to " << form.outputs << ", " << form.window << form.attrs;
}

TEST(RelaxedConvolutions, AreTransformedOnTheCpuAloneAndNotUnderStrictRounding) {
  EXPECT_EQ(tile_chosen({}), 4);
  EXPECT_EQ(tile_chosen({}, Rounding::strict), 0);
  EXPECT_EQ(tile_chosen({}, Rounding::relaxed, "cuda"), 0);
}

TEST(RelaxedConvolutions, HaveSmallTilesWhereLargeOnesWouldBeFewRowsForTheirWeights) {
  EXPECT_EQ(tile_chosen({.channels = 64, .outputs = 64, .height = 56, .width = 56}), 4);
  EXPECT_EQ(tile_chosen({.channels = 256, .outputs = 256, .height = 7, .width = 7}), 4);
  EXPECT_EQ(tile_chosen({.channels = 512, .outputs = 512, .height = 7, .width = 7}), 2);
  EXPECT_EQ(tile_chosen({.channels = 512, .outputs = 512, .height = 7, .width = 7, .images = "8"}), 4);
  EXPECT_EQ(tile_chosen({.channels = 64, .outputs = 64, .height = 4, .width = 4}), 2);
}

// What jit/kernel/kernel.h says of contractions: products are added up in order.
TEST(StrictConvolutions, AreTheBitsOfSumsInOrderOfWhatRelaxedOnesRoundOtherwise) {
  const ConvolutionForm form{.channels = 16, .outputs = 16, .height = 8, .width = 8, .padding = "0,0"};
  const GraphPtr graph = convolution_graph(form);
  GraphCall call{{}, convolution_arguments(*graph, {})};
  std::memset(call.arguments[2].bytes.data(), 0, call.arguments[2].bytes.size());
  const std::vector<float> x = [&] {
    std::vector<float> all(size_t{16} * 8 * 8);
    std::memcpy(all.data(), call.arguments[0].bytes.data(), all.size() * sizeof(float));
    return all;
  }();
  std::vector<float> w(size_t{16} * 16 * 9);
  std::memcpy(w.data(), call.arguments[1].bytes.data(), w.size() * sizeof(float));
  const auto in_order = [&](bool fused) {
    std::vector<float> y;
    for (size_t o = 0; o < 16; ++o)
      for (size_t at = 0; at < 36; ++at) {
        float sum = 0;
        for (size_t k = 0; k < 144; ++k) {
          const float value = x[k / 9 * 64 + (at / 6 + k / 3 % 3) * 8 + at % 6 + k % 3], weight = w[o * 144 + k];
          const float product = value * weight;
          sum = fused ? std::fma(value, weight, sum) : sum + product;
        }
        y.push_back(std::max(sum, 0.0F));
      }
    return y;
  };
  for (const std::string &cpu : levels_and_native()) {
    const std::vector<float> expected = in_order(Target::by_name(cpu)->features.has(Feature::fma));
    const std::vector<Results> strict = run_rounded(graph, {&call, 1}, Rounding::strict, cpu),
                               relaxed = run_rounded(graph, {&call, 1}, Rounding::relaxed, cpu);
    ASSERT_EQ(strict[0][0].bytes.size(), expected.size() * sizeof(float));
    EXPECT_EQ(std::memcmp(strict[0][0].bytes.data(), expected.data(), strict[0][0].bytes.size()), 0) << cpu;
    EXPECT_NE(strict[0][0].bytes, relaxed[0][0].bytes) << cpu;
  }
}

TEST(RelaxedConvolutions, TransformAndPackTheirWeightsOnceABinding) {
  const GraphPtr graph = convolution_graph({});
  CompileOptions options;
  options.code = false;
  options.rounding = Rounding::relaxed;
  const Result<Compiled> made = compile_alone(graph, options);
  ASSERT_TRUE(made.ok()) << made.status().message();
  const Plan &plan = made->executable->plan();
  EXPECT_EQ(plan.prepare.size(), 2u) << print(plan);
  ASSERT_EQ(plan.prepared.size(), 2u) << "as they are transformed, and panels: " << print(plan);
  EXPECT_EQ(plan.prepared[1].size_bytes.integer(), 36 * 16 * 16 * 4);
  EXPECT_EQ(plan.steps.size(), 5u) << "channels last, tiles, products, images, channels first with relu: "
                                   << print(plan);
}

// And not what they were made of.
TEST(RelaxedConvolutions, KeepThePanelsOfTheirTransformedWeightsAlone) {
  const GraphPtr graph = convolution_graph({});
  CompileOptions options;
  options.rounding = Rounding::relaxed;
  const Result<Compiled> made = compile_alone(graph, options);
  ASSERT_TRUE(made.ok()) << made.status().message();
  const Result<std::unique_ptr<Call>> call = Call::create(made->executable);
  ASSERT_TRUE(call.ok()) << call.status().message();
  std::vector<TensorData> arguments = convolution_arguments(*graph, {});
  arguments.push_back({DType::f32, {1, 16, 12, 12}, Bytes(size_t{16} * 12 * 12 * sizeof(float))});
  std::vector<ArrayRef> arrays;
  for (TensorData &data : arguments)
    arrays.push_back(
        {data.bytes.data(), data.dtype, static_cast<uint32_t>(data.shape.size()), data.shape.data(), nullptr});
  for (uint32_t parameter : {1u, 2u}) {
    const Status bound = (*call)->bind(parameter, arrays[parameter], nullptr);
    ASSERT_TRUE(bound.ok()) << bound.message();
  }
  const Status status = (*call)->run(std::vector{arrays[0], arrays[3]});
  ASSERT_TRUE(status.ok()) << status.message();
  uint64_t bytes = 0;
  for (const auto &part : (*call)->prepared_parts()) bytes += part->private_bytes;
  EXPECT_EQ(bytes, 36u * 16 * 16 * 4);
}

// Between the transforms of one convolution and of the next channels stay last.
TEST(RelaxedConvolutions, AfterOneAnotherChangeTheOrderOfChannelsAtTheEndsAlone) {
  const Result<GraphPtr> graph = read_json(R"({"kiln":1,
      "inputs":[{"name":"x","type":{"dtype":"f32","shape":[1,16,12,12]}}],
      "parameters":[{"name":"v","type":{"dtype":"f32","shape":[16,16,3,3]}},
                    {"name":"w","type":{"dtype":"f32","shape":[16,16,3,3]}}],
      "nodes":[{"name":"a","op":"correlate2d","inputs":["x","v"],"attrs":{"padding":[1,1]}},
               {"name":"r","op":"relu","inputs":["a"]},
               {"name":"y","op":"correlate2d","inputs":["r","w"],"attrs":{"padding":[1,1]}}],
      "outputs":[{"name":"y","value":"y"}]})",
                                           builtin_ops());
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  CompileOptions options;
  options.code = false;
  options.rounding = Rounding::relaxed;
  const Result<Compiled> made = compile_alone(*graph, options);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(made->executable->plan().steps.size(), 9u) << print(made->executable->plan());
}

TEST(RelaxedConvolutions, SpreadWhatIsNotFiniteOverTheTilesThatReadIt) {
  const ConvolutionForm form{.height = 12, .width = 12};
  const GraphPtr graph = convolution_graph(form);
  GraphCall call{{}, convolution_arguments(*graph, {})};
  const float nan = NAN;
  std::memcpy(call.arguments[0].bytes.data() + (5 * 12 + 1) * sizeof(float), &nan, sizeof nan);  // channel 0, row 5
  const std::vector<Results> relaxed = run_rounded(graph, {&call, 1}, Rounding::relaxed),
                             strict = run_rounded(graph, {&call, 1}, Rounding::strict);
  ASSERT_FALSE(relaxed[0].empty() || strict[0].empty());
  const std::vector<double> tiles = doubles_of(relaxed[0][0]), sums = doubles_of(strict[0][0]);
  for (size_t i = 0; i < tiles.size(); ++i) {
    const size_t row = i / 12 % 12, column = i % 12;
    const bool is_in_window = row >= 4 && row <= 6 && column <= 2, is_in_tile = row >= 4 && row < 8 && column < 4;
    EXPECT_EQ(std::isnan(sums[i]), is_in_window) << row << ", " << column;
    EXPECT_EQ(std::isnan(tiles[i]), is_in_tile) << row << ", " << column;
  }
}

}  // namespace
}  // namespace kiln::testing
