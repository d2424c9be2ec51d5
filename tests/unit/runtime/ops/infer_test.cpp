// What inference concludes, what it leaves to a call, and what it refuses, with which words.
#include "tests/unit/runtime/ops/fixture.h"

namespace kiln::testing {
namespace {

using ops::boolean;
using ops::f32;
using ops::i64;
using ops::ints;
using ops::sym;

AttrMap shape(Shape dims) { return {{"shape", AttrValue(std::move(dims))}}; }

TEST(Infer, BroadcastsAsNumpyDoes) {
  EXPECT_EQ(inferred("add", {f32({7, 1, 5}), f32({3, 1})}), "f32[7, 3, 5]");
  EXPECT_EQ(inferred("add", {f32({sym("n"), 1}), f32({4})}), "f32[n, 4]");
  EXPECT_EQ(inferred("where", {boolean({3, 1}), f32({}), f32({5})}), "f32[3, 5]");
  EXPECT_EQ(inferred("lt", {f32({3}), f32({3})}), "bool[3]");
}

TEST(Infer, LeavesTheEqualityOfSymbolsToACall) {
  EXPECT_EQ(checked_at_a_call("add", {f32({sym("n")}), f32({sym("m")})}), "m = n");
  EXPECT_EQ(checked_at_a_call("add", {f32({sym("n")}), f32({sym("n")})}), "");
  EXPECT_EQ(checked_at_a_call("concat", {f32({sym("n"), 3}), f32({sym("m"), 3})}, {{"dim", 0}}), "");
}

TEST(Infer, NamesTheShapesThatDoNotBroadcast) {
  EXPECT_EQ(inferred("add", {f32({3, 4}), f32({5})}),
            "[add] shapes [3, 4] and [5] do not broadcast: dims at -1 must be equal; they are 4 and 5");
}

TEST(Infer, NamesConvertWhenDtypesAreMixed) {
  EXPECT_EQ(inferred("mul", {f32({3}), i64({3})}), "[mul] a is f32, b is i64; use convert to make them the same");
}

TEST(Infer, RefusesDtypesThatMeanNothingToTheOp) {
  EXPECT_EQ(inferred("exp", {make_type(DType::i32, {3})}), "[exp] x is i32[3]; expected one of f64, f32, f16, bf16");
  EXPECT_EQ(inferred("iota", {}, {{"shape", AttrValue(Shape{3})}, {"dtype", DType::boolean}}),
            "[iota] dtype is bool; expected one of f64, f32, f16, bf16, i64, i32, i16, i8, u8, u16, u32, u64");
  EXPECT_EQ(inferred("add", {make_type(DType::f8_e5m2, {3}), make_type(DType::f8_e5m2, {3})}),
            "[add] a is f8_e5m2[3]; expected one of f64, f32, f16, bf16, i64, i32, i16, i8, u8, u16, u32, u64");
}

TEST(Infer, NamesAnAttributeThatIsBeyondWhatItMeans) {
  EXPECT_EQ(inferred("rms_norm", {f32({2, 3})}, {{"eps", -1.0}}),
            "[rms_norm] eps is -1, expected a finite number of at least 0");
  EXPECT_EQ(inferred("elu", {f32({3})}, {{"alpha", HUGE_VAL}}), "[elu] alpha is inf, expected a finite number");
  EXPECT_EQ(inferred("nms", {f32({3, 4}), f32({3})}, {{"iou_threshold", 1.5}}),
            "[nms] iou_threshold is 1.5, expected 0 to 1");
  EXPECT_EQ(inferred("embedding_backward", {i64({3}), f32({3, 2})}, {{"rows", Dim(4)}, {"padding_idx", 4}}),
            "[embedding_backward] padding_idx is 4, expected one of 4 rows, or -1: none");
}

TEST(Infer, MultipliesBytesInThirtyTwoBits) {
  const auto of = [](DType type) { return make_type(type, {3, 3}); };
  EXPECT_EQ(inferred("matmul", {of(DType::u8), of(DType::i8)}), "i32[3, 3]");
  EXPECT_EQ(inferred("linear", {of(DType::i8), of(DType::i8), make_type(DType::i32, {3})}), "i32[3, 3]");
  EXPECT_EQ(inferred("matmul", {of(DType::f64), of(DType::f32)}),
            "[matmul] a is f64, b is f32; use convert to make them the same");
  EXPECT_EQ(inferred("matmul", {of(DType::i8), of(DType::u8)}),
            "[matmul] a is i8, b is u8; expected numbers of one dtype, or i8 or u8 by i8");
  EXPECT_EQ(inferred("linear", {of(DType::i8), of(DType::i8), make_type(DType::f32, {3})}),
            "[linear] bias is f32, the products' sums are i32; use convert to make them the same");
}

TEST(Infer, AccumulatesInAnotherDtypeWhereAsked) {
  const TensorType bytes = make_type(DType::u8, {3, 5});
  EXPECT_EQ(inferred("sum", {bytes}), "u8[]");
  EXPECT_EQ(inferred("sum", {bytes}, {{"dtype", DType::i32}}), "i32[]");
  EXPECT_EQ(inferred("sum", {boolean({3})}),
            "[sum] dtype is bool; expected one of f64, f32, f16, bf16, i64, i32, i16, i8, u8, u16, u32, u64");
}

TEST(Infer, ChecksTheValueOfAFull) {
  EXPECT_EQ(inferred("full", {}, {{"value", 0.5}, {"dtype", DType::i64}, {"shape", AttrValue(Shape{})}}),
            "[full] value is 0.5, expected an integer of at most 53 bits for dtype i64 (exact takes longer ones), from "
            "-9223372036854775808 to 9223372036854775807");
  const auto exact = [](const char *digits, DType dtype) {
    return inferred("full", {}, {{"exact", digits}, {"dtype", dtype}, {"shape", AttrValue(Shape{})}});
  };
  EXPECT_EQ(exact("18446744073709551615", DType::u64), "u64[]");
  EXPECT_EQ(exact("256", DType::u8), "[full] exact is '256', expected an integer from 0 to 255");
  EXPECT_EQ(exact("-9223372036854775809", DType::i64),
            "[full] exact is '-9223372036854775809', expected an integer from -9223372036854775808 to "
            "9223372036854775807");
  EXPECT_EQ(exact("1", DType::f32), "[full] exact is '1', expected none for dtype f32, which value tells exactly");
  EXPECT_EQ(inferred("full", {}, {{"value", 1.0}, {"dtype", DType::f32}, {"shape", AttrValue(Shape{2, -3})}}),
            "[full] expected 0 <= shape dim 1, but 0 > -3");
}

TEST(Infer, ReducesNamedDims) {
  const TensorType x = f32({3, sym("n"), 5});
  EXPECT_EQ(inferred("sum", {x}), "f32[]");
  EXPECT_EQ(inferred("sum", {x}, {{"dims", ints({-1})}}), "f32[3, n]");
  EXPECT_EQ(inferred("max", {x}, {{"dims", ints({0, 2})}, {"keepdim", true}}), "f32[1, n, 1]");
  EXPECT_EQ(inferred("argmax", {x}, {{"dim", 1}}), "i64[3, 5]");
  EXPECT_EQ(checked_at_a_call("argmax", {x}, {{"dim", 1}}), "max(1, n) = n");
  EXPECT_EQ(inferred("sum", {x}, {{"dims", ints({1, -2})}}), "[sum] dims names dim 1 twice");
  EXPECT_EQ(inferred("sum", {x}, {{"dims", ints({3})}}), "[sum] dims is 3; expected -3 to 2 for rank 3");
  EXPECT_EQ(inferred("argmax", {f32({3, 0})}), "[argmax] expected at least one element along dim 1, but 1 > 0");
}

TEST(Infer, ReshapesWithOneUnknownDim) {
  const Dim b = sym("b"), t = sym("t");
  EXPECT_EQ(inferred("reshape", {f32({6, 35})}, shape({-1, 5})), "f32[42, 5]");
  EXPECT_EQ(inferred("reshape", {f32({b, t, 12})}, shape({b, -1})), "f32[b, 12*t]");
  EXPECT_EQ(inferred("reshape", {f32({b * t, 12})}, shape({b, t, 3, 4})), "f32[b, t, 3, 4]");
  EXPECT_EQ(checked_at_a_call("reshape", {f32({b * t, 12})}, shape({b, t, 3, 4})), "");
  EXPECT_EQ(checked_at_a_call("reshape", {f32({b, 12})}, shape({t, 4})), "4*t = 12*b");
  EXPECT_EQ(inferred("reshape", {f32({3, 4})}, shape({5})),
            "[reshape] the number of elements of f32[3, 4] and of shape [5] must be equal; they are 12 and 5");
  EXPECT_EQ(inferred("reshape", {f32({3, 4})}, shape({-1, -1})), "[reshape] shape [-1, -1] holds -1 more than once");
  EXPECT_EQ(inferred("reshape", {f32({0, 4})}, shape({0, -1})),
            "[reshape] shape [0, -1]: -1 cannot be told beside a 0");
}

TEST(Infer, ChecksSlicesAsFarAsTheyAreKnown) {
  const Dim n = sym("n");
  auto slice = [](Dim start, Dim end, int64_t step = 1) -> AttrMap {
    return {{"dim", 0}, {"start", start}, {"end", end}, {"step", step}};
  };
  EXPECT_EQ(inferred("slice", {f32({17})}, slice(-5, -1)), "f32[4]");
  EXPECT_EQ(inferred("slice", {f32({n, 3})}, slice(0, n, 2)), "f32[(n + 1) // 2, 3]");
  EXPECT_EQ(inferred("slice", {f32({2 * n})}, slice(n, 2 * n)), "f32[n]");
  EXPECT_EQ(checked_at_a_call("slice", {f32({2 * n})}, slice(n, 2 * n)), "");
  EXPECT_EQ(checked_at_a_call("slice", {f32({n})}, slice(0, 4)), "max(4, n) = n");
  EXPECT_EQ(inferred("slice", {f32({7})}, slice(0, 8)), "[slice] expected end <= size, in dim 0, but 8 > 7");
  EXPECT_EQ(inferred("slice", {f32({7})}, slice(5, 4)), "[slice] expected start <= end, in dim 0, but 5 > 4");
  EXPECT_EQ(inferred("slice", {f32({7})}, slice(0, 7, 0)), "[slice] step is 0, expected any other");
  EXPECT_EQ(inferred("slice", {f32({7})}, slice(-1, -8, -1)), "f32[7]");
  EXPECT_EQ(inferred("slice", {f32({n})}, slice(-1, -1 - n, -2)), "f32[(n + 1) // 2]");
  EXPECT_EQ(inferred("slice", {f32({7})}, slice(2, 2, -1)), "f32[0]");
  EXPECT_EQ(inferred("slice", {f32({7})}, slice(2, 3, -1)),
            "[slice] expected end <= start where step is below 0, in dim 0, but 3 > 2");
  EXPECT_EQ(inferred("slice", {f32({7})}, slice(7, 3, -1)), "[slice] expected start <= size - 1, in dim 0, but 7 > 6");
  EXPECT_EQ(inferred("slice", {f32({7})}, slice(6, -9, -1)), "[slice] expected -1 <= end, in dim 0, but -1 > -2");
}

TEST(Infer, ChecksOtherViews) {
  EXPECT_EQ(inferred("permute", {f32({3, 5, 7})}, {{"dims", ints({2, 0, 1})}}), "f32[7, 3, 5]");
  EXPECT_EQ(inferred("permute", {f32({3, 5})}, {{"dims", ints({0})}}),
            "[permute] dims names 1 dims of f32[3, 5], expected all");
  EXPECT_EQ(inferred("expand", {f32({3, 1})}, shape({2, 3, 4})), "f32[2, 3, 4]");
  EXPECT_EQ(inferred("expand", {f32({3})}, shape({4})),
            "[expand] dim 0 of x, which is not 1, and of shape must be equal; they are 3 and 4");
  EXPECT_EQ(inferred("squeeze", {f32({3, 1, 5})}, {{"dims", ints({1})}}), "f32[3, 5]");
  EXPECT_EQ(inferred("squeeze", {f32({3, 5})}, {{"dims", ints({0})}}),
            "[squeeze] x dim 0, which dims names, and 1 must be equal; they are 3 and 1");
  EXPECT_EQ(inferred("unsqueeze", {f32({3, 5})}, {{"dims", ints({0, -1})}}), "f32[1, 3, 5, 1]");
  const Dim n = sym("n");
  const auto strided = [](Shape dims, Shape strides, Dim offset = 0) -> AttrMap {
    return {{"shape", AttrValue(std::move(dims))}, {"strides", AttrValue(std::move(strides))}, {"offset", offset}};
  };
  EXPECT_EQ(inferred("as_strided", {f32({3, 4})}, strided({3}, {5}, 1)), "f32[3]");
  EXPECT_EQ(inferred("as_strided", {f32({3, 4})}, strided({0, 9}, {5, 5}, 20)), "f32[0, 9]");
  EXPECT_EQ(checked_at_a_call("as_strided", {f32({n})}, strided({2, 3}, {3, 1})), "max(6, n) = n");
}

TEST(Infer, ChecksTransforms) {
  const Dim n = sym("n");
  EXPECT_EQ(inferred("rfft", {f32({3, n})}, {{"direct", true}}), "f32[3, n // 2 + 1, 2]");
  EXPECT_EQ(inferred("rfft", {f32({3, n})}),
            "[rfft] the length is n, expected a number, or `direct`: n^2 of time and memory");
  EXPECT_EQ(inferred("irfft", {f32({3, 5, 2})}), "f32[3, 8]");
  EXPECT_EQ(inferred("irfft", {f32({5, 2})}, {{"n", Dim(9)}}), "f32[9]");
  EXPECT_EQ(inferred("stft", {f32({3, 16})}, {{"n_fft", 8}, {"hop", 4}}), "f32[3, 5, 5, 2]");
  EXPECT_EQ(inferred("stft", {f32({n})}, {{"n_fft", 8}, {"hop", 4}, {"center", false}, {"onesided", false}}),
            "f32[8, n // 4 - 1, 2]");
}

TEST(Infer, JoinsAndIndexes) {
  EXPECT_EQ(inferred("concat", {f32({3, sym("n")}), f32({3, 4})}, {{"dim", -1}}), "f32[3, n + 4]");
  EXPECT_EQ(inferred("concat", {f32({3, 4}), f32({5, 4})}, {{"dim", 1}}),
            "[concat] dim 0 of inputs 0 and 1 must be equal; they are 3 and 5");
  EXPECT_EQ(inferred("pad", {f32({3, 4})}, {{"low", ints({1, 0})}, {"high", ints({0, 2})}}), "f32[4, 6]");
  EXPECT_EQ(inferred("pad", {f32({3})}, {{"low", ints({-1})}, {"high", ints({0})}}), "f32[2]");
  EXPECT_EQ(inferred("embedding", {f32({10, 4}), i64({sym("b"), 3})}), "f32[b, 3, 4]");
  EXPECT_EQ(inferred("gather", {f32({7, 3}), i64({2, 4})}, {{"dim", 0}}),
            "[gather] expected dim 1 of index <= dim 1 of x, but 4 > 3");
}

TEST(Infer, MultipliesMatrices) {
  const Dim n = sym("n");
  EXPECT_EQ(inferred("matmul", {f32({2, 1, 3, 4}), f32({5, 4, 6})}), "f32[2, 5, 3, 6]");
  EXPECT_EQ(inferred("matmul", {f32({4, 3}), f32({6, 4})}, {{"transpose_a", true}, {"transpose_b", true}}),
            "f32[3, 6]");
  EXPECT_EQ(inferred("matmul", {f32({2, 3}), f32({4, 5})}),
            "[matmul] a dim 1 and b dim 0 must be equal; they are 3 and 4");
  EXPECT_EQ(inferred("matmul", {f32({3}), f32({2, 3, 4})}), "f32[2, 4]");
  EXPECT_EQ(inferred("matmul", {f32({n, 2, 3}), f32({3})}), "f32[n, 2]");
  EXPECT_EQ(inferred("matmul", {f32({3}), f32({3})}), "f32[]");
  EXPECT_EQ(inferred("matmul", {f32({}), f32({3, 4})}),
            "[matmul] a is f32[], b is f32[3, 4]; expected at least 1 dim each");
  EXPECT_EQ(inferred("linear", {f32({n, 4}), f32({6, 4}), f32({6})}), "f32[n, 6]");
  EXPECT_EQ(inferred("linear", {f32({n, 4}), f32({6, 5})}),
            "[linear] x dim 1 and weight dim 1 must be equal; they are 4 and 5");
}

TEST(Infer, SlidesWindows) {
  const AttrMap padded = {{"padding", ints({1, 1})}, {"stride", ints({2, 2})}};
  EXPECT_EQ(inferred("conv2d", {f32({sym("n"), 3, 8, 9}), f32({16, 3, 3, 3}), f32({16})}, padded), "f32[n, 16, 4, 5]");
  EXPECT_EQ(inferred("conv2d", {f32({1, 4, 8, 8}), f32({16, 3, 3, 3})}),
            "[conv2d] x dim 1 and groups * weight dim 1 must be equal; they are 4 and 3");
  EXPECT_EQ(inferred("conv2d", {f32({1, 3, 2, 8}), f32({4, 3, 3, 3})}),
            "[conv2d] expected kernel by dilation <= x dim 2 with padding, but 3 > 2");
  EXPECT_EQ(inferred("conv2d", {f32({1, 4, 8, 8}), f32({3, 2, 3, 3})}, {{"groups", 2}}),
            "[conv2d] weight dim 0 modulo groups and 0 must be equal; they are 1 and 0");
  EXPECT_EQ(inferred("max_pool2d", {f32({1, 3, 9, 8})}, {{"kernel", ints({2, 2})}}), "f32[1, 3, 4, 4]");
  EXPECT_EQ(inferred("max_pool2d", {f32({1, 3, 9, 8})}, {{"kernel", ints({2, 2})}, {"padding", ints({2, 0})}}),
            "[max_pool2d] padding 2 is more than half the kernel's 2");
  const AttrMap up = {{"kernel", ints({4})}, {"stride", ints({2})}, {"ceil_mode", true}};
  EXPECT_EQ(inferred("max_pool1d", {f32({1, 1, 3})}, up), "f32[1, 1, 1]") << "of which one element is not there";
  EXPECT_EQ(inferred("max_pool1d", {f32({1, 1, 2})}, up),
            "[max_pool1d] expected kernel by dilation <= x dim 2 with padding and stride - 1, but 4 > 3");
}

TEST(Infer, ChecksNorms) {
  EXPECT_EQ(inferred("layer_norm", {f32({2, 3, 4}), f32({3, 4})}, {{"axes", 2}}), "f32[2, 3, 4]");
  EXPECT_EQ(inferred("layer_norm", {f32({2, 3})}, {{"axes", 3}}),
            "[layer_norm] axes is 3, expected 1 to 2, the dims of x");
  EXPECT_EQ(inferred("rms_norm", {f32({2, 3}), f32({4})}),
            "[rms_norm] x dim 1 and scale dim 0 must be equal; they are 3 and 4");
  EXPECT_EQ(inferred("batch_norm", {f32({3}), f32({3}), f32({3}), f32({3}), f32({3})}),
            "[batch_norm] x is f32[3], expected [N, C, ...]");
  EXPECT_EQ(inferred("gelu", {f32({3})}, {{"approximate", "sigmoid"}}),
            "[gelu] approximate is 'sigmoid', expected 'none' or 'tanh'");
}

TEST(Infer, ChecksAttention) {
  const Dim b = sym("b"), t = sym("t");
  EXPECT_EQ(inferred("attention", {f32({b, 6, t, 8}), f32({b, 2, t, 8}), f32({b, 2, t, 5})}), "f32[b, 6, t, 5]");
  EXPECT_EQ(inferred("attention", {f32({b, 5, t, 8}), f32({b, 2, t, 8}), f32({b, 2, t, 8})}),
            "[attention] q has 5 heads, expected a multiple of the 2 groups of k and v");
  EXPECT_EQ(inferred("attention", {f32({1, 2, 3, 8}), f32({1, 2, 4, 8}), f32({1, 2, 4, 8}), boolean({3, 5})}),
            "[attention] mask dim 1 and dim 3 of [B, H, T, S] must be equal; they are 5 and 4");
  EXPECT_EQ(inferred("rope", {f32({b, t, 8}), i64({t})}), "f32[b, t, 8]");
  EXPECT_EQ(inferred("rope", {f32({b, t, 7}), i64({t})}), "[rope] x dim 2 is 7, expected an even integer");
}

TEST(Infer, ChecksDequantize) {
  const Dim n = sym("n"), k = sym("k");
  const auto i8 = [](Shape dims) { return make_type(DType::i8, std::move(dims)); };
  const auto u8 = [](Shape dims) { return make_type(DType::u8, std::move(dims)); };
  const AttrMap nibbles = {{"bits", 4}}, groups = {{"axis", 1}, {"group", 32}};
  EXPECT_EQ(inferred("dequantize", {i8({n, k}), f32({n})}), "f32[n, k]");
  EXPECT_EQ(inferred("dequantize", {i8({8, 96}), f32({8, 3})}, groups), "f32[8, 96]");
  EXPECT_EQ(inferred("dequantize", {u8({8, 17}), f32({8}), u8({8})}, {{"bits", 4}, {"dtype", DType::bf16}}),
            "bf16[8, 34]");
  EXPECT_EQ(inferred("dequantize", {u8({n, k}), f32({n})}, nibbles), "f32[n, 2*k]");
  EXPECT_EQ(inferred("dequantize", {i8({8, 17}), f32({8})}, {{"bits", 5}}), "[dequantize] bits is 5, expected 4 or 8");
  EXPECT_EQ(inferred("dequantize", {i8({8, 17}), f32({8})}, nibbles),
            "[dequantize] weight is i8, expected u8, which holds two numbers of 4 bits");
  EXPECT_EQ(inferred("dequantize", {u8({}), f32({1})}), "[dequantize] weight is u8[], expected at least 1 dim");
  EXPECT_EQ(inferred("dequantize", {u8({8, 17}), f32({33})}, {{"bits", 4}, {"axis", 1}}),
            "[dequantize] scales dim 0 and y dim 1 must be equal; they are 33 and 34");
  EXPECT_EQ(inferred("dequantize", {i8({8, 97}), f32({8, 3})}, groups),
            "[dequantize] y dim 1 is 97, expected a multiple of group, 32");
  EXPECT_EQ(inferred("dequantize", {i8({8, 96}), f32({8})}, groups),
            "[dequantize] scales is f32[8], expected f32[8, 3]");
  EXPECT_EQ(inferred("dequantize", {i8({8, 96}), f32({8, 3}), i8({8, 4})}, groups),
            "[dequantize] zeros dim 1 and the groups of y dim 1 must be equal; they are 4 and 3");
  EXPECT_EQ(inferred("dequantize", {i8({8, 96}), f32({8, 3})}, {{"axis", 1}, {"group", -1}}),
            "[dequantize] group is -1, expected at least 0");
  EXPECT_EQ(inferred("dequantize", {i8({8, 96}), f32({8})}, {{"dtype", DType::f64}}),
            "[dequantize] dtype is f64; expected one of f32, f16, bf16");
}

}  // namespace
}  // namespace kiln::testing
