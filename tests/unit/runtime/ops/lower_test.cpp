// The forms that ops take: what a view's map divides by, which axes of a product are rows, what guards a load.
#include "tests/unit/runtime/ops/fixture.h"

namespace kiln::testing {
namespace {

using kernel::ContractRole;
using kernel::Core;
using ops::f32;
using ops::i64;
using ops::ints;
using ops::sym;

// The index of the operand at index (i0, i1, ...) of the result, as text.
std::string view_map(std::string_view op, const TensorType &operand, AttrMap attrs) {
  Result<Node> node = infer_op(op, {operand}, std::move(attrs));
  if (!node.ok()) return node.status().message();
  const TensorType &result = node->results[0];
  std::vector<Expr> index;
  for (size_t d = 0; d < result.rank(); ++d) index.push_back(Expr::axis(static_cast<uint32_t>(d), result.dims[d]));
  ViewContext context{*find_op(op), operand, result, node->attrs, index, {}};
  EXPECT_TRUE(find_op(op)->view(context).ok());
  EXPECT_EQ(context.operand_index.size(), operand.rank());
  return text_of(context.operand_index);
}
std::string reshape_map(Shape from, Shape to) {
  return view_map("reshape", f32(std::move(from)), {{"shape", AttrValue(std::move(to))}});
}

TEST(ReshapeMap, DividesOnlyWithinTheDimsThatChange) {
  const Dim b = sym("b"), t = sym("t");
  EXPECT_EQ(reshape_map({b, t, 12}, {b, t, 3, 4}), "[i0, i1, 4*i2 + i3]");
  EXPECT_EQ(reshape_map({b, t, 3, 4}, {b, t, 12}), "[i0, i1, i2 // 4, i2 % 4]");
  EXPECT_EQ(reshape_map({b, t, 5}, {b * t, 5}), "[i0 // t, i0 % t, i1]");
  EXPECT_EQ(reshape_map({b * t, 5}, {b, t, 5}), "[t*i0 + i1, i2]");
}

TEST(ReshapeMap, TakesOnesForNothing) {
  EXPECT_EQ(reshape_map({1, 7, 1}, {7}), "[0, i0, 0]");
  EXPECT_EQ(reshape_map({7}, {1, 7, 1}), "[i1]");
  EXPECT_EQ(reshape_map({sym("b"), 4, sym("t"), 8}, {sym("b"), 4, 1, sym("t"), 8}), "[i0, i1, i3, i4]");
}

TEST(ViewMap, StepsAndPermutes) {
  EXPECT_EQ(view_map("slice", f32({17, 5}), {{"dim", 0}, {"start", Dim(-5)}, {"end", Dim(17)}, {"step", 2}}),
            "[2*i0 + 12, i1]");
  EXPECT_EQ(view_map("permute", f32({3, 5, 7}), {{"dims", ints({2, 0, 1})}}), "[i1, i2, i0]");
  EXPECT_EQ(view_map("expand", f32({1, 5}), {{"shape", AttrValue(Shape{2, 3, 5})}}), "[0, i2]");
  EXPECT_EQ(view_map("unsqueeze", f32({3, 5}), {{"dims", ints({1})}}), "[i0, i2]");
  EXPECT_EQ(view_map("squeeze", f32({3, 1, 5}), {{"dims", ints({1})}}), "[i0, 0, i1]");
}

kernel::Compute lowered(std::string_view op, const std::vector<TensorType> &inputs, AttrMap attrs = {}) {
  const Result<Node> node = infer_op(op, inputs, std::move(attrs));
  kernel::Compute compute;
  if (!node.ok()) {
    ADD_FAILURE() << node.status().message();
    return compute;
  }
  compute.results[0].dtype = node->results[0].dtype;
  compute.dims = node->results[0].dims;
  LowerContext context{*find_op(op), inputs, node->results[0], node->attrs, compute, kernel::BodyBuilder(compute.body)};
  EXPECT_TRUE(find_op(op)->lower(context).ok());
  return compute;
}
std::string roles(const kernel::Compute &compute) {
  return join(compute.roles, "", [](ContractRole role) {
    return role == ContractRole::batch ? "b" : role == ContractRole::m ? "m" : "n";
  });
}
bool any_guard(const kernel::Body &body) {
  for (const kernel::Value &value : body.values)
    if (value.op == Core::load && value.access.valid >= 0) return true;
  return false;
}

TEST(LowerMatmul, CountsBatchDimsThatOneSideLacksAsRows) {
  EXPECT_EQ(roles(lowered("matmul", {f32({3, 4}), f32({4, 5})})), "mn");
  EXPECT_EQ(roles(lowered("matmul", {f32({2, 3, 4}), f32({2, 4, 5})})), "bmn");
  EXPECT_EQ(roles(lowered("matmul", {f32({2, 7, 3, 4}), f32({4, 5})})), "mmmn");
  EXPECT_EQ(roles(lowered("matmul", {f32({2, 7, 3, 4}), f32({2, 1, 4, 5})})), "bmmn");
  EXPECT_EQ(roles(lowered("matmul", {f32({2, 7, 3, 4}), f32({7, 4, 5})})), "bbmn");
  EXPECT_EQ(roles(lowered("matmul", {f32({3, 4}), f32({2, 4, 5})})), "bmn");
}

TEST(LowerCorrelate2d, IsAContractionForOneGroupAndASumForSeveral) {
  const kernel::Compute one = lowered("correlate2d", {f32({2, 4, 8, 8}), f32({6, 4, 3, 3})});
  ASSERT_TRUE(one.contract);
  EXPECT_EQ(roles(one), "bnmm");
  ASSERT_EQ(one.reduce.size(), 1u);
  EXPECT_EQ(one.reduce[0].text(), "36");
  const kernel::Compute two = lowered("correlate2d", {f32({2, 4, 8, 8}), f32({6, 2, 3, 3})}, {{"groups", 2}});
  EXPECT_FALSE(two.contract);
  EXPECT_EQ(two.carriers.types.size(), 1u);
}

TEST(LowerCorrelate2d, GuardsLoadsOnlyWhereThereIsPadding) {
  const std::vector<TensorType> types = {f32({2, 4, 8, 8}), f32({6, 4, 3, 3})};
  EXPECT_FALSE(any_guard(lowered("correlate2d", types).contract->a));
  EXPECT_TRUE(any_guard(lowered("correlate2d", types, {{"padding", ints({1, 1})}}).contract->a));
}

TEST(LowerIndexing, GuardsTheLoadAtALoadedIndex) {
  for (const kernel::Compute &compute :
       {lowered("embedding", {f32({9, 4}), i64({3})}), lowered("gather", {f32({9, 4}), i64({3, 4})}, {{"dim", 0}})}) {
    const kernel::Value &load = compute.body.values.back();
    ASSERT_EQ(load.op, Core::load);
    ASSERT_GE(load.access.valid, 0);
    EXPECT_EQ(compute.body.values[static_cast<size_t>(load.access.valid)].op, Core::in_range);
  }
}

TEST(LowerReduce, GivesAScalarOneStepToReduce) {
  EXPECT_EQ(lowered("sum", {f32({})}).reduce.size(), 1u);
  EXPECT_EQ(lowered("sum", {f32({3, 4, 5})}, {{"dims", ints({0, 2})}}).reduce.size(), 2u);
  EXPECT_EQ(lowered("argmax", {f32({3, 4})}).results[0].value, 1);
}

}  // namespace
}  // namespace kiln::testing
