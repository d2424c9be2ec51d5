#include <gtest/gtest.h>

#include "jit/kernel/body.h"
#include "jit/kernel/fuse.h"
#include "tests/unit/jit/kernel/program_builder.h"

namespace kiln::kernel::testing {
namespace {

Kernel last_kernel(const ProgramBuilder &b, const char *level = "v4") {
  Result<Fused> result = fuse(b.program, *Target::by_name(level), {});
  EXPECT_TRUE(result.ok()) << result.status().message();
  return *result->launches.back().kernel;
}

Kernel transpose(int64_t rows, int64_t columns) {
  ProgramBuilder b;
  const uint32_t x = b.input({rows, columns});
  b.output(b.view(x, {columns, rows}, [](const std::vector<Expr> &at) { return std::vector<Expr>{at[1], at[0]}; }));
  return last_kernel(b);
}

TEST(Schedule, LetsATransposeGoInSquareBlocks) {
  const Kernel large = transpose(300, 200);
  EXPECT_EQ(large.schedule.tiles, (std::vector<uint32_t>{64, 64})) << print(large);
  EXPECT_EQ(crossed_loads(large).size(), 1u);
  const Kernel narrow = transpose(300, 8);  // no vector of its columns
  EXPECT_TRUE(crossed_loads(narrow).empty()) << print(narrow);
}

// A sum or maximum of windows of 3 x 3: lanes along a window's row would be 3.
TEST(Schedule, LetsLanesBeWindowsRatherThanWhatLiesInThem) {
  for (const Core combine : {Core::add, Core::max}) {
    ProgramBuilder b;
    b.output(b.windows_of_3_by_3(combine, b.input({64, 30, 30})));
    const Kernel kernel = last_kernel(b, "v3");
    EXPECT_EQ(kernel.schedule.vector, Schedule::Vector::parallel) << print(kernel);
  }
}

// A convolution of each channel by itself, whose window is one axis: lanes along it would divide, and waste the most.
Kernel depthwise(int64_t side, int64_t window, int64_t stride) {
  const int64_t pixels = (side - window) / stride + 1;
  ProgramBuilder b;
  Compute c;
  c.dims = {16, pixels, pixels};
  c.reduce = {window * window};
  BodyBuilder body(c.body);
  const std::vector<Expr> at = ProgramBuilder::axes(c.dims);
  const Expr k = Expr::axis(3, c.reduce[0]);
  const int x =
      body.load(0, DType::f32, {at[0], at[1] * stride + floor_div(k, window), at[2] * stride + mod(k, window)});
  body.yield(body.op(Core::mul, x, body.load(1, DType::f32, {at[0], k})));
  c.carriers = carriers_of(Core::add, DType::f32);
  const uint32_t image = b.input({16, side, side}), weight = b.input({16, window * window}, true);
  b.output(b.define(std::move(c), {image, weight}));
  return last_kernel(b, "v3");
}

TEST(Schedule, LetsLanesBePixelsOfADepthwiseConvolutionWhateverItsStrideAndWindow) {
  for (const int64_t stride : {1, 2})
    for (const int64_t window : {3, 5, 7})
      EXPECT_EQ(depthwise(41, window, stride).schedule.vector, Schedule::Vector::parallel) << window << "/" << stride;
  // A window as wide as the image, whose elements it reads in their order.
  EXPECT_EQ(depthwise(13, 7, 1).schedule.vector, Schedule::Vector::parallel);
}

Kernel product(int64_t rows, int64_t depth, int64_t columns, bool is_packed, const char *level = "v4") {
  ProgramBuilder b;
  b.output(b.linear(b.input({rows, depth}), b.input({columns, depth}, is_packed)));
  return last_kernel(b, level);
}

TEST(Schedule, DividesAProductAmongThreadsWhereThatIsWorthTheirStart) {
  for (const bool is_packed : {false, true}) {
    EXPECT_EQ(task_count(product(64, 1024, 1024, is_packed)), Expr(8)) << is_packed;
    EXPECT_EQ(task_count(product(16, 32, 64, is_packed)), Expr(1)) << is_packed;
  }
  EXPECT_EQ(task_count(product(256, 256, 256, false)), Expr(8));
}

// As many factors and terms as there are rows would not tell where results lie.
TEST(Schedule, LetsLanesOfAProductsEndGoAlongItsResultsNotAlongItsFactors) {
  for (const bool by_rows : {false, true}) {
    ProgramBuilder b;
    uint32_t y = b.linear(b.input({64, 32}), b.input({128, 32}));
    for (const Core core : {Core::mul, Core::add, Core::max})
      y = b.map(core, y, static_cast<int32_t>(by_rows ? b.input({64, 1}) : b.input({128})));
    b.output(y);
    const Kernel kernel = last_kernel(b, "v3");
    ASSERT_TRUE(is_tiled_contraction(kernel)) << print(kernel);
    EXPECT_FALSE(kernel.schedule.vector_m) << print(kernel);
  }
}

// Each task packs its columns of the second input.
TEST(Schedule, LetsTasksOfAProductOfInputsHaveManyRowsWithAvx2) {
  const auto tiles = [](int64_t size, bool is_packed) {
    return product(size, size, size, is_packed, "v3").schedule.tiles;
  };
  EXPECT_EQ(tiles(2048, false), (std::vector<uint32_t>{516, 512}));
  EXPECT_EQ(tiles(1024, false), (std::vector<uint32_t>{516, 256}));
  EXPECT_EQ(tiles(1024, true), (std::vector<uint32_t>{48, 512}));
}

}  // namespace
}  // namespace kiln::kernel::testing
