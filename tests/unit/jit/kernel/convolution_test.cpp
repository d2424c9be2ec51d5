#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/jit/kernel/program_builder.h"

namespace kiln::kernel::testing {
namespace {

// A convolution of 3 x 3, with a border of 1, as a contraction of pixels by channels.
uint32_t convolution(ProgramBuilder &b, uint32_t x, int64_t channels, int64_t side, int64_t made) {
  Compute c;
  c.dims = {made, side, side};
  c.roles = {ContractRole::n, ContractRole::m, ContractRole::m};
  c.reduce = {channels * 9};
  Contract &contract = c.contract.emplace();
  contract.accumulator = DType::f32;
  const std::vector<Expr> at = ProgramBuilder::axes(c.dims);
  const Expr k = Expr::axis(3, c.reduce[0]), y = at[1] + mod(floor_div(k, 3), 3) - 1, z = at[2] + mod(k, 3) - 1;
  BodyBuilder windows(contract.a), weights(contract.b);
  int inside = -1;
  for (const Expr &e : {y, z}) {
    const int index = windows.index(e), from_0 = windows.op(Core::ge, index, windows.index(0));
    const int within = windows.op(Core::logical_and, from_0, windows.op(Core::lt, index, windows.index(side)));
    inside = inside < 0 ? within : windows.op(Core::logical_and, inside, within);
  }
  windows.yield(windows.load(0, DType::f32, {floor_div(k, 9), y, z}, inside));
  weights.yield(weights.load(1, DType::f32, {at[0], k}));
  const uint32_t weight = b.input({made, channels * 9}, true);
  return b.define(std::move(c), {x, weight});
}

TEST(Convolution, HasItsImageCopiedWithABorderForWindowsToBeReadWhereTheyLie) {
  ProgramBuilder b;
  b.output(convolution(b, b.input({16, 8, 8}), 16, 8, 32));
  const Fused f = fused(b, true, "v3");
  ASSERT_EQ(f.launches.size(), 3u);  // weights are packed, the image is copied
  const Kernel &copy = *f.launches[1].kernel, &product = *f.launches[2].kernel;
  EXPECT_TRUE(copy.buffers.back().size.is(16 * 10 * 10)) << print(copy);
  for (const Value &v : product.stages[0].contract->a.values) EXPECT_LT(v.access.valid, 0) << print(product);
  EXPECT_EQ(defs_of(f.launches, f.tensors, b.program), (std::vector<std::vector<uint32_t>>{{}, {0}, {0}}));
  EXPECT_EQ(fused(b, true, "v4").launches.size(), 2u);  // whose microkernel has too many rows

  ProgramBuilder small;
  small.output(convolution(small, small.input({2, 4, 4}), 2, 4, 2));
  EXPECT_EQ(fused(small, true, "v3").launches.size(), 2u);
}

TEST(Convolution, EndsWithWhatTheNextOneReads) {
  ProgramBuilder b;
  const uint32_t x = b.input({16, 8, 8});
  const uint32_t first = convolution(b, x, 16, 8, 16);
  const uint32_t sum = b.map(Core::max, b.map(Core::add, first, static_cast<int32_t>(x)), static_cast<int32_t>(x));
  b.output(convolution(b, sum, 16, 8, 16));
  const Fused f = fused(b, true, "v3");
  const auto makes_sum = [&](const Launch &launch) { return std::ranges::count(launch.buffers, sum) > 0; };
  const auto maker = std::ranges::find_if(f.launches, makes_sum);
  ASSERT_NE(maker, f.launches.end());
  EXPECT_TRUE(is_tiled_contraction(*maker->kernel)) << print(*maker->kernel);
  EXPECT_EQ(maker->kernel->buffers.back().space, Buffer::Space::out);
  EXPECT_EQ(
      std::ranges::count_if(f.launches, [&](const Launch &l) { return std::ranges::count(l.buffers, first) > 0; }), 0);
}

}  // namespace
}  // namespace kiln::kernel::testing
