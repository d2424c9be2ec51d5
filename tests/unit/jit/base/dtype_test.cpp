#include "jit/base/dtype.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace kiln
