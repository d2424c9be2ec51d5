#include <gtest/gtest.h>

#include <cstring>

#include "tests/unit/runtime/graph/fake_ops.h"

namespace kiln {
namespace {

using fake::Build;
using fake::n;

TEST(Hash, CoversMeaningAndNotNames) {
  auto build = [](const char *input, const char *node, AttrMap attrs, AttrMap annotations, float constant = 1) {
    Build b;
    ValueId x = b.input(input, {n(), 4});
    auto data = std::make_shared<TensorData>(TensorData{DType::f32, {}, Bytes(4)});
    std::memcpy(data->bytes.data(), &constant, 4);
    ValueId c = Build::take(b.edit.constant(data, "c"));
    b.add("relu", {c});  // unused: an id more
    ValueId y = b.add("split", {b.add("add", {x, c})}, std::move(attrs), node, std::move(annotations));
    return digest_of(*b.finish({y, {y.node, 1}}));
  };
  Digest base = build("x", "y", {}, {});
  EXPECT_EQ(build("x", "other", {{"dim", 0}}, {{"debug.line", 12}}), base);
  EXPECT_NE(build("in", "y", {}, {}), base);
  EXPECT_NE(build("x", "y", {{"dim", 1}}, {}), base);
  EXPECT_NE(build("x", "y", {}, {{"kiln.region", "a"}}), base);
  EXPECT_NE(build("x", "y", {}, {}, 2), base);
}

TEST(Hash, CoversAllThatIsSaidOfASymbol) {
  auto build = [](const SymbolInfo &info) {
    Build b;
    EXPECT_TRUE(b.edit.declare_symbol("n", info).ok());
    return digest_of(*b.finish({b.add("relu", {b.input("x", {n(), 4})})}));
  };
  const SymbolInfo base{.min = 2, .max = 64, .divisor = 2, .hint = 8};
  EXPECT_EQ(build(base), build(base));
  EXPECT_NE(build({.min = 4, .max = 64, .divisor = 2, .hint = 8}), build(base));
  EXPECT_NE(build({.min = 2, .max = 32, .divisor = 2, .hint = 8}), build(base));
  EXPECT_NE(build({.min = 2, .max = 64, .divisor = 1, .hint = 8}), build(base));
  EXPECT_NE(build({.min = 2, .max = 64, .divisor = 2, .hint = 16}), build(base));
}

TEST(Hash, NestedGraphsCountByContent) {
  auto build = [](const char *op) {
    Build inner;
    ValueId x = inner.input("x", {4});
    GraphPtr g = inner.finish({inner.add(op, {x})});
    Build b;
    ValueId y = b.add("call", {b.input("x", {4})}, {{"graph", g}});
    return b.finish({b.add("call", {y}, {{"graph", g}})});
  };
  EXPECT_EQ(digest_of(*build("relu")), digest_of(*build("relu")));
  EXPECT_NE(digest_of(*build("relu")), digest_of(*build("print")));
  EXPECT_EQ(build("relu")->find("call")->attrs, build("relu")->find("call")->attrs);
}

}  // namespace
}  // namespace kiln
