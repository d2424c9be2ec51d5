#include <gmock/gmock.h>

#include "tests/unit/jit/kernel/program_builder.h"
#include "tests/unit/jit/kernel/symbols.h"

namespace kiln::kernel::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

uint32_t transposed(ProgramBuilder &b, uint32_t square) {
  return b.view(square, b.program.tensors[square].dims,
                [](const std::vector<Expr> &at) { return std::vector<Expr>{at[1], at[0]}; });
}

// Of the last kernel of a program, on a processor and on a device, which agree.
std::vector<InPlace> pairs_of(const ProgramBuilder &b) {
  std::vector<InPlace> pairs;
  for (const bool on_device : {false, true}) {
    const Target target = on_device ? Target::device("sm_90") : *Target::by_name("v4");
    Result<Fused> fused = fuse(b.program, target, {});
    EXPECT_TRUE(fused.ok()) << fused.status().message();
    if (!fused.ok()) return {};
    std::vector<InPlace> found = in_place(*fused->launches.back().kernel);
    if (!on_device)
      pairs = std::move(found);
    else
      EXPECT_EQ(found, pairs) << print(*fused->launches.back().kernel);
  }
  return pairs;
}

TEST(InPlace, AMapMayTakeTheMemoryOfWhatItReadsPointByPoint) {
  ProgramBuilder b;
  const uint32_t x = b.input({n, m}), y = b.input({n, m}), row = b.input({m});
  b.output(b.map(Core::add, b.map(Core::mul, x, static_cast<int32_t>(row)), static_cast<int32_t>(y)));
  EXPECT_THAT(pairs_of(b), ElementsAre(InPlace{0, 3}, InPlace{2, 3})) << "x and y, and not the row";
}

TEST(InPlace, NothingIsReadAtAnotherPointThanWritten) {
  ProgramBuilder turned;
  turned.output(turned.map(Core::exp, transposed(turned, turned.input({n, n}))));
  EXPECT_THAT(pairs_of(turned), IsEmpty());
  ProgramBuilder both;
  const uint32_t x = both.input({n, n});
  both.output(both.map(Core::add, x, static_cast<int32_t>(transposed(both, x))));
  EXPECT_THAT(pairs_of(both), IsEmpty()) << "it is read at the point, and at another";
}

TEST(InPlace, ElementsAreOfOneSize) {
  ProgramBuilder b;
  const uint32_t x = b.input({n}, false, DType::f64);
  Compute c;
  c.dims = {n};
  BodyBuilder body(c.body);
  body.yield(body.convert(body.load(0, DType::f64, {Expr::axis(0, n)}), DType::f32));
  b.output(b.define(std::move(c), {x}));
  EXPECT_THAT(pairs_of(b), IsEmpty());
}

TEST(InPlace, ARowIsReadInAllStagesUpToTheOneThatWritesIt) {
  ProgramBuilder b;
  const uint32_t x = b.input({n, m});
  b.output(b.map(Core::sub, x, static_cast<int32_t>(b.reduce_last(Core::max, x))));
  EXPECT_THAT(pairs_of(b), ElementsAre(InPlace{0, 1}));
}

TEST(InPlace, WhatIsReadOnceMoreAfterItWasWrittenStaysWhereItIs) {
  ProgramBuilder b;
  const uint32_t x = b.input({n, m});
  const uint32_t y = b.map(Core::sub, x, static_cast<int32_t>(b.reduce_last(Core::max, x)));
  b.output(y);
  b.output(b.map(Core::sub, x, static_cast<int32_t>(b.reduce_last(Core::add, y))));
  Result<Fused> fused = fuse(b.program, *Target::by_name("v4"), {});
  ASSERT_EQ(fused->launches.size(), 1u);
  const Kernel &k = *fused->launches[0].kernel;
  EXPECT_THAT(in_place(k), ElementsAre(InPlace{0, static_cast<uint16_t>(fused->launches[0].buffers.size() - 1)}))
      << print(k);
}

TEST(InPlace, AnEpilogueMayTakeTheMemoryOfWhatItAddsAndNotOfWhatIsSummed) {
  ProgramBuilder b;
  const uint32_t x = b.input({n, 64}), w = b.input({64, 64}), residual = b.input({n, 64});
  b.output(b.map(Core::add, b.linear(x, w), static_cast<int32_t>(residual)));
  EXPECT_THAT(pairs_of(b), ElementsAre(InPlace{2, 3}));
  ProgramBuilder square;
  const uint32_t s = square.input({n, 64});
  square.output(square.map(Core::add, square.linear(s, square.input({64, 64})), static_cast<int32_t>(s)));
  EXPECT_THAT(pairs_of(square), IsEmpty()) << "its rows are summed for other columns, too";
}

TEST(InPlace, AScatterTakesTheMemoryOfItsBaseByOmittingIt) {
  for (const uint32_t along : {0u, 1u}) {
    ProgramBuilder b;
    const uint32_t x = b.input({n, m}), order = b.input({9}, false, DType::i64),
                   source = b.input(along == 0 ? Shape{9, m} : Shape{n, 9});
    const uint32_t y = b.add_rows(x, order, source, along);
    b.output(y);
    Result<Fused> fused = fuse(b.program, *Target::by_name("v4"), {});
    ASSERT_TRUE(fused.ok());
    ASSERT_EQ(fused->launches.size(), 1u);
    const Launch &launch = fused->launches[0];
    ASSERT_EQ(launch.bases.size(), 1u);
    EXPECT_EQ(launch.bases[0].tensor, x);
    EXPECT_EQ(launch.buffers[launch.bases[0].buffer], y);
    EXPECT_THAT(launch.buffers, ElementsAre(order, source, y)) << "x is not touched";
    EXPECT_EQ(launch.kernel->stages.size(), 1u);
    EXPECT_THAT(in_place(*launch.kernel), IsEmpty());
  }
}

// What a view is folded into begins as a tensor of other dims.
TEST(InPlace, AScatterIntoAViewHasNoBase) {
  ProgramBuilder b;
  const uint32_t x = b.input({m}), order = b.input({9}, false, DType::i64), source = b.input({9, m});
  const uint32_t wide = b.view(x, {n, m}, [](const std::vector<Expr> &at) { return std::vector<Expr>{at[1]}; });
  b.output(b.add_rows(wide, order, source, 0));
  Result<Fused> fused = fuse(b.program, *Target::by_name("v4"), {});
  ASSERT_TRUE(fused.ok());
  ASSERT_EQ(fused->launches.size(), 1u);
  EXPECT_THAT(fused->launches[0].bases, IsEmpty());
  EXPECT_EQ(fused->launches[0].kernel->stages.size(), 2u);
}

}  // namespace
}  // namespace kiln::kernel::testing
