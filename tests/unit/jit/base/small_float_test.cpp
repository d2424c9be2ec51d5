#include "jit/base/small_float.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

TEST(SmallFloat, EveryFiniteValueReadsBack) {
  for (FloatFormat format : {f16_format, bf16_format, f8_e4m3fn_format, f8_e5m2_format}) {
    for (uint32_t bits = 0; bits < 2 * format.sign(); ++bits) {
      double value = decode_float(static_cast<uint16_t>(bits), format);
      if (!std::isnan(value)) {
        ASSERT_EQ(encode_float(value, format), bits);
      }
    }
  }
}

TEST(SmallFloat, RoundsOnceHalvesToEvenAndOverflowsToInfinity) {
  EXPECT_EQ(encode_float(1 + 0x1p-11, f16_format), 0x3c00);            // a tie goes to the even one
  EXPECT_EQ(encode_float(1 + 0x1p-11 + 0x1p-40, f16_format), 0x3c01);  // which a step through f32 would miss
  EXPECT_EQ(encode_float(65519.9, f16_format), 0x7bff);
  EXPECT_EQ(encode_float(65520, f16_format), 0x7c00);
  EXPECT_EQ(encode_float(1e300, f16_format), 0x7c00);
  EXPECT_EQ(encode_float(-1e300, bf16_format), 0xff80);
  EXPECT_EQ(encode_float(0x1p-25, f16_format), 0);
  EXPECT_EQ(encode_float(0x1.8p-25, f16_format), 1);
  EXPECT_EQ(encode_float(-0.0, bf16_format), 0x8000);
}

TEST(SmallFloat, EightBitsHoldWhatTheirSpecificationSays) {
  EXPECT_EQ(decode_float(0x7e, f8_e4m3fn_format), 448);
  EXPECT_TRUE(std::isnan(decode_float(0x7f, f8_e4m3fn_format)));
  EXPECT_TRUE(std::isnan(decode_float(0xff, f8_e4m3fn_format)));
  EXPECT_EQ(decode_float(0x01, f8_e4m3fn_format), 0x1p-9);
  EXPECT_EQ(decode_float(0x7b, f8_e5m2_format), 57344);
  EXPECT_EQ(decode_float(0xfc, f8_e5m2_format), -HUGE_VAL);
  EXPECT_EQ(decode_float(0x01, f8_e5m2_format), 0x1p-16);
  EXPECT_EQ(encode_float(-HUGE_VAL, f8_e5m2_format), 0xfc);
  EXPECT_EQ(encode_float(17, f8_e4m3fn_format), 0x58);  // 16: a tie goes to the even one
  EXPECT_EQ(encode_float(NAN, f8_e4m3fn_format), 0x7f);
}

TEST(SmallFloat, ConvertingToEightBitsSaturates) {
  EXPECT_EQ(saturated(1e9, f8_e4m3fn_format), 448);
  EXPECT_EQ(saturated(-HUGE_VAL, f8_e5m2_format), -57344);
  EXPECT_EQ(saturated(449, f8_e5m2_format), 449);
  EXPECT_EQ(saturated(HUGE_VAL, f16_format), HUGE_VAL);
  EXPECT_TRUE(std::isnan(saturated(NAN, f8_e4m3fn_format)));
}

TEST(SmallFloat, UnsaturatedEightBitsOverflowHalfwayBeyondTheLargest) {
  EXPECT_EQ(unsaturated(464, f8_e4m3fn_format), 464);  // a tie, and 448 is even
  EXPECT_TRUE(std::isnan(unsaturated(-464.1, f8_e4m3fn_format)));
  EXPECT_EQ(unsaturated(61439, f8_e5m2_format), 61439);
  EXPECT_EQ(unsaturated(-61440, f8_e5m2_format), -HUGE_VAL);  // a tie, and 57344 is odd
  EXPECT_TRUE(std::isnan(unsaturated(NAN, f8_e5m2_format)));
}

}  // namespace
}  // namespace kiln
