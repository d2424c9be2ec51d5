#include "jit/kernel/fuse.h"

#include <gtest/gtest.h>

#include <random>
#include <tuple>

#include "tests/unit/jit/kernel/interpreter.h"
#include "tests/unit/jit/kernel/program_builder.h"
#include "tests/unit/jit/kernel/symbols.h"

namespace kiln::kernel::testing {
namespace {

// The fused kernels compute what one kernel per compute does; and their bytes read back to the same bytes.
void expect_same_as_unfused(const ProgramBuilder &b, const Sizes &sizes) {
  const Fused one = fused(b), many = fused(b, false);
  std::vector<Array> x, y;
  std::mt19937 random(1);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (const Tensor &tensor : b.program.tensors) {
    Array a(static_cast<size_t>(product_of(tensor.dims).evaluate([&](const std::string &s) { return sizes.at(s); })));
    for (Scalar &s : a) s.f = uniform(random);
    x.push_back(a);
    y.push_back(std::move(a));
  }
  run(one, x, sizes);
  run(many, y, sizes);
  for (size_t i = 0; i < b.program.tensors.size(); ++i) {
    if (!b.program.tensors[i].is_output) continue;
    for (size_t e = 0; e < x[i].size(); ++e)
      ASSERT_NEAR(x[i][e].f, y[i][e].f, 1e-12 * std::max(1.0, std::abs(y[i][e].f)))
          << "tensor " << i << " element " << e;
  }
  for (const Launch &launch : one.launches) {
    Result<Kernel> back = parse(serialize(*launch.kernel));
    ASSERT_TRUE(back.ok()) << back.status().message() << print(*launch.kernel);
    EXPECT_EQ(serialize(*back), serialize(*launch.kernel));
  }
}

TEST(Fuse, GivesResultsOfOneComputeOneStageWithAStoreForEachThatIsNeeded) {
  ProgramBuilder b;
  const uint32_t x = b.input({n, t});
  const uint32_t moments = b.moments_last(x);
  b.output(moments);
  b.output(b.map(Core::div, x, static_cast<int32_t>(moments + 1)));
  const uint32_t waves = b.sine_and_cosine(x);
  b.output(waves + 1);
  const Fused f = fused(b);
  ASSERT_EQ(f.launches.size(), 2u);
  const Kernel &rows = *f.launches[0].kernel, &cosine = *f.launches[1].kernel;
  ASSERT_EQ(rows.stages.size(), 2u) << print(rows);
  ASSERT_EQ(rows.stages[0].stores.size(), 2u) << print(rows);
  EXPECT_EQ(rows.stages[0].stores[0].value, 0);
  EXPECT_EQ(rows.stages[0].stores[1].value, 1);
  EXPECT_EQ(rows.buffers[rows.stages[0].stores[0].to.buffer].space, Buffer::Space::out);
  EXPECT_EQ(rows.buffers[rows.stages[0].stores[1].to.buffer].space, Buffer::Space::row_local);
  ASSERT_EQ(cosine.stages[0].stores.size(), 1u) << print(cosine);  // nobody reads the sine: it is not computed
  EXPECT_EQ(cosine.stages[0].body.values.size(), 2u) << print(cosine);
  expect_same_as_unfused(b, {{"n", 3}, {"t", 5}});
}

// y[k][i][j] = x[i][j] and -x[i][j] for k = 0 and 1, of x = a + a, which costs next to nothing.
TEST(Fuse, StoresAllElementsOfAPointOfAnUnrolledMapThatReadsMemory) {
  ProgramBuilder b;
  const uint32_t a = b.input({n, 8}), x = b.map(Core::add, a, static_cast<int32_t>(a));
  Compute c;
  c.dims = {2, n, 8};
  c.unrolled = {0};
  BodyBuilder body(c.body);
  const int value = body.load(0, DType::f32, {Expr::axis(1, n), Expr::axis(2, 8)});
  body.yield(value);
  body.yield(body.op(Core::neg, value));
  b.program.tensors.push_back({DType::f32, c.dims, row_major_strides(c.dims), true});
  const auto y = static_cast<uint32_t>(b.program.tensors.size() - 1);
  b.program.defs.push_back({{y}, {x}, std::move(c)});
  const Fused f = fused(b);
  ASSERT_EQ(f.launches.size(), 2u);
  const Kernel &kernel = *f.launches[1].kernel;
  ASSERT_EQ(kernel.stages.size(), 1u) << print(kernel);
  ASSERT_EQ(kernel.stages[0].stores.size(), 2u) << print(kernel);
  EXPECT_EQ(kernel.stages[0].stores[0].to.buffer, kernel.stages[0].stores[1].to.buffer);
  EXPECT_TRUE(verify(kernel).ok()) << print(kernel);
  EXPECT_TRUE(in_place(kernel).empty()) << print(kernel);
  std::vector<Array> tensors(b.program.tensors.size());
  for (int i = 0; i < 24; ++i) tensors[a].push_back({.f = i + 1.0});
  run(f, tensors, {{"n", 3}});
  for (size_t i = 0; i < 24; ++i) {
    EXPECT_EQ(tensors[y][i].f, 2.0 * (static_cast<double>(i) + 1));
    EXPECT_EQ(tensors[y][24 + i].f, -2.0 * (static_cast<double>(i) + 1));
  }
}

TEST(Fuse, FoldsEachResultOfACheapMapIntoItsOwnReader) {
  ProgramBuilder b;
  const uint32_t x = b.input({n, t});
  const uint32_t waves = b.sine_and_cosine(x);
  b.output(b.reduce_last(Core::add, waves));
  b.output(b.reduce_last(Core::add, waves + 1));
  const Fused f = fused(b);
  ASSERT_EQ(f.launches.size(), 2u);
  for (const Launch &launch : f.launches) {
    EXPECT_EQ(launch.kernel->stages.size(), 1u) << print(*launch.kernel);
    EXPECT_EQ(launch.kernel->stages[0].body.values.size(), 2u) << print(*launch.kernel);  // the other wave is not there
  }
  expect_same_as_unfused(b, {{"n", 3}, {"t", 5}});
}

// A running maximum is sorted: what is searched, a row of it, has memory where the kernel is.
TEST(Fuse, ScansARowAndSearchesItInOneKernel) {
  ProgramBuilder b;
  const uint32_t x = b.input({n, t}), y = b.input({n, t});
  const uint32_t rising = b.running_max(b.map(Core::exp, x), 1);
  b.output(b.place_in(b.map(Core::exp, y), rising));
  const Fused f = fused(b);
  ASSERT_EQ(f.launches.size(), 1u);
  const Kernel &k = *f.launches[0].kernel;
  ASSERT_EQ(k.stages.size(), 2u) << print(k);
  EXPECT_TRUE(k.stages[0].scans()) << print(k);
  EXPECT_EQ(k.buffers[k.stages[0].stores[0].to.buffer].space, Buffer::Space::row_local);
  EXPECT_EQ(k.schedule.vector, Schedule::Vector::inner);
  expect_same_as_unfused(b, {{"n", 3}, {"t", 5}});
}

TEST(Fuse, SortsARowBetweenMapsInOneKernel) {
  ProgramBuilder b;
  const uint32_t first = b.sorted(b.map(Core::exp, b.input({n, t})), 1, 2, Compute::Order::descending);
  b.output(b.map(Core::sqrt, first));
  b.output(first + 1);
  const Fused f = fused(b);
  ASSERT_EQ(f.launches.size(), 1u);
  const Kernel &k = *f.launches[0].kernel;
  ASSERT_EQ(k.stages.size(), 4u) << print(k);
  ASSERT_TRUE(k.stages[1].sort) << print(k);
  EXPECT_EQ(k.stages[1].sort->columns.size(), 2u);
  EXPECT_EQ(k.stages[1].sort->wanted, Expr(2));
  EXPECT_EQ(k.schedule.vector, Schedule::Vector::inner);
  expect_same_as_unfused(b, {{"n", 3}, {"t", 5}});
}

TEST(Fuse, SortsColumnsAndLeavesOutWhatNobodyReads) {
  ProgramBuilder b;
  const uint32_t x = b.input({n, 4, t});
  b.output(b.sorted(x, 0, n, Compute::Order::ascending));
  b.output(b.sorted(x, 1, 1, Compute::Order::ascending) + 1);
  b.output(b.sorted(b.input({n, 1}), 1, 1, Compute::Order::descending));
  const Fused f = fused(b);
  ASSERT_EQ(f.launches.size(), 3u);
  EXPECT_EQ(f.launches[0].kernel->stages[1].sort->columns.size(), 1u) << print(*f.launches[0].kernel);
  EXPECT_FALSE(f.launches[0].kernel->stages[1].sort->wanted);
  EXPECT_EQ(f.launches[1].kernel->stages[1].sort->columns.size(), 2u) << print(*f.launches[1].kernel);
  EXPECT_EQ(f.launches[2].kernel->stages.size(), 1u) << "one element is in order";
  expect_same_as_unfused(b, {{"n", 3}, {"t", 5}});
}

TEST(Fuse, ScansDownColumnsWithVectorsAcrossThem) {
  ProgramBuilder b;
  const uint32_t x = b.input({n, 4, t});
  b.output(b.map(Core::neg, b.running_max(x, 0)));
  b.output(b.running_max(x, 1));
  const Fused f = fused(b);
  ASSERT_GE(f.launches.size(), 2u);
  for (const Launch &launch : f.launches) {
    if (!launch.kernel->stages[0].scans()) continue;
    EXPECT_EQ(launch.kernel->schedule.vector, Schedule::Vector::parallel) << print(*launch.kernel);
  }
  expect_same_as_unfused(b, {{"n", 3}, {"t", 5}});
}

TEST(Fuse, ScattersRowsWithVectorsAcrossThemAndColumnsWithATaskARow) {
  for (const uint32_t along : {0u, 1u}) {
    ProgramBuilder b;
    const uint32_t x = b.input({n, t}), order = b.input({9}, false, DType::i64),
                   source = b.input(along == 0 ? Shape{9, t} : Shape{n, 9});
    b.output(b.map(Core::neg, b.add_rows(b.map(Core::exp, x), order, source, along)));
    const Fused f = fused(b);
    const Launch &first = f.launches[0];
    const Kernel &k = *first.kernel;
    ASSERT_EQ(k.parallel.size(), 1u) << print(k);
    EXPECT_EQ(k.parallel[0].extent, Expr::symbol("s0"));
    EXPECT_EQ(first.symbols[0], along == 0 ? "t" : "n");
    EXPECT_EQ(k.schedule.vector, along == 0 ? Schedule::Vector::parallel : Schedule::Vector::inner) << print(k);
    EXPECT_TRUE(k.stages[1].stores[0].scatters() && k.stages[1].stores[0].combines()) << print(k);
    // The operand is computed where the result begins; the reader where a row of it is whole.
    EXPECT_EQ(f.launches.size(), along == 0 ? 2u : 1u) << print(k);
    expect_same_as_unfused(b, {{"n", 3}, {"t", 5}});
  }
}

TEST(Fuse, ScattersInOneTaskWhereItsIndexDoesNotShowThatRowsKeepApart) {
  ProgramBuilder b;
  const uint32_t x = b.input({n, t}), order = b.input({9}, false, DType::i64), source = b.input({n, 9});
  const uint32_t sums = b.add_rows(b.map(Core::exp, x), order, source, 1, false);
  b.output(sums);
  b.output(b.map(Core::neg, sums));
  const Fused f = fused(b);
  const Kernel &k = *f.launches[0].kernel;
  EXPECT_TRUE(k.parallel.empty()) << print(k);
  EXPECT_EQ(k.stages[1].axes.size(), 2u) << "the rows are part of the points" << print(k);
  ASSERT_EQ(f.launches.size(), 2u) << "who reads it keeps its own tasks";
  EXPECT_EQ(f.launches[1].kernel->parallel.size(), 1u) << print(*f.launches[1].kernel);
  expect_same_as_unfused(b, {{"n", 3}, {"t", 5}});
}

TEST(Fuse, ReducesColumnsThroughPartialsInScratchOfWhichThereAreSeveralWhereTheirOrderShowsAndIsNotFree) {
  for (const auto &[combine, ordered, partials] :
       {std::tuple{Core::add, true, 32}, {Core::add, false, 1}, {Core::max, true, 1}}) {
    ProgramBuilder b;
    const uint32_t x = b.input({n, 100});
    b.program.tensors[x].strides = {1, n};
    b.output(b.reduce_last(combine, x));
    const Result<Fused> f = fuse(b.program, *Target::by_name("v3"), {.ordered = ordered});
    ASSERT_TRUE(f.ok()) << f.status().message();
    const Kernel &k = *f->launches[0].kernel;
    EXPECT_EQ(k.schedule.vector, Schedule::Vector::parallel);
    EXPECT_EQ(k.schedule.ordered, ordered);
    EXPECT_EQ(partials_in_scratch(k, k.stages[0]), partials) << print(k);
    EXPECT_EQ(points_side_by_side(k), 128u) << "512 bytes of a row where a kernel only reduces columns";
    EXPECT_EQ(scratch_layout(k).size_bytes, Expr(partials * 128 * 4)) << "128 points of f32";
  }
}

TEST(Fuse, CutsLongSumsOfFewResultsIntoGroupsForTasksToShare) {
  const Expr m = Expr::symbol("m");
  struct Case {
    Shape dims;
    bool cut;
    Core combine = Core::add;
  };
  for (const auto &[dims, cut, combine] : {Case{{m}, true},
                                           {{200000}, true},
                                           {{100000}, false},
                                           {{64, 1 << 20}, true},
                                           {{2000, 1 << 20}, false},
                                           {{n, 1 << 20}, false},
                                           {{64, m}, false},
                                           {{m}, false, Core::max}}) {
    ProgramBuilder b;
    const uint32_t y = b.map(Core::exp, b.reduce_last(combine, b.map(Core::exp, b.input(dims))));
    b.output(y);
    const Fused f = fused(b);
    ASSERT_EQ(f.launches.size(), cut ? 2u : 1u) << text_of(dims);
    EXPECT_EQ(f.launches[0].kernel->stages[0].carriers.until.has_value(), cut);
    if (!cut) continue;
    EXPECT_TRUE(f.launches[1].kernel->stages[0].carriers.in_pairs);
    EXPECT_EQ(defs_of(f.launches, f.tensors, b.program), (std::vector<std::vector<uint32_t>>{{0, 1}, {1, 2}}))
        << "what becomes of a sum comes from it, and what is read of it from no other";
  }
  ProgramBuilder b;
  b.output(b.moments_last(b.input({m})));
  for (const int64_t size : {0, 1, 65536, 65537, 200001}) expect_same_as_unfused(b, {{"m", size}});
}

TEST(Fuse, SetsRoomForSumsOfChunksAsideWhereAReductionMayHaveSeveralAndItsOrderShows) {
  const Expr m = Expr::symbol("m");
  for (const auto &[combine, extent, waiting] : {std::tuple{Core::add, Expr(4096), 0},
                                                 {Core::add, Expr(4097), 2},
                                                 {Core::add, Expr(3 * 4096), 2},
                                                 {Core::add, Expr(3 * 4096 + 1), 3},
                                                 {Core::add, m, 52},
                                                 {Core::max, m, 0}}) {
    ProgramBuilder b;
    b.output(b.reduce_last(combine, b.input({n, extent})));
    const Result<Fused> f = fuse(b.program, *Target::by_name("v3"), {});
    ASSERT_TRUE(f.ok()) << f.status().message();
    const Kernel &k = *f->launches[0].kernel;
    EXPECT_EQ(waiting_sums(k.stages[0], sum_chunk), waiting) << print(k);
    EXPECT_EQ(scratch_layout(k).size_bytes, Expr((waiting * 4 + 63) / 64 * 64)) << "f32";
  }
}

TEST(Fuse, MakesOneKernelWithOneFlatAxisOfAPointwiseChain) {
  ProgramBuilder b;
  const uint32_t x = b.input({n, 8, t});
  const uint32_t y = b.map(Core::exp, b.map(Core::add, b.map(Core::mul, x, x), x));
  b.output(y);
  const Fused f = fused(b);
  ASSERT_EQ(f.launches.size(), 1u);
  const Kernel &k = *f.launches[0].kernel;
  EXPECT_EQ(k.parallel.size(), 1u) << print(k);
  EXPECT_EQ(k.stages.size(), 1u);
  EXPECT_EQ(k.buffers.size(), 2u);
  expect_same_as_unfused(b, {{"n", 3}, {"t", 5}});
  expect_same_as_unfused(b, {{"n", 0}, {"t", 1}});
}

TEST(Fuse, KeepsSoftmaxInOneKernelOfRows) {
  ProgramBuilder b;
  const uint32_t x = b.input({n, 4, t});
  const uint32_t e = b.map(Core::exp, b.map(Core::sub, x, static_cast<int32_t>(b.reduce_last(Core::max, x))));
  const uint32_t y = b.map(Core::div, e, static_cast<int32_t>(b.reduce_last(Core::add, e)));
  b.output(y);
  const Fused f = fused(b);
  ASSERT_EQ(f.launches.size(), 1u);
  const Kernel &k = *f.launches[0].kernel;
  EXPECT_EQ(k.parallel.size(), 1u) << print(k);
  EXPECT_EQ(k.stages.size(), 4u) << print(k);
  EXPECT_EQ(k.schedule.vector, Schedule::Vector::inner);
  expect_same_as_unfused(b, {{"n", 3}, {"t", 5}});
  expect_same_as_unfused(b, {{"n", 2}, {"t", 1}});
}

TEST(Fuse, KeepsRmsNormWithResidualInOneKernel) {
  ProgramBuilder b;
  const uint32_t x = b.input({n, t, 16}), r = b.input({n, t, 16}), w = b.input({16}, true);
  const uint32_t h = b.map(Core::add, x, static_cast<int32_t>(r));
  const uint32_t inverse = b.map(Core::rsqrt, b.reduce_last(Core::add, b.map(Core::mul, h, static_cast<int32_t>(h))));
  const uint32_t y = b.map(Core::mul, b.map(Core::mul, h, static_cast<int32_t>(inverse)), static_cast<int32_t>(w));
  b.output(h);
  b.output(y);
  EXPECT_EQ(fused(b).launches.size(), 1u);
  expect_same_as_unfused(b, {{"n", 2}, {"t", 3}});
}

TEST(Fuse, EndsALinearLayerWithItsActivationAndResidualAndPacksItsWeightsOnce) {
  ProgramBuilder b;
  const uint32_t x = b.input({n, t, 24}), w = b.input({40, 24}, true), bias = b.input({40}, true),
                 r = b.input({n, t, 40});
  const uint32_t h = b.map(Core::add, b.linear(x, w), static_cast<int32_t>(bias));
  const uint32_t y = b.map(Core::add, b.map(Core::tanh, h), static_cast<int32_t>(r));
  b.output(y);
  const Fused f = fused(b);
  ASSERT_EQ(f.launches.size(), 2u);
  EXPECT_TRUE(f.launches[0].prepared);
  EXPECT_FALSE(f.launches[1].prepared);
  const Kernel &k = *f.launches[1].kernel;
  EXPECT_EQ(k.parallel.size(), 2u) << print(k);
  EXPECT_EQ(k.stages[0].contract->panel, 32u);
  EXPECT_EQ(f.launches[0].buffers.size(), 2u) << "packing reads the weights alone";
  EXPECT_EQ(k.buffers.size(), 5u) << "x, panels, bias, residual and the result: " << print(k);
  expect_same_as_unfused(b, {{"n", 2}, {"t", 7}});
  expect_same_as_unfused(b, {{"n", 1}, {"t", 1}});
}

// Weights keep their type in panels where widening them later gives the same sums; bytes stand together by fours.
TEST(Fuse, PacksNarrowWeightsAsTheyAre) {
  struct Expected {
    DType x, w, sum, panels;
    uint32_t group;
    const char *target = "v3";
  };
  for (const Expected &e : {Expected{DType::i8, DType::i8, DType::i32, DType::i8, 4},
                            {DType::u8, DType::i8, DType::i32, DType::i8, 4},
                            {DType::f32, DType::bf16, DType::f32, DType::bf16, 1},
                            {DType::f32, DType::f16, DType::f32, DType::f16, 1},
                            {DType::f32, DType::f16, DType::f32, DType::f32, 1, "v3-f16c"},
                            {DType::f32, DType::i8, DType::f32, DType::f32, 1},
                            {DType::i32, DType::i8, DType::i32, DType::i32, 1}}) {
    ProgramBuilder b;
    const uint32_t x = b.input({n, 26}, false, e.x), w = b.input({40, 26}, true, e.w);
    b.output(b.linear(x, w, e.sum));
    const Result<Fused> f = fuse(b.program, *Target::by_name(e.target), {});
    ASSERT_TRUE(f.ok()) << f.status().message();
    const Kernel &k = *f->launches[1].kernel;
    const Contract &contract = *k.stages[0].contract;
    EXPECT_EQ(k.buffers[contract.packed_buffer].type, e.panels) << print(k);
    EXPECT_EQ(contract.b_type(), e.panels) << print(k);
    EXPECT_EQ(contract.group, e.group) << print(k);
    EXPECT_EQ(k.schedule.products, e.group == 4 ? Schedule::Products::dot : Schedule::Products::widened);
    // Three panels of 16 columns, of 28 k where they stand together by fours.
    EXPECT_EQ(k.buffers[contract.packed_buffer].size, Expr(3 * 16 * (e.group == 4 ? 28 : 26)));
    if (e.sum == DType::f32) expect_same_as_unfused(b, {{"n", 5}});
  }
}

TEST(Fuse, EndsALinearLayerWithWhatReadsScalesMadeOfParametersAlone) {
  ProgramBuilder b;
  const uint32_t x = b.input({n, 24}), w = b.input({40, 24}, true), scale = b.input({40}, true);
  const uint32_t h = b.linear(x, w);
  const uint32_t prepared = b.map(Core::exp, scale);  // between the two, in a kernel of `prepare`
  b.output(b.map(Core::mul, h, static_cast<int32_t>(prepared)));
  const Fused f = fused(b);
  int per_call = 0;
  for (const Launch &launch : f.launches) per_call += !launch.prepared;
  EXPECT_EQ(per_call, 1);
  expect_same_as_unfused(b, {{"n", 3}});
}

TEST(Fuse, FoldsReshapeAndPermuteOfHeadsIntoTheAccess) {
  ProgramBuilder b;
  const uint32_t x = b.input({n, t, 24});
  const uint32_t heads = b.view(
      x, {n, t, 4, 6}, [](const std::vector<Expr> &i) { return std::vector<Expr>{i[0], i[1], i[2] * 6 + i[3]}; });
  const uint32_t turned =
      b.view(heads, {n, 4, t, 6}, [](const std::vector<Expr> &i) { return std::vector<Expr>{i[0], i[2], i[1], i[3]}; });
  const uint32_t y = b.map(Core::neg, turned);
  b.output(y);
  const Fused f = fused(b);
  ASSERT_EQ(f.launches.size(), 1u);
  for (const Value &v : f.launches[0].kernel->stages[0].body.values) {
    if (v.op != Core::load) continue;
    EXPECT_EQ(v.access.index[0].text().find("//"), std::string::npos) << v.access.index[0].text();
  }
  expect_same_as_unfused(b, {{"n", 2}, {"t", 3}});
}

TEST(Fuse, ComputesAnExpensiveProducerOfSeveralReadersOnce) {
  ProgramBuilder b;
  const uint32_t x = b.input({n, 8}), w = b.input({n, 1});
  const uint32_t e = b.map(Core::exp, x);
  b.output(b.map(Core::add, e, static_cast<int32_t>(w)));
  b.output(b.map(Core::mul, e, static_cast<int32_t>(w)));
  const Fused f = fused(b);
  ASSERT_EQ(f.launches.size(), 1u);
  int exps = 0;
  for (const Stage &stage : f.launches[0].kernel->stages) {
    for (const Value &v : stage.body.values) exps += v.op == Core::exp;
  }
  EXPECT_EQ(exps, 1) << print(*f.launches[0].kernel);
  expect_same_as_unfused(b, {{"n", 5}});
}

TEST(Fuse, MakesOnceWhatWindowsWouldReadAgainAndAgainFromSeveralArraysOrAcrossRows) {
  using Make = std::function<uint32_t(ProgramBuilder &, uint32_t x)>;
  const auto launches = [](const Make &make) {
    ProgramBuilder b;
    b.output(b.windows_of_3_by_3(Core::add, make(b, b.input({4, 10, 10}))));
    expect_same_as_unfused(b, {});
    return fused(b).launches.size();
  };
  EXPECT_EQ(launches([](ProgramBuilder &b, uint32_t x) { return b.map(Core::neg, x); }), 1u);
  EXPECT_EQ(launches([](ProgramBuilder &b, uint32_t x) {
              return b.map(Core::mul, x, static_cast<int32_t>(b.input({4, 1, 1})));  // a channel's factor
            }),
            1u);
  EXPECT_EQ(launches([](ProgramBuilder &b, uint32_t x) {
              return b.map(Core::add, x, static_cast<int32_t>(b.input({4, 10, 10})));
            }),
            2u);
  EXPECT_EQ(launches([](ProgramBuilder &b, uint32_t x) { return b.map(Core::exp, x); }), 2u);
  EXPECT_EQ(launches([](ProgramBuilder &b, uint32_t x) {
              return b.view(x, {10, 10, 4},
                            [](const std::vector<Expr> &at) { return std::vector<Expr>{at[2], at[0], at[1]}; });
            }),
            2u);
}

TEST(Fuse, NeverReadsARowBeforeItIsWhole) {
  ProgramBuilder b;  // reads its own row backwards: a stage of its own, not the same point
  const uint32_t x = b.input({n, 8});
  const uint32_t e = b.map(Core::exp, x);
  const uint32_t turned =
      b.view(e, {n, 8}, [](const std::vector<Expr> &i) { return std::vector<Expr>{i[0], Expr(7) - i[1]}; });
  b.output(b.map(Core::add, e, static_cast<int32_t>(turned)));
  EXPECT_EQ(fused(b).launches[0].kernel->stages.size(), 2u);
  expect_same_as_unfused(b, {{"n", 3}});
}

// Pairs of views whose maps multiply when they are composed: dims in another order, then the same elements row by row.
uint32_t mixing_views(ProgramBuilder &b, uint32_t x, int pairs) {
  for (int pair = 0; pair < pairs; ++pair) {
    const Shape dims = b.program.tensors[x].dims;
    const Shape turned = {dims[2], dims[0], dims[1]};
    x = b.view(x, turned, [](const std::vector<Expr> &i) { return std::vector<Expr>{i[1], i[2], i[0]}; });
    x = b.view(x, dims, [&](const std::vector<Expr> &i) {
      const Expr at = (i[0] * dims[1] + i[1]) * dims[2] + i[2];
      return std::vector<Expr>{floor_div(at, dims[0] * dims[1]), mod(floor_div(at, dims[1]), dims[0]),
                               mod(at, dims[1])};
    });
  }
  return x;
}

TEST(Fuse, CopiesAViewWhereAnIndexMapWouldOutgrowItsBudget) {
  for (const int pairs : {10, 40}) {
    ProgramBuilder b;
    b.output(mixing_views(b, b.input({n, 4, 3}), pairs));
    const Fused f = fused(b);
    EXPECT_GT(f.materialised, 0u);
    EXPECT_EQ(f.launches.size(), f.materialised + 1) << "one kernel a copy";
    EXPECT_LE(f.materialised, static_cast<uint32_t>(pairs)) << "a permute and the reshape after it are one map";
    for (const Launch &launch : f.launches) {
      for (const Value &v : launch.kernel->stages[0].body.values) {
        EXPECT_LE(v.op == Core::load ? v.access.index[0].nodes() : 0, 256u) << print(*launch.kernel);
      }
    }
    expect_same_as_unfused(b, {{"n", 5}});
  }
}

TEST(Fuse, FoldsAnyNumberOfViewsWhoseMapsDoNotGrow) {
  ProgramBuilder b;
  uint32_t x = b.input({n, 4, 3});
  for (int k = 0; k < 200; ++k) {
    const Shape dims = b.program.tensors[x].dims;
    x = b.view(x, {dims[2], dims[0], dims[1]},
               [](const std::vector<Expr> &i) { return std::vector<Expr>{i[1], i[2], i[0]}; });
  }
  b.output(x);
  const Fused f = fused(b);
  EXPECT_EQ(f.launches.size(), 1u);
  EXPECT_EQ(f.materialised, 0u);
}

TEST(Fuse, SaysWhichNodesBecameAKernelThatItsVerifierRefuses) {
  ProgramBuilder b;
  const uint32_t x = b.map(Core::exp, b.input({n}));
  b.program.defs.back().node = "a";
  b.program.defs.back().op = "exp";
  b.output(b.view(x, {n}, [](const std::vector<Expr> &i) {
    Expr deep = i[0];  // deeper than what is read back
    for (int k = 0; k < 300; ++k) deep = min(mod(deep + 1, n) * 2, n - 1);
    return std::vector<Expr>{deep};
  }));
  b.program.defs.back().node = "y";
  b.program.defs.back().op = "strange";
  const Status status = fuse(b.program, Target{}, {}).take_status();
  EXPECT_EQ(status.code(), Code::internal);
  EXPECT_TRUE(status.message().starts_with("kernel made from 'a' [exp], 'y' [strange]: ")) << status.message();
  EXPECT_EQ(status.message().find("damaged"), std::string::npos) << status.message();
}

TEST(Fuse, PreparesInOneKernelWhatReadsParametersThatAreUsedLater) {
  ProgramBuilder b;
  const uint32_t x = b.input({4, 8}), p = b.input({8, 4}, true), q = b.input({4, 8}, true);
  const uint32_t early = b.map(Core::exp, p), late = b.map(Core::exp, q);
  Compute both;  // of which the first decision, about `early`, cannot have seen `late` yet
  both.dims = {4, 8};
  const std::vector<Expr> i = ProgramBuilder::axes(both.dims);
  BodyBuilder body(both.body);
  body.yield(body.op(Core::mul, body.load(0, DType::f32, {i[1], i[0]}), body.load(1, DType::f32, i)));
  b.output(b.map(Core::add, x, static_cast<int32_t>(b.define(std::move(both), {early, late}))));
  const Fused f = fused(b);
  ASSERT_EQ(f.launches.size(), 2u) << "one in prepare, one a call";
  EXPECT_TRUE(f.launches[0].prepared);
  EXPECT_FALSE(f.launches[1].prepared);
  expect_same_as_unfused(b, {});
}

TEST(Fuse, GivesKernelsThatDifferInNamesOnlyTheSameBytes) {
  const auto make = [](const Expr &dim) {
    ProgramBuilder b;
    const uint32_t x = b.input({dim, 8});
    b.output(b.map(Core::exp, b.map(Core::neg, x)));
    return serialize(*fused(b).launches[0].kernel);
  };
  EXPECT_EQ(make(Expr::symbol("batch")), make(Expr::symbol("rows")));
}

TEST(Fuse, StaysCorrectOnRandomPrograms) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    const ProgramBuilder b = random_program(seed);
    SCOPED_TRACE(seed);
    expect_same_as_unfused(b, {{"n", 3}, {"t", 2}});
    if (HasFatalFailure()) return;
  }
}

TEST(Fuse, OnADeviceEachPointIsATaskAndNothingIsPackedOrBlocked) {
  ProgramBuilder b;
  const uint32_t x = b.input({n, 64}), w = b.input({48, 64}, true);
  b.output(b.map(Core::exp, b.linear(x, w)));
  b.output(b.reduce_last(Core::add, b.map(Core::exp, x)));
  Result<Fused> result = fuse(b.program, Target::device("sm_90"), {});
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->tensors.size(), b.program.tensors.size()) << "no packed panels";
  for (const Launch &launch : result->launches) {
    const Kernel &kernel = *launch.kernel;
    EXPECT_FALSE(launch.prepared);
    EXPECT_EQ(kernel.schedule.lanes(), 1u);
    EXPECT_EQ(kernel.schedule.mr, 0u);
    Expr points = 1;
    for (const Axis &axis : kernel.parallel) points *= axis.extent;
    EXPECT_EQ(task_count(kernel), points) << print(kernel);
    EXPECT_TRUE(parse(serialize(kernel)).ok());
    if (kernel.stages[0].contract) {
      EXPECT_TRUE(scratch_layout(kernel).size_bytes.is(0));
    }
  }
}

}  // namespace
}  // namespace kiln::kernel::testing
