// The turns of a scan as one kernel: against a loop over the program of one turn.
#include <gtest/gtest.h>

#include <random>

#include "tests/unit/jit/kernel/interpreter.h"
#include "tests/unit/jit/kernel/program_builder.h"
#include "tests/unit/jit/kernel/symbols.h"

namespace kiln::kernel::testing {
namespace {

// A turn: from `before`, and element `x` of a sequence, `after`, which is also an element of a result.
struct Scan {
  ProgramBuilder b;
  Turns turns;
  uint32_t before = 0, x = 0, after = 0;

  explicit Scan(const Shape &dims, bool reverse = false) {
    turns.count = t;
    turns.reverse = reverse;
    before = b.input(dims);
    x = b.input(dims);
  }
  void finish(uint32_t made) {
    after = made;
    b.output(after);
    const Shape dims = b.program.tensors[after].dims;
    Shape all = dims;
    all.insert(all.begin(), t);
    const uint32_t end = b.input(dims), read = b.input(all), written = b.input(all);
    turns.carried = {{before, after, end}};
    turns.read = {{x, read}};
    turns.made = {{after, written}};
  }
};

std::optional<Fused> fused(const Scan &scan, bool fuse_all = true, const Target &target = *Target::by_name("v4")) {
  Result<std::optional<Fused>> made = fuse_turns(scan.b.program, scan.turns, target, {.fuse = fuse_all});
  EXPECT_TRUE(made.ok()) << made.status().message();
  return made.ok() ? std::move(*made) : std::nullopt;
}

// All turns by one kernel, after `laid_out` others, are those of the program one after the other.
void expect_as_turns(const Scan &scan, const Sizes &sizes, size_t laid_out = 0,
                     const Target &target = *Target::by_name("v4")) {
  const std::optional<Fused> all = fused(scan, true, target);
  ASSERT_TRUE(all);
  ASSERT_EQ(all->launches.size(), laid_out + 1);
  Result<Fused> turn = fuse(scan.b.program, *Target::by_name("v4"), {});
  ASSERT_TRUE(turn.ok()) << turn.status().message();
  const auto [before, after, end] = scan.turns.carried[0];
  const uint32_t read = scan.turns.read[0].whole, written = scan.turns.made[0].whole;
  std::vector<Array> x(scan.b.program.tensors.size());
  std::mt19937 random(1);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (size_t i = 0; i < x.size(); ++i) {
    const Expr count = product_of(scan.b.program.tensors[i].dims);
    x[i].resize(static_cast<size_t>(count.evaluate([&](const std::string &s) { return sizes.at(s); })));
    for (Scalar &s : x[i]) s.f = uniform(random);
  }
  std::vector<Array> y = x, one = x;
  run(*all, y, sizes);
  const auto turns = static_cast<size_t>(sizes.at("t"));
  const size_t size = x[before].size();
  for (size_t k = 0; k < turns; ++k) {
    const size_t at = (scan.turns.reverse ? turns - 1 - k : k) * size;
    std::copy_n(x[read].begin() + static_cast<long>(at), size, one[scan.x].begin());
    run(*turn, one, sizes);
    for (size_t e = 0; e < size; ++e)
      ASSERT_EQ(y[written][at + e].f, one[after][e].f) << "turn " << k << " element " << e;
    one[before] = one[after];
  }
  for (size_t e = 0; e < size; ++e) ASSERT_EQ(y[end][e].f, one[before][e].f) << "in the end, element " << e;
  const Kernel &kernel = *all->launches.back().kernel;
  EXPECT_TRUE(parse(serialize(kernel)).ok()) << print(kernel);
}

// h x + x
Scan recurrence(const Shape &dims, bool reverse = false) {
  Scan scan(dims, reverse);
  const uint32_t product = scan.b.map(Core::mul, scan.before, static_cast<int32_t>(scan.x));
  scan.finish(scan.b.map(Core::add, product, static_cast<int32_t>(scan.x)));
  return scan;
}

TEST(Turns, PointsCarryWhatIsTheirs) {
  for (const bool reverse : {false, true})
    for (const int64_t turns : {0, 1, 4}) expect_as_turns(recurrence({n, 5}, reverse), {{"n", 3}, {"t", turns}});
  expect_as_turns(recurrence({}), {{"t", 3}});
}

// h - (the sum of h's row) + x
TEST(Turns, PointsCarryRowsThatTheyReduce) {
  Scan scan({n, 6});
  const uint32_t sum = scan.b.reduce_last(Core::add, scan.before);
  const uint32_t rest = scan.b.map(Core::sub, scan.before, static_cast<int32_t>(sum));
  scan.finish(scan.b.map(Core::add, rest, static_cast<int32_t>(scan.x)));
  expect_as_turns(scan, {{"n", 3}, {"t", 4}});
}

TEST(Turns, PointsThatLieSideBySideAreWalkedTogetherOnAProcessor) {
  const Scan scan = recurrence({512});
  const std::optional<Fused> all = fused(scan), on_device = fused(scan, true, Target::device("sm_80"));
  ASSERT_TRUE(all && on_device);
  const Kernel &kernel = *all->launches[0].kernel;
  ASSERT_EQ(kernel.parallel.size(), 1u) << print(kernel);
  EXPECT_TRUE(kernel.parallel[0].extent.is(4)) << print(kernel);
  EXPECT_TRUE(kernel.stages[1].axes.back().extent.is(128)) << print(kernel);
  EXPECT_TRUE(on_device->launches[0].kernel->parallel[0].extent.is(512)) << print(*on_device->launches[0].kernel);
  expect_as_turns(scan, {{"t", 3}});
}

TEST(Turns, AreNotOneKernelWherePointsReadWhatOthersCarry) {
  Scan scan({4, 4});
  const uint32_t turned = scan.b.view(
      scan.before, {4, 4}, [](const std::vector<Expr> &index) { return std::vector<Expr>{index[1], index[0]}; });
  scan.finish(scan.b.map(Core::add, turned, static_cast<int32_t>(scan.x)));
  EXPECT_FALSE(fused(scan));
}

TEST(Turns, AreNotOneKernelWherePointsWouldCarryMuch) {
  Scan scan({2, 5000});
  const uint32_t sum = scan.b.reduce_last(Core::add, scan.before);
  scan.finish(scan.b.map(Core::add, scan.x, static_cast<int32_t>(sum)));
  EXPECT_FALSE(fused(scan));
}

// A network: tanh(w h + x).
Scan network(const Shape &dims, bool reverse = false) {
  Scan scan(dims, reverse);
  const uint32_t w = scan.b.input({dims.back(), dims.back()});
  const uint32_t sum = scan.b.map(Core::add, scan.b.linear(scan.before, w), static_cast<int32_t>(scan.x));
  scan.finish(scan.b.map(Core::tanh, sum));
  return scan;
}

const Target device = Target::device("sm_80");

TEST(Turns, SmallProductsOfWhatIsCarriedAreInTheKernel) {
  for (const bool reverse : {false, true})
    for (const int64_t turns : {0, 1, 4}) expect_as_turns(network({3, 6}, reverse), {{"t", turns}}, 1);
  for (const Shape &dims : {Shape{6}, Shape{1, 6}, Shape{2, 3, 6}, Shape{1, 33}})
    for (const Target &target : {*Target::by_name("v4"), device}) expect_as_turns(network(dims), {{"t", 4}}, 1, target);
}

TEST(Turns, RowsOfABatchAreTasksOnADevice) {
  expect_as_turns(network({n, 6}), {{"n", 3}, {"t", 4}}, 1, device);
  expect_as_turns(network({2, n, 6}), {{"n", 3}, {"t", 4}}, 1, device);
  EXPECT_EQ(fused(network({n, 6}), true, device)->launches[1].kernel->parallel.size(), 1u);
  EXPECT_FALSE(fused(network({n, 6})));
  EXPECT_TRUE(fused(network({3, 6}))->launches[1].kernel->parallel.empty());
}

// tanh(f) h + tanh(g) x, where f and g are halves of w h.
TEST(Turns, GatesArePartsOfOneProduct) {
  Scan scan({3, 5});
  const uint32_t w = scan.b.input({10, 5}), all = scan.b.linear(scan.before, w);
  const auto gate = [&](int64_t number) {
    const uint32_t part = scan.b.view(all, {3, 5}, [=](const std::vector<Expr> &index) {
      return std::vector<Expr>{index[0], index[1] + number * 5};
    });
    return scan.b.map(Core::tanh, part);
  };
  const uint32_t kept = scan.b.map(Core::mul, gate(0), static_cast<int32_t>(scan.before));
  const uint32_t added = scan.b.map(Core::mul, gate(1), static_cast<int32_t>(scan.x));
  scan.finish(scan.b.map(Core::add, kept, static_cast<int32_t>(added)));
  expect_as_turns(scan, {{"t", 4}}, 1);
}

// v tanh(w h) + x
TEST(Turns, AProductReadsWhatAnotherOneMade) {
  Scan scan({3, 5});
  const uint32_t first = scan.b.map(Core::tanh, scan.b.linear(scan.before, scan.b.input({7, 5})));
  const uint32_t second = scan.b.linear(first, scan.b.input({5, 7}));
  scan.finish(scan.b.map(Core::add, second, static_cast<int32_t>(scan.x)));
  expect_as_turns(scan, {{"t", 4}}, 2);
}

TEST(Turns, WeightsAreLaidOutOnceIfTheyAreParametersAndNotAtAllIfTheyLieRight) {
  Scan scan = network({3, 6});
  scan.turns.prepared = {scan.turns.read[0].whole};
  EXPECT_FALSE(fused(scan)->launches[0].prepared);
  scan.turns.prepared = {2};  // w
  EXPECT_TRUE(fused(scan)->launches[0].prepared);
  EXPECT_FALSE(fused(scan)->launches[1].prepared);

  Scan right({3, 6});
  const uint32_t w = right.b.view(right.b.input({6, 6}), {6, 6},
                                  [](const std::vector<Expr> &index) { return std::vector<Expr>{index[1], index[0]}; });
  right.finish(right.b.map(Core::add, right.b.linear(right.before, w), static_cast<int32_t>(right.x)));
  expect_as_turns(right, {{"t", 4}});
}

TEST(Turns, ValuesThatAreCarriedApartAreInOneKernel) {
  for (const Shape &dims : {Shape{}, Shape{5}, Shape{n, 5}}) {
    Scan scan(dims);
    const uint32_t other = scan.b.input(dims);
    const uint32_t product = scan.b.map(Core::mul, other, static_cast<int32_t>(scan.x));
    scan.b.output(product);
    scan.finish(scan.b.map(Core::add, scan.before, static_cast<int32_t>(scan.x)));
    scan.turns.carried.push_back({other, product, scan.b.input(dims)});
    expect_as_turns(scan, {{"n", 3}, {"t", 4}});
  }
}

TEST(Turns, AreNotOneKernelWhereProductsAreLargeOrNotKnown) {
  EXPECT_TRUE(fused(network({64})));
  EXPECT_FALSE(fused(network({512})));
  EXPECT_FALSE(fused(network({2, n})));
  EXPECT_TRUE(fused(network({n, 64}), true, device));
  EXPECT_FALSE(fused(network({n, 512}), true, device));
}

TEST(Turns, AreNotOneKernelWhereColumnsAreOfWhatOthersCarry) {
  Scan scan({4, 4});  // x h^T
  scan.finish(scan.b.linear(scan.x, scan.before));
  EXPECT_FALSE(fused(scan, true, device));
  expect_as_turns(scan, {{"t", 4}});  // in one task there are no others
}

TEST(Turns, AreNotOneKernelWithoutFusion) { EXPECT_FALSE(fused(recurrence({n, 5}), false)); }

}  // namespace
}  // namespace kiln::kernel::testing
