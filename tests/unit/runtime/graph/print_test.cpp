#include <gtest/gtest.h>

#include "tests/unit/runtime/graph/fake_ops.h"

namespace kiln {
namespace {

using fake::Build;

TEST(Print, DotEscapesAndNamesPorts) {
  Build b;
  ValueId x = b.input("x\"", {4});
  ValueId s = b.add("split", {x}, {}, "s");
  std::string dot = print_dot(*b.finish({b.add("add", {s, {s.node, 1}}, {}, "y")}));
  EXPECT_NE(dot.find("label=\"x\\\" = input f32[4]\""), std::string::npos) << dot;
  EXPECT_NE(dot.find(" [label=1]"), std::string::npos) << dot;
}

}  // namespace
}  // namespace kiln
