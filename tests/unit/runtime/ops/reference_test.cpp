// The reference kernels against numbers that were computed by hand, and the running of graphs on them.
#include <cmath>
#include <limits>

#include "jit/base/small_float.h"
#include "tests/unit/runtime/ops/fixture.h"

namespace kiln::testing {
namespace {

using ops::f32;
using ops::i64;
using ops::ints;
using ops::sym;

constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();

TEST(Reference, ConvertsWithSaturation) {
  expect_integers(run_op("convert", {floats({6}, {1.9, -1.9, 1e30, -1e30, nan, inf})}, {{"dtype", DType::i64}}), {6},
                  {1, -1, INT64_MAX, INT64_MIN, 0, INT64_MAX});
  expect_integers(run_op("convert", {floats({3}, {0, -0.0, nan})}, {{"dtype", DType::boolean}}), {3}, {0, 0, 1});
}

TEST(Reference, CountsAlongADim) {
  expect_integers(run_op("iota", {}, {{"shape", AttrValue(Shape{2, 3})}, {"dim", 0}}), {2, 3}, {0, 0, 0, 1, 1, 1});
  expect_integers(run_op("iota", {}, {{"shape", AttrValue(Shape{2, 3})}, {"dim", -1}}), {2, 3}, {0, 1, 2, 0, 1, 2});
}

TEST(Reference, RoundsHalvesToEven) {
  expect_floats(run_op("round", {floats({5}, {0.5, 1.5, 2.5, -0.5, -1.5})}), {5}, {0, 2, 2, 0, -2});
  expect_floats(run_op("floor", {floats({3}, {0.5, -0.5, -2})}), {3}, {0, -1, -2});
}

TEST(Reference, DividesIntegersTowardZeroAndTakesRemaindersOfTheDivisorsSign) {
  const RefTensor a = integers({4}, {7, -7, 7, -7}), b = integers({4}, {2, 2, -2, -2});
  expect_integers(run_op("div", {a, b}), {4}, {3, -3, -3, 3});
  expect_integers(run_op("remainder", {a, b}), {4}, {1, 1, -1, -1});
  expect_integers(run_op("div", {integers({1}, {INT64_MIN}), integers({1}, {-1})}), {1}, {INT64_MIN});
  expect_floats(run_op("remainder", {floats({2}, {-7.5, 7.5}), floats({1}, {2})}), {2}, {0.5, 1.5});
  expect_floats(run_op("remainder", {floats({3}, {-3e38, 0.001, -1}), floats({3}, {3, 1e-45, inf})}), {3},
                {3 + std::fmod(-3e38, 3), std::fmod(0.001, 1e-45), inf});
}

TEST(Reference, ReportsIntegerDivisionByZero) {
  EXPECT_EQ(run_op("div", {integers({2}, {1, 2}), integers({2}, {1, 0})}).status().message(),
            "node 'y' (div): integer division by zero: operand b holds 0");
  expect_floats(run_op("div", {floats({3}, {1, 0, -1}), floats({}, {0})}), {3}, {inf, nan, -inf});
}

TEST(Reference, RaisesIntegersToPowers) {
  expect_integers(run_op("pow", {integers({6}, {3, -2, 2, 1, -1, 2}), integers({6}, {4, 3, -1, -5, -3, 64})}), {6},
                  {81, -8, 0, 1, -1, 0});
}

TEST(Reference, RoundsSumsAndFunctionsOf64BitsOnce) {
  const auto doubles = [](std::vector<int64_t> shape, std::vector<double> values) {
    return RefTensor{DType::f64, std::move(shape), std::move(values), {}};
  };
  const RefTensor x = doubles({1, 3}, {0x1p53, 1, 1}), ones = doubles({1, 3}, {1, 1, 1});
  expect_floats(run_op("sum", {x}), {}, {0x1p53 + 2});
  expect_floats(run_op("mean", {doubles({4}, {0x1p53, 1, 1, 0})}), {}, {0x1p51 + 0.5});
  expect_floats(run_op("cumsum", {x}, {{"dim", 1}}), {1, 3}, {0x1p53, 0x1p53, 0x1p53 + 2});
  expect_floats(run_op("linear", {x, ones}), {1, 1}, {0x1p53 + 2});
  expect_floats(run_op("matmul", {x, ones}, {{"transpose_b", true}}), {1, 1}, {0x1p53 + 2});
  EXPECT_EQ(run_op("rsqrt", {doubles({1}, {2})})->f[0], 0x1.6a09e667f3bcdp-1);
}

TEST(Reference, PropagatesNaNThroughMaximumAndMinimum) {
  expect_floats(run_op("maximum", {floats({3}, {nan, 1, 2}), floats({3}, {1, nan, 3})}), {3}, {nan, nan, 3});
  expect_floats(run_op("minimum", {floats({3}, {nan, 1, 2}), floats({3}, {1, nan, 3})}), {3}, {nan, nan, 2});
  expect_floats(run_op("max", {floats({2, 2}, {1, nan, 3, 2})}, {{"dims", ints({1})}}), {2}, {nan, 3});
  expect_floats(run_op("relu", {floats({3}, {nan, -1, 2})}), {3}, {nan, 0, 2});
}

TEST(Reference, ReducesOverNothingToTheIdentity) {
  const RefTensor nothing = floats({2, 0}, {});
  const AttrMap rows = {{"dims", ints({1})}};
  expect_floats(run_op("sum", {nothing}, rows), {2}, {0, 0});
  expect_floats(run_op("prod", {nothing}, rows), {2}, {1, 1});
  expect_floats(run_op("max", {nothing}, rows), {2}, {-inf, -inf});
  expect_floats(run_op("min", {nothing}, rows), {2}, {inf, inf});
  expect_floats(run_op("mean", {nothing}, rows), {2}, {nan, nan});
}

TEST(Reference, Reduces) {
  const RefTensor x = floats({2, 3}, {1, 2, 3, 4, 5, 7});
  expect_floats(run_op("sum", {x}), {}, {22});
  expect_floats(run_op("sum", {x}, {{"dims", ints({0})}, {"keepdim", true}}), {1, 3}, {5, 7, 10});
  expect_floats(run_op("mean", {x}, {{"dims", ints({-1})}}), {2}, {2, 16.0 / 3});
  expect_floats(run_op("prod", {x}, {{"dims", ints({1})}}), {2}, {6, 140});
}

TEST(Reference, FindsTheFirstLargestAndCountsNaNAsLargest) {
  expect_integers(run_op("argmax", {floats({3, 3}, {1, 5, 5, 2, nan, nan, -inf, -inf, -inf})}), {3}, {1, 1, 0});
  expect_integers(run_op("argmax", {integers({2, 2}, {1, 4, 3, 2})}, {{"dim", 0}, {"keepdim", true}}), {1, 2}, {1, 0});
}

TEST(Reference, WalksViews) {
  const RefTensor x = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  expect_floats(run_op("permute", {x}, {{"dims", ints({1, 0})}}), {3, 2}, {1, 4, 2, 5, 3, 6});
  expect_floats(run_op("reshape", {x}, {{"shape", AttrValue(Shape{3, 2})}}), {3, 2}, {1, 2, 3, 4, 5, 6});
  expect_floats(run_op("slice", {x}, {{"dim", 1}, {"start", Dim(-2)}, {"end", Dim(3)}}), {2, 2}, {2, 3, 5, 6});
  expect_floats(run_op("slice", {x}, {{"dim", 1}, {"end", Dim(3)}, {"step", 2}}), {2, 2}, {1, 3, 4, 6});
  expect_floats(run_op("expand", {floats({2, 1}, {1, 2})}, {{"shape", AttrValue(Shape{2, 2, 2})}}), {2, 2, 2},
                {1, 1, 2, 2, 1, 1, 2, 2});
}

TEST(Reference, JoinsAndIndexes) {
  const RefTensor x = floats({2, 2}, {1, 2, 3, 4});
  expect_floats(run_op("concat", {x, floats({2, 1}, {8, 9})}, {{"dim", 1}}), {2, 3}, {1, 2, 8, 3, 4, 9});
  expect_floats(run_op("pad", {floats({2}, {1, 2})}, {{"low", ints({1})}, {"high", ints({2})}, {"value", 7.0}}), {5},
                {7, 1, 2, 7, 7});
  expect_floats(run_op("gather", {x, integers({2, 1}, {1, 0})}, {{"dim", 1}}), {2, 1}, {2, 3});
  expect_floats(run_op("embedding", {x, integers({3}, {1, 0, 1})}), {3, 2}, {3, 4, 1, 2, 3, 4});
  EXPECT_EQ(run_op("embedding", {x, integers({1}, {2})}).status().message(),
            "node 'y' (embedding): index 2 is out of range: expected 0 <= index < 2");
  EXPECT_EQ(run_op("gather", {x, integers({1, 1}, {-1})}, {{"dim", 0}}).status().code(), Code::out_of_range);
}

TEST(Reference, MultipliesMatrices) {
  const RefTensor a = floats({2, 3}, {1, 2, 3, 4, 5, 6}), b = floats({3, 2}, {7, 8, 9, 10, 11, 12});
  expect_floats(run_op("matmul", {a, b}), {2, 2}, {58, 64, 139, 154});
  expect_floats(run_op("matmul", {a, a}, {{"transpose_b", true}}), {2, 2}, {14, 32, 32, 77});
  expect_floats(run_op("matmul", {a, a}, {{"transpose_a", true}}), {3, 3}, {17, 22, 27, 22, 29, 36, 27, 36, 45});
  expect_floats(run_op("linear", {a, floats({1, 3}, {1, 0, -1}), floats({1}, {10})}), {2, 1}, {8, 8});
}

TEST(Reference, Convolves) {
  const RefTensor x = floats({1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  expect_floats(run_op("conv2d", {x, floats({1, 1, 2, 2}, {1, 2, 3, 4}), floats({1}, {0.5})}), {1, 1, 2, 2},
                {37.5, 47.5, 67.5, 77.5});
  expect_floats(run_op("conv2d", {x, floats({1, 1, 3, 3}, {0, 0, 0, 0, 1, 0, 0, 0, 1})},
                       {{"padding", ints({1, 1})}, {"stride", ints({2, 2})}}),
                {1, 1, 2, 2}, {6, 3, 7, 9});
  expect_floats(run_op("conv2d", {floats({1, 2, 1, 1}, {3, 5}), floats({2, 1, 1, 1}, {10, 100})}, {{"groups", 2}}),
                {1, 2, 1, 1}, {30, 500});
  const RefTensor row = floats({1, 1, 4}, {1, 2, 3, 4}), pair = floats({1, 1, 2}, {10, 1});
  expect_floats(run_op("conv1d", {row, pair}, {{"dilation", ints({2})}}), {1, 1, 2}, {13, 24});
  expect_floats(run_op("conv1d", {row, pair}, {{"padding", ints({0, 1})}}), {1, 1, 4}, {12, 23, 34, 40});
  expect_floats(run_op("conv_transpose1d", {row, pair}, {{"stride", ints({2})}}), {1, 1, 8},
                {10, 1, 20, 2, 30, 3, 40, 4});
  expect_floats(run_op("conv_transpose1d", {row, pair}, {{"padding", ints({1, 0})}}), {1, 1, 4}, {21, 32, 43, 4});
}

TEST(Reference, MakesColumnsOfWindowsAndBack) {
  const RefTensor columns = floats({1, 2, 3}, {1, 2, 3, 2, 3, 4});
  expect_floats(run_op("im2col", {floats({1, 1, 4}, {1, 2, 3, 4})}, {{"kernel", ints({2})}}), {1, 2, 3},
                {1, 2, 3, 2, 3, 4});
  expect_floats(run_op("col2im", {columns}, {{"kernel", ints({2})}, {"size", ints({4})}}), {1, 1, 4}, {1, 4, 6, 4});
}

TEST(Reference, Resizes) {
  const RefTensor x = floats({1, 1, 2}, {0, 4});
  expect_floats(run_op("resize_nearest", {x}, {{"size", ints({4})}}), {1, 1, 4}, {0, 0, 4, 4});
  expect_floats(run_op("resize_linear", {x}, {{"size", ints({4})}}), {1, 1, 4}, {0, 1, 3, 4});
  expect_floats(run_op("resize_linear", {x}, {{"size", ints({5})}, {"align_corners", true}}), {1, 1, 5},
                {0, 1, 2, 3, 4});
  expect_floats(run_op("resize_cubic", {x}, {{"size", ints({3})}, {"align_corners", true}}), {1, 1, 3}, {0, 2, 4});
}

TEST(Reference, Pads) {
  const auto padded = [](const char *mode, std::vector<int64_t> low) {
    return run_op("pad", {floats({3}, {1, 2, 3})}, {{"low", ints(low)}, {"high", ints({1})}, {"mode", mode}});
  };
  expect_floats(padded("reflect", {2}), {6}, {3, 2, 1, 2, 3, 2});
  expect_floats(padded("replicate", {2}), {6}, {1, 1, 1, 2, 3, 3});
  expect_floats(padded("circular", {2}), {6}, {2, 3, 1, 2, 3, 1});
  expect_floats(padded("constant", {-1}), {3}, {2, 3, 0});
}

TEST(Reference, Pools) {
  const RefTensor x = floats({1, 1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  expect_floats(run_op("max_pool2d", {x}, {{"kernel", ints({2, 2})}}), {1, 1, 1, 2}, {6, 8});
  expect_floats(run_op("avg_pool2d", {x}, {{"kernel", ints({2, 2})}}), {1, 1, 1, 2}, {3.5, 5.5});
  expect_floats(run_op("avg_pool2d", {floats({1, 1, 1, 1}, {8})},
                       {{"kernel", ints({2, 2})}, {"stride", ints({1, 1})}, {"padding", ints({1, 1})}}),
                {1, 1, 2, 2}, {2, 2, 2, 2});  // padding counts
}

TEST(Reference, Normalises) {
  expect_floats(run_op("rms_norm", {floats({1, 2}, {3, 4}), floats({2}, {1, 2})}, {{"eps", 0.0}}), {1, 2},
                {3 / std::sqrt(12.5), 8 / std::sqrt(12.5)});
  expect_floats(
      run_op("layer_norm", {floats({1, 2}, {1, 3}), floats({2}, {2, 2}), floats({2}, {1, 1})}, {{"eps", 0.0}}), {1, 2},
      {-1, 3});
  expect_floats(run_op("batch_norm",
                       {floats({1, 2}, {5, 7}), floats({2}, {2, 3}), floats({2}, {1, -1}), floats({2}, {4, 7}),
                        floats({2}, {0.25, 1})},
                       {{"eps", 0.0}}),
                {1, 2}, {5, -1});
  expect_floats(run_op("softmax", {floats({2, 2}, {0, std::log(3.0), 1000, -inf})}), {2, 2}, {0.25, 0.75, 1, 0});
}

TEST(Reference, Activates) {
  expect_floats(run_op("sigmoid", {floats({2}, {0, std::log(3.0)})}), {2}, {0.5, 0.75});
  expect_floats(run_op("silu", {floats({2}, {0, std::log(3.0)})}), {2}, {0, 0.75 * std::log(3.0)});
  expect_floats(run_op("gelu", {floats({3}, {0, 1, -1})}), {3}, {0, 0.8413447, -0.1586553});
  expect_floats(run_op("gelu", {floats({2}, {1, -1})}, {{"approximate", "tanh"}}), {2}, {0.8411920, -0.1588080});
}

TEST(Reference, Attends) {
  // Scores are 0, so that visible keys count alike.
  const RefTensor q = floats({1, 1, 2, 1}, {0, 0}), k = floats({1, 1, 3, 1}, {1, 2, 3}),
                  v = floats({1, 1, 3, 1}, {3, 6, 12});
  expect_floats(run_op("attention", {q, k, v}), {1, 1, 2, 1}, {7, 7});
  expect_floats(run_op("attention", {q, k, v}, {{"causal", true}}), {1, 1, 2, 1}, {4.5, 7});  // j <= i + 1
  expect_floats(run_op("attention", {q, k, v, booleans({2, 3}, {0, 0, 1, 0, 0, 0})}), {1, 1, 2, 1}, {12, 0});
  expect_floats(run_op("attention", {floats({1, 1, 1, 1}, {1}), floats({1, 1, 2, 1}, {0, std::log(3.0)}),
                                     floats({1, 1, 2, 1}, {0, 4})}),
                {1, 1, 1, 1}, {3});
}

TEST(Reference, SharesKeysAmongTheHeadsOfAGroup) {
  const RefTensor q = floats({1, 4, 1, 1}, {0, 0, 0, 0}), k = floats({1, 2, 1, 1}, {0, 0}),
                  v = floats({1, 2, 1, 1}, {5, 7});
  expect_floats(run_op("attention", {q, k, v}), {1, 4, 1, 1}, {5, 5, 7, 7});
}

TEST(Reference, RotatesPairs) {
  const double c = std::cos(1), s = std::sin(1);
  const RefTensor x = floats({1, 4}, {1, 0, 0, 2});
  const double c2 = std::cos(0.01), s2 = std::sin(0.01);  // 10000^(-2/4)
  expect_floats(run_op("rope", {x, integers({1}, {1})}), {1, 4}, {c, -2 * s2, s, 2 * c2});
  expect_floats(run_op("rope", {x, integers({1}, {1})}, {{"interleaved", true}}), {1, 4}, {c, s, -2 * s2, 2 * c2});
}

TEST(Reference, UnpacksTheLowerFourBitsFirst) {
  const RefTensor bytes{DType::u8, {2, 2}, {}, {0x21, 0xf8, 0x07, 0x90}}, zeros{DType::u8, {2, 2}, {}, {0, 1, 2, 3}};
  const RefTensor scales = floats({2}, {1, 0.5});
  expect_floats(run_op("dequantize", {bytes, scales}, {{"bits", 4}}), {2, 4}, {1, 2, -8, -1, 3.5, 0, 0, -3.5});
  expect_floats(run_op("dequantize", {bytes, scales}, {{"bits", 4}, {"signed", false}}), {2, 4},
                {1, 2, 8, 15, 3.5, 0, 0, 4.5});
  expect_floats(
      run_op("dequantize", {bytes, floats({2, 2}, {1, 2, 3, 4}), zeros}, {{"bits", 4}, {"axis", 1}, {"group", 2}}),
      {2, 4}, {1, 2, -18, -4, 15, -6, -12, -40});
}

// ---- graphs

TEST(RunReference, BindsSymbolsAndNamesAWrongShape) {
  Edit edit;
  const ValueId x = *edit.input("x", f32({sym("n"), 2 * sym("n")}));
  ASSERT_TRUE(edit.declare_symbol("n", {.min = 1, .max = 8, .divisor = 2}).ok());
  const std::vector<ValueId> sum = {{*edit.add(find_op("sum"), std::vector{x}), 0}};
  ASSERT_TRUE(edit.set_output_values(sum).ok());
  const GraphPtr graph = *edit.finish();
  auto message = [&](const RefTensor &given) {
    const RefTensor *pointer = &given;
    return run_reference(*graph, {&pointer, 1}).status().message();
  };
  EXPECT_EQ(message(floats({2, 4}, std::vector<double>(8, 1))), "");
  EXPECT_EQ(message(floats({2, 5}, std::vector<double>(10, 1))), "'x' is given as f32[2, 5], expected f32[n, 2*n]");
  EXPECT_EQ(message(integers({2, 4}, std::vector<int64_t>(8, 1))), "'x' is given as i64[2, 4], expected f32[n, 2*n]");
  EXPECT_EQ(message(floats({3, 6}, std::vector<double>(18, 1))), "symbol 'n' is 3, expected 1 to 8 in steps of 2");
}

TEST(RunReference, ChecksEqualitiesAtTheCall) {
  Edit edit;
  const std::vector<ValueId> inputs = {*edit.input("a", f32({sym("n")})), *edit.input("b", f32({sym("m")}))};
  const std::vector<ValueId> outputs = {{*edit.add(find_op("add"), inputs, {}, "y"), 0}};
  ASSERT_TRUE(edit.set_output_values(outputs).ok());
  const GraphPtr graph = *edit.finish();
  const RefTensor two = floats({2}, {1, 2}), three = floats({3}, {1, 2, 3});
  const std::vector<const RefTensor *> unequal = {&two, &three};
  EXPECT_EQ(run_reference(*graph, unequal).status().message(),
            "node 'y' (add): shapes [n] and [m] do not broadcast: dims at -1 must be equal; m is 3, n is 2");
}

TEST(RunReference, ReportsWhatCopyWrites) {
  Edit edit;
  const ValueId state = *edit.input("state", f32({2})), x = *edit.input("x", f32({2}));
  const ValueId sum = {*edit.add(find_op("add"), std::vector{state, x}), 0};
  ASSERT_TRUE(edit.add(find_op("copy_"), std::vector{state, sum}).ok());
  ASSERT_TRUE(edit.set_output_values(std::vector{sum}).ok());
  const GraphPtr graph = *edit.finish();
  const RefTensor a = floats({2}, {1, 2}), b = floats({2}, {10, 20});
  const std::vector<const RefTensor *> inputs = {&a, &b};
  std::map<size_t, RefTensor> copied;
  ASSERT_TRUE(run_reference(*graph, inputs, &copied).ok());
  ASSERT_EQ(copied.size(), 1u);
  expect_floats(copied.at(0), {2}, {11, 22});
}

TEST(Reference, MultipliesThePaddingOfAConvolutionAsZeros) {
  expect_floats(run_op("correlate2d", {floats({1, 1, 1, 2}, {1, 2}), floats({1, 1, 1, 2}, {inf, 0.5})},
                       {{"padding", ints({0, 1})}}),
                {1, 1, 1, 3}, {nan, inf, inf});
}

TEST(Reference, LetsItsCallerChangeWhatANodeHasComputed) {
  Edit edit;
  const ValueId x = *edit.input("x", f32({2}));
  const ValueId negated = {*edit.add(find_op("neg"), std::vector{x}), 0};
  const ValueId view = {*edit.add(find_op("unsqueeze"), std::vector{negated}, {{"dims", ints({0})}}), 0};
  const ValueId absolute = {*edit.add(find_op("abs"), std::vector{view}), 0};
  ASSERT_TRUE(edit.set_output_values(std::vector{absolute}).ok());
  const GraphPtr graph = *edit.finish();
  const RefTensor a = floats({2}, {1, 2});
  const std::vector<const RefTensor *> inputs = {&a};
  std::vector<std::string> seen;
  const Result<std::vector<RefTensor>> results =
      run_reference(*graph, inputs, nullptr, [&](const Graph &, const Node &node, const ReferenceContext &c) {
        seen.push_back(node.name);
        EXPECT_EQ(c.inputs.size(), 1u);
        if (node.name == "neg") c.results[0].f = {-5, -6};
      });
  ASSERT_TRUE(results.ok());
  EXPECT_EQ(seen, (std::vector<std::string>{"neg", "abs"}));  // views compute nothing
  expect_floats((*results)[0], {1, 2}, {5, 6});
}

// ---- storage

TEST(RefTensorStorage, ReadsBackEveryDtype) {
  for (int number = 1; number <= dtype_count; ++number) {
    const auto dtype = static_cast<DType>(number);
    RefTensor t{dtype, {3}, {}, {}};
    t.allocate();
    if (t.is_float())
      t.f = {1.5, -0.25, 0};
    else
      t.i = {1, 0, dtype_info(dtype).is_signed ? -5 : 1};
    const TensorData data = from_reference(t);
    EXPECT_EQ(data.bytes.size(), 3 * size_of(dtype));
    const RefTensor back = to_reference(data);
    EXPECT_EQ(back.f, t.f) << name_of(dtype);
    EXPECT_EQ(back.i, t.i) << name_of(dtype);
  }
}

TEST(RefTensorStorage, RoundsHalfPrecisionOnce) {
  EXPECT_EQ(encode_float(1, f16_format), 0x3c00);
  EXPECT_EQ(encode_float(-2, f16_format), 0xc000);
  EXPECT_EQ(encode_float(65504, f16_format), 0x7bff);
  EXPECT_EQ(encode_float(65519.9, f16_format), 0x7bff);
  EXPECT_EQ(encode_float(65520, f16_format), 0x7c00);    // rounds to infinity
  EXPECT_EQ(encode_float(0x1p-24, f16_format), 0x0001);  // the least
  EXPECT_EQ(encode_float(0x1p-25, f16_format), 0x0000);  // half of it: to even
  EXPECT_EQ(encode_float(0x1.8p-25, f16_format), 0x0001);
  EXPECT_EQ(encode_float(1 + 0x1p-11, f16_format), 0x3c00);  // a tie, to even
  EXPECT_EQ(encode_float(1 + 3 * 0x1p-11, f16_format), 0x3c02);
  EXPECT_EQ(encode_float(1 + 0x1p-11 + 0x1p-40, f16_format), 0x3c01);
  EXPECT_EQ(encode_float(nan, f16_format), 0x7e00);
  EXPECT_EQ(encode_float(1, bf16_format), 0x3f80);
  EXPECT_EQ(encode_float(3.4e38, bf16_format), 0x7f80);
}

TEST(RefTensorStorage, DecodesEveryHalfAndEncodesItBack) {
  for (const FloatFormat format : {f16_format, bf16_format})
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
      const double value = decode_float(static_cast<uint16_t>(bits), format);
      if (std::isnan(value)) continue;
      ASSERT_EQ(encode_float(value, format), bits);
    }
}

}  // namespace
}  // namespace kiln::testing
