#include "runtime/graph/json_number.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace kiln {
namespace {

TEST(JsonNumber, EveryBitPatternOf16BitFloatsReadsBack) {
  for (DType dtype : {DType::f16, DType::bf16}) {
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
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
  }
  EXPECT_EQ(json::text_of_element(DType::i8, 0xff), "-1");
  EXPECT_EQ(json::text_of_element(DType::u8, 0xff), "255");
  EXPECT_EQ(json::text_of_element(DType::f32, 0xffc00000), "\"0xffc00000\"");
  EXPECT_EQ(json::text_of_element(DType::f32, 0x7fc00000), "\"nan\"");
  EXPECT_EQ(json::text_of_element(DType::f32, 0x80000000), "-0");
  EXPECT_EQ(json::element_of(DType::i8, 128), std::nullopt);
  EXPECT_EQ(json::element_of(DType::i8, 0.5), std::nullopt);
  EXPECT_EQ(json::element_of(DType::i64, "9223372036854775808"), std::nullopt);
  EXPECT_EQ(json::element_of(DType::f32, "0x7fc0"), std::nullopt);
}

}  // namespace
}  // namespace kiln
