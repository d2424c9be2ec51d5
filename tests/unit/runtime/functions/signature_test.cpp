// What a signature says. What is refused stands in tests/abi/function_misuse_test.cpp.
#include "runtime/functions/signature.h"

#include <gtest/gtest.h>

#include "runtime/functions/native_call.h"

namespace kiln {
namespace {

using Argument = FunctionSignature::Argument;
using Kind = Argument::Kind;

FunctionSignature parsed(std::string_view text) {
  Result<FunctionSignature> read = parse_function_signature(text);
  EXPECT_TRUE(read.ok()) << read.status().message();
  return read.ok() ? std::move(read).value() : FunctionSignature();
}

TEST(Signature, SaysWhatIsReturnedAndThatThereMayBeNoArguments) {
  EXPECT_EQ(parsed("void ()").returns, FunctionSignature::Return::nothing);
  EXPECT_EQ(parsed(" i32( )").returns, FunctionSignature::Return::code);
  EXPECT_EQ(parsed("error (user)").returns, FunctionSignature::Return::error);
  EXPECT_TRUE(parsed("void ()").arguments.empty());
}

TEST(Signature, KeepsWhereEachArgumentStands) {
  const FunctionSignature signature = parsed("void (i32 101, f32 data a[m, 4, _], f64 *alpha)");
  ASSERT_EQ(signature.arguments.size(), 3u);
  EXPECT_EQ(signature.text_of(signature.arguments[0]), "i32 101");
  EXPECT_EQ(signature.text_of(signature.arguments[1]), "f32 data a[m, 4, _]");
  EXPECT_EQ(signature.text_of(signature.arguments[2]), "f64 *alpha");
}

TEST(Signature, ReadsArraysByNameAndNumberWithTheirDims) {
  const FunctionSignature signature = parsed("void (f32 data a[m, 4, _], inout 1=b, tensor y[])");
  const Argument &data = signature.arguments[0], &inout = signature.arguments[1], &tensor = signature.arguments[2];
  EXPECT_EQ(data.kind, Kind::data);
  EXPECT_EQ(data.type, DType::f32);
  EXPECT_EQ(data.place.name, "a");
  ASSERT_TRUE(data.extents && data.extents->size() == 3);
  EXPECT_EQ((*data.extents)[0].name, "m");
  EXPECT_EQ((*data.extents)[1].is, 4);
  EXPECT_TRUE((*data.extents)[2].name.empty() && !(*data.extents)[2].is);
  EXPECT_EQ(inout.kind, Kind::inout);
  EXPECT_EQ(inout.type, DType::none);
  EXPECT_EQ(inout.place.number, 1u);
  EXPECT_EQ(inout.operand.name, "b");
  EXPECT_FALSE(inout.extents);
  EXPECT_EQ(tensor.kind, Kind::tensor);
  ASSERT_TRUE(tensor.extents);
  EXPECT_TRUE(tensor.extents->empty());
}

TEST(Signature, ComputesWithNumbersCharactersNamesSizesAndStrides) {
  const FunctionSignature signature =
      parsed("void (i64 -(2 + 3) * 4 / 3, i8 'N', i64 n % 4, scratch 4 * size a 0 + stride 1 2)");
  EXPECT_EQ(signature.arguments[0].value, Expr(-7));
  EXPECT_EQ(signature.arguments[1].value, Expr('N'));
  EXPECT_EQ(parsed("void (i64 -9223372036854775808)").arguments[0].value, Expr(INT64_MIN));
  EXPECT_EQ(parsed("void (i64 1 + - 9223372036854775808)").arguments[0].value, Expr(INT64_MIN + 1));
  EXPECT_FALSE(parse_function_signature("void (i64 9223372036854775808)").ok());
  EXPECT_FALSE(parse_function_signature("void (i64 -92233720368547758080)").ok());
  EXPECT_EQ(signature.arguments[3].kind, Kind::scratch);
  ASSERT_EQ(signature.references.size(), 3u);
  EXPECT_EQ(signature.references[0].name, "n");
  EXPECT_EQ(signature.references[1].kind, FunctionSignature::Reference::Kind::size);
  EXPECT_EQ(signature.references[2].place.number, 1u);
  EXPECT_EQ(signature.references[2].dim, 2u);
  const auto lookup = [](const std::string &symbol) { return static_cast<int64_t>(reference_number(symbol)) * 10 + 7; };
  EXPECT_EQ(signature.arguments[2].value.evaluate(lookup), 3);
  EXPECT_EQ(signature.arguments[3].value.evaluate(lookup), 4 * 17 + 27);
}

TEST(Signature, ALoneNameIsKeptAsOneAndFloatsAreExact) {
  const FunctionSignature signature = parsed("void (f32 eps, i64 axis, i64 axis + 1, f64 -1.5e-3, f32 .5)");
  EXPECT_EQ(signature.arguments[0].name, "eps");
  EXPECT_EQ(signature.arguments[1].name, "axis");
  EXPECT_EQ(signature.arguments[2].name, "");
  EXPECT_EQ(signature.arguments[3].number, -1.5e-3);
  EXPECT_EQ(signature.arguments[4].number, 0.5);
}

double mixed(float a, int8_t b, double c, uint16_t d, int64_t e, const int32_t *f, uint8_t g, float h, double i,
             float j, double k, float l, double m, float n, int32_t o, int64_t *out) {
  *out = static_cast<int64_t>(a + b + c + d + static_cast<double>(e) + *f + g + h + i + j + k + l + m + n + o);
  return 0;
}

TEST(NativeCall, PassesWhatStandsInRegistersAndBeyond) {
  const FunctionSignature signature = parsed(
      "void (f32 0, i8 0, f64 0, u16 0, i64 0, i32 *0, bool 0, f32 0, f64 0, f32 0, f64 0, f32 0, f64 0, f32 0, i32 0, "
      "user)");
  const Result<NativeCall> call = NativeCall::of(signature);
  ASSERT_TRUE(call.ok());
  float a = 1, h = 8, j = 10, l = 12, n = 14;
  double c = 3, i = 9, k = 11, m = 13;
  int8_t b = -2;
  uint16_t d = 40000;
  int64_t e = int64_t{1} << 40, out = 0, *address = &out;
  int32_t f = 6, o = -15, *pointer = &f;
  uint8_t g = 1;
  void *values[] = {&a, &b, &c, &d, &e, &pointer, &g, &h, &i, &j, &k, &l, &m, &n, &o, &address};
  call->call(reinterpret_cast<void (*)()>(mixed), values);
  EXPECT_EQ(out, 1 - 2 + 3 + 40000 + e + 6 + 1 + 8 + 9 + 10 + 11 + 12 + 13 + 14 - 15);
}

TEST(NativeCall, GivesBackCodesBelowZero) {
  const Result<NativeCall> call = NativeCall::of(parsed("i32 ()"));
  ASSERT_TRUE(call.ok());
  int32_t (*function)() = [] { return -3; };
  EXPECT_EQ(static_cast<int32_t>(call->call(reinterpret_cast<void (*)()>(function), nullptr)), -3);
}

}  // namespace
}  // namespace kiln
