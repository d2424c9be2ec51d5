#include "jit/base/small_float.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

TEST(SmallFloat, EveryFiniteValueReadsBack) {
  for (FloatFormat format : {f16_format, bf16_format}) {
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
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

}  // namespace
}  // namespace kiln
