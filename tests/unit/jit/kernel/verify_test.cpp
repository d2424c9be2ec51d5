// Every refusal of verify(): a kernel that it accepts, one thing changed, and the message.
#include <gtest/gtest.h>

#include "tests/unit/jit/kernel/refusal.h"

namespace kiln::kernel {
namespace {

using testing::expect_refused;
using testing::Refusal;
using testing::store_at;
using testing::value;
using Space = Buffer::Space;
using Role = Axis::Role;

// b2[i, j] = y[j] / sum of y, where y[j] = min(x, exp(x)) and x = b0[b1[i], j], or 0 where b1[i] is no row.
Kernel rows_kernel() {
  const Expr rows = Expr::symbol("s0"), columns = Expr::symbol("s1"), i = Expr::axis(0, rows),
             j = Expr::axis(1, columns);
  Kernel kernel;
  kernel.symbols = {"s0", "s1"};
  kernel.buffers = {{DType::f32, Space::in, rows * columns},
                    {DType::i64, Space::in, rows},
                    {DType::f32, Space::out, rows * columns},
                    {DType::f32, Space::row_local, columns},
                    {DType::f32, Space::row_local, 1}};
  kernel.parallel = {{rows, Role::parallel}};
  kernel.schedule = {.vector = Schedule::Vector::inner, .vector_bytes = 32, .tiles = {4}};
  kernel.stages.resize(3);

  Stage &choose = kernel.stages[0];
  choose.axes = {{columns, Role::loop}};
  BodyBuilder b(choose.body);
  const int row = b.load(1, DType::i64, {i});                                     // v0
  const int there = b.op(Core::in_range, row, b.index(rows));                     // v1, v2
  const int x = b.load(0, DType::f32, {Expr::value(0) * columns + j}, there, 0);  // v3
  const int grown = b.op(Core::exp, x);                                           // v4
  const int greater = b.op(Core::logical_not, b.op(Core::lt, x, grown));          // v5, v6
  b.yield(b.op(Core::select, greater, grown, x));                                 // v7
  choose.stores = {store_at(3, j)};

  Stage &sum = kernel.stages[1];
  sum.axes = {{columns, Role::reduce}};
  BodyBuilder(sum.body).yield(BodyBuilder(sum.body).load(3, DType::f32, {j}));
  sum.carriers = carriers_of(Core::add, DType::f32);
  sum.stores = {store_at(4, 0)};

  Stage &quotient = kernel.stages[2];
  quotient.axes = {{columns, Role::loop}};
  BodyBuilder q(quotient.body);
  const int y = q.load(3, DType::f32, {j}), total = q.load(4, DType::f32, {0});
  q.yield(q.op(Core::div, y, total));
  quotient.stores = {store_at(2, i * columns + j)};
  return kernel;
}

// b3[m, n] = b2[n] + sum over 20 k of b0[m, k] * b1(k, n), where b1 lies packed in panels of 16 columns.
Kernel product_kernel() {
  const Expr rows = Expr::symbol("s0"), m = Expr::axis(0, rows), n = Expr::axis(1, 48), k = Expr::axis(2, 20);
  Kernel kernel;
  kernel.symbols = {"s0"};
  kernel.buffers = {{DType::f32, Space::in, rows * 20},
                    {DType::f32, Space::in, 960},
                    {DType::f32, Space::in, 48},
                    {DType::f32, Space::out, rows * 48}};
  kernel.parallel = {{rows, Role::parallel}, {48, Role::parallel}};
  kernel.schedule = {
      .vector = Schedule::Vector::inner, .vector_bytes = 32, .tiles = {12, 48}, .mr = 6, .nr = 16, .kc = 20};
  Stage &stage = kernel.stages.emplace_back();
  stage.axes = {{20, Role::reduce}};
  Contract &contract = stage.contract.emplace();
  contract.panel = 16;
  contract.packed_buffer = 1;
  BodyBuilder a(contract.a), b(contract.b), epilogue(stage.body);
  a.yield(a.load(0, DType::f32, {m * 20 + k}));
  b.yield(b.load(1, DType::f32, {(floor_div(n, 16) * 20 + k) * 16 + mod(n, 16)}));
  Value sum;
  sum.op = Core::accumulator;
  stage.body.values.push_back(sum);
  epilogue.yield(epilogue.op(Core::add, 0, epilogue.load(2, DType::f32, {n})));
  stage.stores = {store_at(3, m * 48 + n)};
  return kernel;
}

Contract &contract(Kernel &kernel) { return *kernel.stages[0].contract; }
constexpr auto no_core = static_cast<Core>(200);
constexpr auto no_type = static_cast<DType>(200);

const std::vector<Refusal> refusals_of_rows = {
    // symbols, buffers, axes
    {"symbol 1 is 'n', expected 's1'", [](Kernel &k) { k.symbols[1] = "n"; }},
    {"too many buffers", [](Kernel &k) { k.buffers.resize(UINT16_MAX + 1, k.buffers.back()); }},
    {"buffer 1 has no type", [](Kernel &k) { k.buffers[1].type = DType::none; }},
    {"buffer 1 has no type", [](Kernel &k) { k.buffers[1].type = no_type; }},
    {"buffer 4 is in no known space", [](Kernel &k) { k.buffers[4].space = static_cast<Space>(3); }},
    {"row_local buffers come last", [](Kernel &k) { k.buffers[4].space = Space::out; }},
    {"size of buffer 0: it is below 0: -1", [](Kernel &k) { k.buffers[0].size = -1; }},
    {"size of buffer 3: axis i0 is not in scope", [](Kernel &k) { k.buffers[3].size = Expr::axis(0, Expr::symbol("s0")); }},
    {"size of buffer 3: index uses value v0 before it is made", [](Kernel &k) { k.buffers[3].size = Expr::value(0); }},
    {"size of buffer 3: unknown symbol s2", [](Kernel &k) { k.buffers[3].size = Expr::symbol("s2"); }},
    {"axis 0 is not parallel", [](Kernel &k) { k.parallel[0].role = Role::loop; }},
    {"extent of axis 0: it is below 0: -4", [](Kernel &k) { k.parallel[0].extent = -4; }},
    {"extent of axis 0: unknown symbol m", [](Kernel &k) { k.parallel[0].extent = Expr::symbol("m"); }},
    {"extent of axis 1: axis i0 is not in scope",
     [](Kernel &k) { k.stages[0].axes[0].extent = Expr::axis(0, Expr::symbol("s0")); }},
    {"stage 1: an axis is neither loop, reduce, scan nor block", [](Kernel &k) { k.stages[1].axes[0].role = Role::parallel; }},
    {"stage 0: an axis is neither loop, reduce, scan nor block", [](Kernel &k) { k.stages[0].axes[0].role = static_cast<Role>(9); }},
    {"stage 1: loop axes come before reduce axes", [](Kernel &k) { k.stages[1].axes.push_back({2, Role::loop}); }},
    // schedule
    {"vectors run along no known axis", [](Kernel &k) { k.schedule.vector = static_cast<Schedule::Vector>(2); }},
    {"tiles and parallel axes differ in number", [](Kernel &k) { k.schedule.tiles.push_back(1); }},
    {"vectors of 0 bytes, expected a power of two from 4 to 256", [](Kernel &k) { k.schedule.vector_bytes = 0; }},
    {"vectors of 2 bytes, expected a power of two from 4 to 256", [](Kernel &k) { k.schedule.vector_bytes = 2; }},
    {"vectors of 48 bytes, expected a power of two from 4 to 256", [](Kernel &k) { k.schedule.vector_bytes = 48; }},
    {"vectors of 512 bytes, expected a power of two from 4 to 256", [](Kernel &k) { k.schedule.vector_bytes = 512; }},
    {"a tile of 0, expected 1 to 16777216", [](Kernel &k) { k.schedule.tiles[0] = 0; }},
    {"a tile of 4294967295, expected 1 to 16777216", [](Kernel &k) { k.schedule.tiles[0] = UINT32_MAX; }},
    // stages
    {"no stages", [](Kernel &k) { k.stages.clear(); }},
    {"stage 1: reduce or scan axes and carriers go together", [](Kernel &k) { k.stages[1].axes.clear(); }},
    {"stage 0: reduce or scan axes and carriers go together",
     [](Kernel &k) { k.stages[0].carriers = carriers_of(Core::add, DType::f32); }},
    {"stage 0 combines without carriers", [](Kernel &k) { k.stages[0].carriers.identities = {0}; }},
    {"stage 1 has 1 carriers, but not as many yields, identities or results",
     [](Kernel &k) { k.stages[1].body.yields.push_back(0); }},
    {"stage 1 has 1 carriers, but not as many yields, identities or results",
     [](Kernel &k) { k.stages[1].carriers.identities.clear(); }},
    {"stage 1 has 1 carriers, but not as many yields, identities or results",
     [](Kernel &k) { k.stages[1].carriers.combine.yields.clear(); }},
    {"stage 1 has a carrier without a type", [](Kernel &k) { k.stages[1].carriers.types[0] = DType::none; }},
    {"stage 1: yield 0 of the body is f32, expected f64",
     [](Kernel &k) {
       k.stages[1].carriers = carriers_of(Core::add, DType::f64);
       k.buffers[4].type = DType::f64;
     }},
    {"stage 1: yield 0 of the combine body is i64, expected f32",
     [](Kernel &k) {
       BodyBuilder combine(k.stages[1].carriers.combine);
       k.stages[1].carriers.combine.yields[0] = combine.constant(DType::i64, 0);
     }},
    // combine bodies
    {"carrier 2 of 2", [](Kernel &k) { k.stages[1].carriers.combine.values[0].immediate = 2; }},
    {"carrier v0 of type i64: expected f32", [](Kernel &k) { k.stages[1].carriers.combine.values[0].type = DType::i64; }},
    {"v3 reads memory in a combine body",
     [](Kernel &k) { BodyBuilder(k.stages[1].carriers.combine).load(0, DType::f32, {0}); }},
    {"axis i0 is not in scope",
     [](Kernel &k) { BodyBuilder(k.stages[1].carriers.combine).index(Expr::axis(0, Expr::symbol("s0"))); }},
    // bodies
    {"unknown core op", [](Kernel &k) { value(k, 0, 4).op = no_core; }},
    {"unknown core op", [](Kernel &k) { value(k, 0, 4).op = static_cast<Core>(core_count); }},
    {"v4 has no type", [](Kernel &k) { value(k, 0, 4).type = DType::none; }},
    {"exp v4 uses a value that is not before it", [](Kernel &k) { value(k, 0, 4).args[0] = 4; }},
    {"exp v4 uses a value that is not before it", [](Kernel &k) { value(k, 0, 4).args[0] = -1; }},
    {"lt v5 uses a value that is not before it", [](Kernel &k) { value(k, 0, 5).args[1] = 9; }},
    {"yield of v8 of 8", [](Kernel &k) { k.stages[0].body.yields[0] = 8; }},
    {"yield of v-1 of 8", [](Kernel &k) { k.stages[0].body.yields[0] = -1; }},
    {"carrier 0 of 0", [](Kernel &k) { value(k, 0, 4).op = Core::carrier; }},
    {"accumulator outside an epilogue", [](Kernel &k) { value(k, 0, 4).op = Core::accumulator; }},
    // types
    {"load v3 of type f64: expected f32", [](Kernel &k) { value(k, 0, 3).type = DType::f64; }},
    {"index v1 of type i32: expected i64", [](Kernel &k) { value(k, 0, 1).type = DType::i32; }},
    {"exp v4 of type f64: operand 0 is f32, expected f64", [](Kernel &k) { value(k, 0, 4).type = DType::f64; }},
    {"exp v4 of type i64: expected a float", [](Kernel &k) { value(k, 0, 4).type = DType::i64; }},
    {"div v2 of type f32: operand 1 is i64, expected f32",
     [](Kernel &k) {
       k.buffers[4].type = value(k, 2, 1).type = DType::i64;
       k.stages[1].stores.clear();
     }},
    {"lt v5 of type f32: expected bool", [](Kernel &k) { value(k, 0, 5).type = DType::f32; }},
    {"lt v5 of type bool: operand 1 is i64, expected f32", [](Kernel &k) { value(k, 0, 5).args[1] = 0; }},
    {"logical_not v6 of type f32: expected bool", [](Kernel &k) { value(k, 0, 6).type = DType::f32; }},
    {"logical_not v6 of type bool: operand 0 is f32, expected bool", [](Kernel &k) { value(k, 0, 6).args[0] = 4; }},
    {"select v7 of type f32: operand 0 is f32, expected bool", [](Kernel &k) { value(k, 0, 7).args[0] = 4; }},
    {"select v7 of type f32: operand 2 is i64, expected f32", [](Kernel &k) { value(k, 0, 7).args[2] = 1; }},
    {"in_range v2 of type i64: expected bool", [](Kernel &k) { value(k, 0, 2).type = DType::i64; }},
    {"in_range v4 of type bool: operand 0 is f32, expected i64",
     [](Kernel &k) {
       value(k, 0, 4) = value(k, 0, 2);
       value(k, 0, 4).args[0] = 3;
     }},
    // accesses
    {"access to buffer 5 of 5", [](Kernel &k) { value(k, 0, 3).access.buffer = 5; }},
    {"an access has one index in a kernel, not 2", [](Kernel &k) { value(k, 0, 3).access.index.push_back(0); }},
    {"an access has one index in a kernel, not 0", [](Kernel &k) { value(k, 0, 3).access.index.clear(); }},
    {"an access is guarded by v3, which is not before it", [](Kernel &k) { value(k, 0, 3).access.valid = 3; }},
    {"an access is guarded by v-2, which is not before it", [](Kernel &k) { value(k, 0, 3).access.valid = -2; }},
    {"an access is guarded by v1, which is no bool", [](Kernel &k) { value(k, 0, 3).access.valid = 1; }},
    {"axis i2 is not in scope", [](Kernel &k) { value(k, 0, 3).access.index[0] = Expr::axis(2, 8); }},
    {"axis i1 < 8 is in scope with extent s1", [](Kernel &k) { value(k, 0, 3).access.index[0] = Expr::axis(1, 8); }},
    {"unknown symbol n", [](Kernel &k) { value(k, 0, 3).access.index[0] = Expr::symbol("n"); }},
    {"index uses value v3 before it is made", [](Kernel &k) { value(k, 0, 3).access.index[0] = Expr::value(3); }},
    {"index uses v2 of type bool, expected i64", [](Kernel &k) { value(k, 0, 3).access.index[0] = Expr::value(2); }},
    {"index uses v2 of type bool, expected i64",
     [](Kernel &k) {
       Value &v = value(k, 0, 4);
       v.op = Core::index;
       v.type = DType::i64;
       v.expr = Expr::value(2) + 1;
     }},
    {"an access to buffer 1 is always below 0: -i0 - 1",
     [](Kernel &k) { value(k, 0, 0).access.index[0] = Expr(-1) - Expr::axis(0, Expr::symbol("s0")); }},
    // stores
    {"store of value 1 of 1", [](Kernel &k) { k.stages[2].stores[0].value = 1; }},
    {"store of value -1 of 1", [](Kernel &k) { k.stages[1].stores[0].value = -1; }},
    {"store to an input", [](Kernel &k) { k.stages[2].stores[0].to.buffer = 0; }},
    {"an access is guarded by v0, which is no bool", [](Kernel &k) { k.stages[2].stores[0].to.valid = 0; }},
    {"an access is guarded by v1, which is not before it", [](Kernel &k) { k.stages[2].stores[0].to.valid = 1; }},
    {"a store has no fill", [](Kernel &k) { k.stages[2].stores[0].to.fill = 1; }},
    {"index uses value v1 before it is made", [](Kernel &k) { k.stages[2].stores[0].to.index[0] = Expr::value(1); }},
    {"index uses v0 of type f32, expected i64", [](Kernel &k) { k.stages[2].stores[0].to.index[0] = Expr::value(0); }},
    {"axis i1 is not in scope",
     [](Kernel &k) { k.stages[1].stores[0].to.index[0] = Expr::axis(1, Expr::symbol("s1")); }},
    {"access to buffer 77 of 5", [](Kernel &k) { k.stages[2].stores[0].to.buffer = 77; }},
    {"store of f32 to buffer 2 of f64", [](Kernel &k) { k.buffers[2].type = DType::f64; }},
    {"store of f32 to buffer 2 of i64",
     [](Kernel &k) {
       k.buffers[2].type = DType::i64;
       k.stages[1].stores[0].to.buffer = 2;
     }},
};

constexpr std::string_view no_contraction =
    "a contraction is over m, n and one k: as the only stage, with the last parallel axes; else with loop axes";

const std::vector<Refusal> refusals_of_products = {
    {no_contraction, [](Kernel &k) { k.stages.push_back(k.stages[0]); }},
    {no_contraction, [](Kernel &k) { k.stages[0].axes.push_back({2, Role::reduce}); }},
    {no_contraction, [](Kernel &k) { k.stages[0].axes[0].role = Role::loop; }},
    {no_contraction, [](Kernel &k) { k.stages[0].carriers = carriers_of(Core::add, DType::f32); }},
    {no_contraction,
     [](Kernel &k) {
       k.parallel.pop_back();
       k.schedule.tiles.pop_back();
     }},
    {"a contraction's microkernel needs all of mr, nr and kc, or none", [](Kernel &k) { k.schedule.mr = 0; }},
    {"a contraction's microkernel needs all of mr, nr and kc, or none", [](Kernel &k) { k.schedule.kc = 0; }},
    {"a microkernel of mr 65, nr 16, kc 20, expected at most 64, 256, 65536", [](Kernel &k) { k.schedule.mr = 65; }},
    {"a microkernel of mr 6, nr 272, kc 20, expected at most 64, 256, 65536", [](Kernel &k) { k.schedule.nr = 272; }},
    {"a microkernel of mr 6, nr 16, kc 65537, expected at most 64, 256, 65536",
     [](Kernel &k) { k.schedule.kc = 65537; }},
    {"operands yield one value", [](Kernel &k) { contract(k).a.yields.push_back(0); }},
    {"operands yield one value", [](Kernel &k) { contract(k).b.yields.clear(); }},
    {"axis i1 is not in scope", [](Kernel &k) { contract(k).a.values[0].access.index[0] = Expr::axis(1, 48); }},
    {"axis i0 is not in scope",
     [](Kernel &k) { contract(k).b.values[0].access.index[0] = Expr::axis(0, Expr::symbol("s0")); }},
    {"axis i2 is not in scope", [](Kernel &k) { value(k, 0, 1).access.index[0] = Expr::axis(2, 20); }},
    {"axis i2 is not in scope", [](Kernel &k) { k.stages[0].stores[0].to.index[0] = Expr::axis(2, 20); }},
    {"stage 0: the accumulator has no type", [](Kernel &k) { contract(k).accumulator = no_type; }},
    {"stage 0: the accumulator has no type", [](Kernel &k) { contract(k).accumulator = DType::none; }},
    {"accumulator v0 of type f32: expected f64",
     [](Kernel &k) {
       contract(k).accumulator = k.buffers[0].type = k.buffers[1].type = DType::f64;
       contract(k).a.values[0].type = contract(k).b.values[0].type = DType::f64;
     }},
    {"stage 0: yield 0 of the operand a is f64, expected f32",
     [](Kernel &k) { k.buffers[0].type = contract(k).a.values[0].type = DType::f64; }},
    {"stage 0: yield 0 of the operand b is f64, expected f32",
     [](Kernel &k) { k.buffers[1].type = contract(k).b.values[0].type = DType::f64; }},
    {"a contraction has no row_local buffers",
     [](Kernel &k) { k.buffers.push_back({DType::f32, Space::row_local, 1}); }},
    {"packed panels are not nr wide", [](Kernel &k) { contract(k).panel = 8; }},
    {"a tile ends inside a packed panel", [](Kernel &k) { k.schedule.tiles[1] = 40; }},
    {"axis i0 is not in scope", [](Kernel &k) { contract(k).packed_offset = Expr::axis(0, Expr::symbol("s0")); }},
    {"axis i1 is not in scope", [](Kernel &k) { contract(k).packed_offset = Expr::axis(1, 48); }},
    {"axis i2 is not in scope", [](Kernel &k) { contract(k).packed_offset = Expr::axis(2, 20); }},
    {"operand b does not read the packed panels: expected b0[16*i2 + 320*(i1 // 16) + i1 % 16]",
     [](Kernel &k) { contract(k).packed_buffer = 0; }},
    {"operand b does not read the packed panels: expected b1[16*i2 + 320*(i1 // 16) + i1 % 16 + 5]",
     [](Kernel &k) { contract(k).packed_offset = 5; }},
};

TEST(VerifyKernel, AcceptsTheKernelsThatTheCasesChange) {
  for (const Kernel &kernel : {rows_kernel(), product_kernel()}) testing::expect_accepted(kernel);
}

TEST(VerifyKernel, RefusesEachBrokenRuleOfStagesByItsOwnMessage) {
  for (const Refusal &refusal : refusals_of_rows) expect_refused(rows_kernel(), refusal);
}

TEST(VerifyKernel, RefusesEachBrokenRuleOfContractionsByItsOwnMessage) {
  for (const Refusal &refusal : refusals_of_products) expect_refused(product_kernel(), refusal);
}

TEST(VerifyKernel, RefusesAnIndexThatCouldNotBeReadBack) {
  Kernel kernel = rows_kernel();
  Expr &index = value(kernel, 0, 3).access.index[0];
  for (int depth = 0; depth < 300; ++depth) index = floor_div(index + 1, 2);
  const std::string message(verify(kernel).message());
  EXPECT_NE(message.find("nodes is longer or deeper than what is read back"), std::string::npos) << message;
}

// A size with symbols may come out below 0, where a slice ends before it starts, say.
TEST(ScratchLayout, ABufferOfLessThanNothingMovesNoOtherOutOfTheScratch) {
  Kernel kernel = rows_kernel();
  kernel.buffers[3].size = Expr::symbol("s1") - 1000;
  ASSERT_TRUE(verify(kernel).ok());
  const ScratchLayout layout = scratch_layout(kernel);
  constexpr int64_t waiting = 256;  // sums of chunks
  for (int64_t s1 : {0, 1, 999, 1000, 1001}) {
    const auto value = [&](const Expr &e) { return e.evaluate([&](const std::string &) { return s1; }); };
    EXPECT_EQ(value(layout.row_local[1]), s1 <= 1000 ? 0 : 64) << s1;
    EXPECT_EQ(value(layout.size_bytes) - waiting, s1 <= 1000 ? 64 : 128) << s1;
  }
}

// Names that the text of an expression would give to axes or values are no symbols.
TEST(VerifyKernel, ReadsNoAxisOrValueOutOfAWord) {
  for (const std::string_view word : {"v", "i", "value", "i1x", "v99999999999", "s"}) {
    Kernel kernel = rows_kernel();
    kernel.buffers[0].size = Expr::symbol(word);
    EXPECT_FALSE(parse(serialize(kernel)).ok()) << word;
  }
}

}  // namespace
}  // namespace kiln::kernel
