#include "jit/base/dtype.h"

#include <gtest/gtest.h>

#include <vector>

namespace kiln {
namespace {

TEST(DType, NamesAndDlpackCodesReadBack) {
  for (int number = 1; number <= dtype_count; ++number) {
    auto dtype = static_cast<DType>(number);
    const DTypeInfo &info = dtype_info(dtype);
    EXPECT_EQ(info.dtype, dtype);
    EXPECT_EQ(dtype_from_name(info.name), dtype);
    EXPECT_EQ(dtype_from_dlpack(info.dlpack_code, info.dlpack_bits), dtype);
    EXPECT_EQ(info.dlpack_bits, 8 * info.size_bytes);
  }
  EXPECT_EQ(dtype_from_name("float"), std::nullopt);
  EXPECT_EQ(dtype_from_dlpack(2, 8), std::nullopt);
}

TEST(DType, NoArrayHasTokens) {
  EXPECT_EQ(dtype_from_name("token"), DType::token);
  EXPECT_EQ(size_of(DType::token), 0u);
  EXPECT_EQ(dtype_from_dlpack(dtype_info(DType::token).dlpack_code, dtype_info(DType::token).dlpack_bits),
            std::nullopt);
}

TEST(DType, DenseBytesCountEmptyDimensionsAsOneAgainstOverflow) {
  using Shape = std::vector<int64_t>;
  EXPECT_EQ(dense_bytes(DType::f32, Shape{}), 4u);
  EXPECT_EQ(dense_bytes(DType::f32, Shape{2, 3}), 24u);
  EXPECT_EQ(dense_bytes(DType::i8, Shape{INT64_MAX}), uint64_t{INT64_MAX});
  EXPECT_EQ(dense_bytes(DType::f32, Shape{INT64_MAX / 4, 0}), 0u);
  for (const Shape &shape : {Shape{INT64_MAX}, {-1}, {0, INT64_MAX, 2}, {INT64_MAX, 2, 0}, {0, -1}})
    EXPECT_EQ(dense_bytes(DType::f32, shape), std::nullopt);
}

}  // namespace
}  // namespace kiln
