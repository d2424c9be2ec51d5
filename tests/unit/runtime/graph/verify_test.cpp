#include <gtest/gtest.h>

#include "tests/unit/runtime/graph/fake_ops.h"

namespace kiln {
namespace {

using fake::Build;
using fake::n;

std::string verified(Build &b, std::vector<ValueId> outputs) {
  Build::check(b.edit.set_output_values(outputs));
  return b.edit.finish().status().message();
}

TEST(Verify, SymbolsNeedAnInputThatBindsThem) {
  Build b;
  b.input("x", {2 * n()});
  EXPECT_EQ(verified(b, {}),
            "invariant 'symbols' broken by symbol 'n': no input has it as a dimension, so nothing binds it");
  b.input("y", {n()});
  EXPECT_EQ(verified(b, {}), "");
  ValueId z = b.add("every", {}, {{"shape", AttrValue(Shape{Expr::symbol("k")})}}, "z");
  EXPECT_EQ(verified(b, {z}),
            "invariant 'symbols' broken at node 'z': [every] shape: no input has symbol 'k' as a dimension, so nothing "
            "binds it");
}

TEST(Verify, MutationIsAnEpilogueOnInputs) {
  Build b;
  ValueId x = b.input("x", {4}), y = b.add("relu", {x}, {}, "y");
  ValueId w = b.add("copy_", {y, x}, {}, "w");
  EXPECT_EQ(verified(b, {w}), "invariant 'mutation' broken at node 'w': it writes 'y', which is no input");

  Build c;
  x = c.input("x", {4});
  ValueId first = c.add("copy_", {x, c.add("relu", {x})}, {}, "first");
  c.add("copy_", {x, c.add("relu", {x})}, {}, "second");
  EXPECT_EQ(verified(c, {first}),
            "invariant 'mutation' broken at node 'second': it reads input 'x' after 'first' has written it");

  Build d;
  x = d.input("x", {4});
  w = d.add("copy_", {x, d.add("relu", {x})}, {}, "w");
  EXPECT_EQ(verified(d, {w, x}),
            "invariant 'mutation' broken at output 'output1': it is a view of input 'x', which 'w' writes");
  ValueId after = d.add("relu", {w}, {}, "after");
  EXPECT_EQ(verified(d, {after}),
            "invariant 'mutation' broken at node 'after': it reads the result of 'w', which only an output may");
}

TEST(Verify, NestedGraphsAreVerifiedAndWriteNothing) {
  Build inner;
  ValueId x = inner.input("x", {4});
  GraphPtr writes = inner.finish({inner.add("copy_", {x, inner.add("relu", {x})}, {}, "w")});
  Build b;
  ValueId y = b.add("call", {b.input("x", {4})}, {{"graph", writes}}, "c");
  EXPECT_EQ(verified(b, {y}),
            "in attribute 'graph' of node 'c': invariant 'mutation' broken at node 'w': a nested graph may not write "
            "its inputs");
}

TEST(Verify, SignatureMustStay) {
  Build b;
  ValueId x = b.input("x", {n(), 4});
  b.parameter("w", {4});
  ValueId y = b.add("relu", {x}, {}, "y"), z = b.add("relu", {x}, {}, "z");
  GraphPtr g = b.finish({y, z});
  EXPECT_TRUE(verify_same_signature(*g, *g).ok());
  EXPECT_EQ(verify_same_signature(*g, *Build(g).finish({y})).message(),
            "invariant 'signature' broken by the graph: outputs were 2 and are 1");
  Build h(g);
  h.input("more", {3});
  EXPECT_EQ(verify_same_signature(*g, *Build::take(h.edit.finish())).message(),
            "invariant 'signature' broken by the graph: inputs were 1 and are 2");
  Build k(g);
  ASSERT_TRUE(k.edit.declare_symbol("n", {.max = 10}).ok());
  EXPECT_EQ(verify_same_signature(*g, *Build::take(k.edit.finish())).message(),
            "invariant 'signature' broken by the graph: the symbols or their ranges are others");
}

TEST(Verify, OutputsThatComeToShareStorageAreFound) {
  Build b;
  ValueId x = b.input("x", {n(), 4});
  ValueId y = b.add("relu", {x}, {}, "y"), z = b.add("relu", {x}, {}, "z");
  GraphPtr g = b.finish({y, z});
  Build e(g);
  ASSERT_TRUE(e.edit.replace(z, y).ok());
  EXPECT_EQ(outputs_that_came_to_share(*g, *Build::take(e.edit.finish())), std::vector<size_t>{1});
  Build f(g);
  EXPECT_EQ(outputs_that_came_to_share(*g, *f.finish({x, z})), std::vector<size_t>{0});
  EXPECT_TRUE(outputs_that_came_to_share(*Build(g).finish({x, z}), *Build(g).finish({x, z})).empty());
}

}  // namespace
}  // namespace kiln
