#include "runtime/graph/attr.h"

#include <gtest/gtest.h>

#include <limits>

namespace kiln {
namespace {

TEST(Attr, EqualityIsByValue) {
  double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(AttrValue(nan), AttrValue(nan));
  EXPECT_NE(AttrValue(0.0), AttrValue(-0.0));
  EXPECT_NE(AttrValue(1), AttrValue(std::vector<int64_t>{1}));
  EXPECT_NE(AttrValue(1), AttrValue(1.0));
  auto tensor = [](uint8_t b) { return TensorPtr(std::make_shared<TensorData>(TensorData{DType::u8, {1}, {b}})); };
  EXPECT_EQ(AttrValue(tensor(1)), AttrValue(tensor(1)));
  EXPECT_NE(AttrValue(tensor(1)), AttrValue(tensor(2)));
  EXPECT_EQ(AttrValue(std::vector<std::string>{"a", "b"}).text(), "[\"a\", \"b\"]");
}

}  // namespace
}  // namespace kiln
