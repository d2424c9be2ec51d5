#include "runtime/graph/json_number.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace kiln {
namespace {

TEST(JsonNumber, EveryBitPatternOfSmallFloatsReadsBack) {
  for (DType dtype : {DType::f16, DType::bf16, DType::f8_e4m3fn, DType::f8_e5m2}) {
    for (uint32_t bits = 0; bits < 1u << (8 * size_of(dtype)); ++bits) {
      std::string text = json::text_of_element(dtype, bits);
      std::optional<uint64_t> back = text[0] == '"'
                                         ? json::element_of(dtype, std::string_view(text).substr(1, text.size() - 2))
                                         : json::element_of(dtype, std::strtod(text.c_str(), nullptr));
      ASSERT_EQ(back, bits) << text;
    }
  }
}

TEST(JsonNumber, OtherElementsReadBack) {
  auto back = [](DType dtype, uint64_t bits) {
    std::string text = json::text_of_element(dtype, bits);
    return text[0] == '"' ? json::element_of(dtype, std::string_view(text).substr(1, text.size() - 2))
                          : json::element_of(dtype, std::strtod(text.c_str(), nullptr));
  };
  uint64_t random = 1;
  for (int i = 0; i < 100000; ++i) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    ASSERT_EQ(back(DType::f32, random >> 32), random >> 32);
    ASSERT_EQ(back(DType::f64, random), random);
    ASSERT_EQ(back(DType::i64, random), random);
    ASSERT_EQ(back(DType::i32, random >> 32), random >> 32);
    ASSERT_EQ(back(DType::u64, random), random);
    ASSERT_EQ(back(DType::u32, random >> 32), random >> 32);
    ASSERT_EQ(back(DType::u16, random >> 48), random >> 48);
  }
  EXPECT_EQ(json::text_of_element(DType::i8, 0xff), "-1");
  EXPECT_EQ(json::text_of_element(DType::u8, 0xff), "255");
  EXPECT_EQ(json::text_of_element(DType::f32, 0xffc00000), "\"0xffc00000\"");
  EXPECT_EQ(json::text_of_element(DType::f32, 0x7fc00000), "\"nan\"");
  EXPECT_EQ(json::text_of_element(DType::f32, 0x80000000), "-0");
  EXPECT_EQ(json::text_of_element(DType::u64, UINT64_MAX), "\"18446744073709551615\"");
  EXPECT_EQ(json::element_of(DType::u64, "18446744073709551616"), std::nullopt);
  EXPECT_EQ(json::element_of(DType::u64, -1), std::nullopt);
  EXPECT_EQ(json::element_of(DType::u16, 65536), std::nullopt);
  EXPECT_EQ(json::element_of(DType::i8, 128), std::nullopt);
  EXPECT_EQ(json::element_of(DType::i8, 0.5), std::nullopt);
  EXPECT_EQ(json::element_of(DType::i64, "9223372036854775808"), std::nullopt);
  EXPECT_EQ(json::element_of(DType::f32, "0x7fc0"), std::nullopt);
}

// 8-bit floats are made as convert makes them; what is written as an infinity is one.
TEST(JsonNumber, EightBitFloatsSaturate) {
  for (const double large : {57344.0, 57345.0, 61440.0, 1e9, 1e300}) {
    EXPECT_EQ(json::element_of(DType::f8_e5m2, large), 0x7b) << large;
    EXPECT_EQ(json::element_of(DType::f8_e5m2, -large), 0xfb) << large;
  }
  for (const double large : {448.0, 449.0, 464.0, 465.0, 1e300}) {
    EXPECT_EQ(json::element_of(DType::f8_e4m3fn, large), 0x7e) << large;
    EXPECT_EQ(json::element_of(DType::f8_e4m3fn, -large), 0xfe) << large;
  }
  EXPECT_EQ(json::element_of(DType::f8_e5m2, "inf"), 0x7c);
  EXPECT_EQ(json::element_of(DType::f8_e5m2, "-inf"), 0xfc);
  EXPECT_EQ(json::element_of(DType::f8_e4m3fn, "inf"), 0x7e);  // it has none
  EXPECT_EQ(json::element_of(DType::f8_e4m3fn, "-inf"), 0xfe);
  EXPECT_EQ(json::element_of(DType::f16, 1e9), 0x7c00);
}

}  // namespace
}  // namespace kiln
