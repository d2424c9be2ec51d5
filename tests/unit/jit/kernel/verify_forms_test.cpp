// What verify() refuses of stores, scans, searches and sorts.
#include "tests/unit/jit/kernel/group_forms.h"
#include "tests/unit/jit/kernel/order_forms.h"
#include "tests/unit/jit/kernel/panel_forms.h"
#include "tests/unit/jit/kernel/refusal.h"
#include "tests/unit/jit/kernel/row_tile_forms.h"
#include "tests/unit/jit/kernel/scan_forms.h"

namespace kiln::kernel::testing {
namespace {

using Space = Buffer::Space;

// Rows of 8, as tasks of four: b2 = those above 0, close together; b4 = the row, sorted, and b6 whence; b3 += the
// place of each in it.
Kernel ordered_kernel() {
  const Expr rows = Expr::symbol("s0"), i = axis(0, rows), j = axis(1, 8);
  Kernel kernel;
  kernel.symbols = {"s0"};
  kernel.buffers = {in(DType::f32, rows * 8),  in(DType::i64, rows * 8), out(DType::f32, rows * 8),
                    out(DType::i64, rows * 8), row_local(DType::f32, 8), row_local(DType::f32, 8),
                    row_local(DType::i64, 8),  row_local(DType::i64, 8)};
  kernel.parallel = {parallel(rows)};
  kernel.schedule = {.vector = Schedule::Vector::inner, .vector_bytes = 32, .tiles = {4}};
  kernel.stages.resize(4);

  Stage &compact = kernel.stages[0];
  compact.axes = {scan(8)};
  BodyBuilder b(compact.body);
  const int x = b.load(0, DType::f32, {i * 8 + j});                                               // v0
  const int kept = b.op(Core::gt, x, b.constant(DType::f32, 0));                                  // v1, v2
  for (int yield : {b.convert(kept, DType::i64), kept, x}) compact.body.yields.push_back(yield);  // v3
  compact.carriers = carriers_of(Core::add, DType::i64);
  compact.carriers.exclusive = true;
  compact.stores = {store_at(2, i * 8 + mod(Expr::value(0), 8), 2, Store::Mode::plain, 1)};

  Stage &copy = kernel.stages[1];
  copy.axes = {loop(8)};
  BodyBuilder c(copy.body);
  c.yield(c.load(0, DType::f32, {i * 8 + j}));
  c.yield(c.index(j));
  copy.stores = {store_at(4, j, 0), store_at(6, j, 1)};

  kernel.stages[2].axes = {scan(8)};
  kernel.stages[2].sort = {.columns = {{4, 5}, {6, 7}}, .wanted = {}};

  Stage &find = kernel.stages[3];
  find.axes = {loop(8)};
  BodyBuilder f(find.body);
  const int key = f.load(0, DType::f32, {i * 8 + j});
  f.yield(f.search(key, 4, {0, 1}, 8, search_upper));
  find.stores = {store_at(3, i * 8 + j, 0, Store::Mode::add)};
  return kernel;
}

Store &store(Kernel &kernel, size_t stage) { return kernel.stages[stage].stores[0]; }
Sort &sort(Kernel &kernel) { return *kernel.stages[2].sort; }

const std::vector<Refusal> refusals = {
    // stores
    {"store of value 3 of 3", [](Kernel &k) { store(k, 0).value = 3; }},
    {"store of i64 to buffer 2 of f32", [](Kernel &k) { store(k, 0).value = 0; }},
    {"an access is guarded by v0, which is no bool", [](Kernel &k) { store(k, 0).to.valid = 0; }},
    {"an access is guarded by v3, which is not before it", [](Kernel &k) { store(k, 0).to.valid = 3; }},
    {"an access is guarded by v-2, which is not before it", [](Kernel &k) { store(k, 0).to.valid = -2; }},
    {"a store has no fill", [](Kernel &k) { store(k, 0).to.fill = 1; }},
    {"index uses v1 of type bool, expected i64", [](Kernel &k) { store(k, 0).to.index[0] = Expr::value(1); }},
    {"index uses value v3 before it is made", [](Kernel &k) { store(k, 0).to.index[0] = Expr::value(3); }},
    {"a store combines in no known way", [](Kernel &k) { store(k, 3).mode = static_cast<Store::Mode>(7); }},
    {"a store combines f32 by bit_or", [](Kernel &k) { store(k, 0).mode = Store::Mode::bit_or; }},
    {"a store combines f16 by add",
     [](Kernel &k) {
       store(k, 1).mode = Store::Mode::add;
       k.buffers[0].type = k.buffers[4].type = value(k, 1, 0).type = DType::f16;
       k.stages[0] = k.stages[1];
     }},
    {"a store combines bool by max",
     [](Kernel &k) {
       k.buffers[2].type = DType::boolean;
       store(k, 0).value = 1;
       store(k, 0).mode = Store::Mode::max;
     }},
    // where tasks may meet
    {"tasks may meet in b2[v0]: it combines or scatters, and needs a stride for each parallel axis, or one task",
     [](Kernel &k) { store(k, 0).to.index[0] = Expr::value(0); }},
    {"tasks may meet in b2[8*i0 + v0]: it combines or scatters, and needs a stride for each parallel axis, or one task",
     [](Kernel &k) { store(k, 0).to.index[0] = axis(0, Expr::symbol("s0")) * 8 + Expr::value(0); }},
    {"tasks may meet in b2[7*i0 + v0 % 8]: it combines or scatters, and needs a stride for each parallel axis, or one "
     "task",
     [](Kernel &k) { store(k, 0).to.index[0] = axis(0, Expr::symbol("s0")) * 7 + mod(Expr::value(0), 8); }},
    {"tasks may meet in b3[i1]: it combines or scatters, and needs a stride for each parallel axis, or one task",
     [](Kernel &k) { store(k, 3).to.index[0] = axis(1, 8); }},
    {"tasks may meet in b3[i0 // 2]: it combines or scatters, and needs a stride for each parallel axis, or one task",
     [](Kernel &k) { store(k, 3).to.index[0] = floor_div(axis(0, Expr::symbol("s0")), 2); }},
    // scans
    {"stage 0: a scan axis comes last, behind loop axes", [](Kernel &k) { k.stages[0].axes.push_back(loop(2)); }},
    {"stage 0: a scan axis comes last, behind loop axes",
     [](Kernel &k) { k.stages[0].axes.insert(k.stages[0].axes.begin(), reduce(2)); }},
    {"stage 0: a scan axis comes last, behind loop axes", [](Kernel &k) { k.stages[0].axes.push_back(scan(2)); }},
    {"stage 0: reduce or scan axes and carriers go together", [](Kernel &k) { k.stages[0].carriers = {}; }},
    {"stage 3: reduce or scan axes and carriers go together",
     [](Kernel &k) { k.stages[3].axes[0].role = Axis::Role::scan; }},
    {"stage 3 is exclusive or reverse, and no scan", [](Kernel &k) { k.stages[3].carriers.reverse = true; }},
    {"stage 0 has 1 carriers, but not as many yields, identities or results",
     [](Kernel &k) { k.stages[0].body.yields.clear(); }},
    {"stage 0: yield 0 of the body is bool, expected i64",
     [](Kernel &k) { std::swap(k.stages[0].body.yields[0], k.stages[0].body.yields[1]); }},
    // searches
    {"a search has a first element and a step in a kernel, not 1 indices",
     [](Kernel &k) { value(k, 3, 1).access.index.pop_back(); }},
    {"access to buffer 8 of 8", [](Kernel &k) { value(k, 3, 1).access.buffer = 8; }},
    {"search v1 of type i64: operand 0 is f32, the buffer holds i64",
     [](Kernel &k) { value(k, 3, 1).access.buffer = 6; }},
    {"search v1 of type i32: expected i64", [](Kernel &k) { value(k, 3, 1).type = DType::i32; }},
    {"search v1 has unknown flags", [](Kernel &k) { value(k, 3, 1).immediate = 4; }},
    {"search v1 uses a value that is not before it", [](Kernel &k) { value(k, 3, 1).args[0] = 1; }},
    {"an access is guarded by v0, which is no bool", [](Kernel &k) { value(k, 3, 1).access.valid = 0; }},
    {"axis i2 is not in scope", [](Kernel &k) { value(k, 3, 1).access.index[1] = axis(2, 8); }},
    {"unknown symbol s7", [](Kernel &k) { value(k, 3, 1).expr = Expr::symbol("s7"); }},
    {"index uses v0 of type f32, expected i64", [](Kernel &k) { value(k, 3, 1).expr = Expr::value(0); }},
    {"v3 reads memory in a combine body",
     [](Kernel &k) { BodyBuilder(k.stages[0].carriers.combine).search(0, 1, {0, 1}, 8, 0); }},
    // sorts
    {"stage 2: a sort is columns and one scan axis, nothing else", [](Kernel &k) { sort(k).columns.clear(); }},
    {"stage 2: a sort is columns and one scan axis, nothing else",
     [](Kernel &k) { k.stages[2].axes[0].role = Axis::Role::loop; }},
    {"stage 2: a sort is columns and one scan axis, nothing else",
     [](Kernel &k) { k.stages[2].axes.insert(k.stages[2].axes.begin(), loop(2)); }},
    {"stage 2: a sort is columns and one scan axis, nothing else",
     [](Kernel &k) { k.stages[2].stores.push_back(store(k, 1)); }},
    {"stage 2: a sort is columns and one scan axis, nothing else",
     [](Kernel &k) { k.stages[2].body = k.stages[1].body; }},
    {"stage 2: a sort is columns and one scan axis, nothing else",
     [](Kernel &k) { k.stages[2].carriers = k.stages[0].carriers; }},
    {"stage 2: a sort is columns and one scan axis, nothing else", [](Kernel &k) { k.stages[2].contract.emplace(); }},
    {"stage 2 sorts buffer 2, which is not row_local", [](Kernel &k) { sort(k).columns[0].buffer = 2; }},
    {"stage 2 sorts buffer 8, which is not row_local", [](Kernel &k) { sort(k).columns[0].spare = 8; }},
    {"stage 2 sorts by buffer 4 twice", [](Kernel &k) { sort(k).columns[1].buffer = 4; }},
    {"stage 2: a spare of i64 for f32",
     [](Kernel &k) { std::swap(sort(k).columns[0].spare, sort(k).columns[1].spare); }},
    {"stage 2 sorts 8 elements of buffer 5, which has 7", [](Kernel &k) { k.buffers[5].size = 7; }},
    {"stage 2: runs of 0 elements, expected at least 1", [](Kernel &k) { sort(k).runs = 0; }},
    {"stage 2: runs of s0 elements, expected at least 1", [](Kernel &k) { sort(k).runs = Expr::symbol("s0"); }},
    {"runs of stage 2: unknown symbol s9", [](Kernel &k) { sort(k).runs = Expr::symbol("s9") + 1; }},
    {"number wanted of stage 2: unknown symbol s9", [](Kernel &k) { sort(k).wanted = Expr::symbol("s9"); }},
    {"stage 2 sorts runs, and wants some elements alone",
     [](Kernel &k) {
       sort(k).wanted = 2;
       sort(k).runs = 4;
     }},
};

TEST(VerifyForms, RefusesEachBrokenRuleByItsOwnMessage) {
  expect_accepted(ordered_kernel());
  for (const Refusal &refusal : refusals) expect_refused(ordered_kernel(), refusal);
}

const std::vector<Refusal> refusals_of_blocks = {
    {"stage 3: a block axis comes first", [](Kernel &k) { std::swap(k.stages[3].axes[0], k.stages[3].axes[1]); }},
    {"stages 4 and 5 run together, in 3 and 2 blocks", [](Kernel &k) { k.stages[5].axes[0].extent = 2; }},
    {"a contraction is over m, n and one k: as the only stage, with the last parallel axes; else with loop axes",
     [](Kernel &k) { k.stages[3].axes.back().role = Axis::Role::loop; }},
    {"a contraction is over m, n and one k: as the only stage, with the last parallel axes; else with loop axes",
     [](Kernel &k) { k.stages[3].axes.pop_back(); }},
    {"a contraction is over m, n and one k: as the only stage, with the last parallel axes; else with loop axes",
     [](Kernel &k) { k.stages[3].carriers = k.stages[4].carriers; }},
    {"axis i3 is not in scope", [](Kernel &k) { k.stages[3].contract->a.values[0].access.index[0] = axis(3, 5); }},
    {"axis i2 is not in scope", [](Kernel &k) { k.stages[3].contract->b.values[0].access.index[0] = axis(2, 4); }},
    {"axis i4 is not in scope", [](Kernel &k) { store(k, 3).to.index[0] = axis(4, 19); }},
    {"stage 3: only a kernel's one contraction has panels", [](Kernel &k) { k.stages[3].contract->panel = 8; }},
};

TEST(VerifyForms, RefusesEachBrokenRuleOfBlocksByItsOwnMessage) {
  const Kernel kernel = attention_form(DType::f32, 1).kernel;
  expect_accepted(kernel);
  for (const Refusal &refusal : refusals_of_blocks) expect_refused(kernel, refusal);
}

Contract &contract_of(Kernel &k) { return *k.stages[0].contract; }

const std::vector<Refusal> refusals_of_panels = {
    {"panels in groups of 3, expected 1, 2 or 4", [](Kernel &k) { contract_of(k).group = 3; }},
    {"panels in groups of 0, expected 1, 2 or 4", [](Kernel &k) { contract_of(k).group = 0; }},
    {"operand a ends in no conversion from what its panels hold",
     [](Kernel &k) { contract_of(k).a_factor = DType::u8; }},
    {"operand a ends in no conversion from what its panels hold",
     [](Kernel &k) {
       contract_of(k).a.values.resize(1);
       contract_of(k).a.yields = {0};
       contract_of(k).a.values[0].type = k.buffers[0].type = DType::i32;
     }},
    {"operand b ends in no conversion from what its panels hold",
     [](Kernel &k) { contract_of(k).b_factor = DType::boolean; }},
    {"operand b ends in no conversion from what its panels hold",
     [](Kernel &k) { contract_of(k).b_factor = static_cast<DType>(200); }},
    {"a block of 18 k is not in steps of 4", [](Kernel &k) { k.schedule.kc = 18; }},
    {"a block of 16 k is not in steps of 64", [](Kernel &k) { k.schedule.products = Schedule::Products::tiles; }},
    {"a microkernel of tiles is 6x16, expected 16 or 32 rows and columns",
     [](Kernel &k) {
       k.schedule.products = Schedule::Products::tiles;
       k.schedule.kc = 64;
     }},
    {"products are made in no known way", [](Kernel &k) { k.schedule.products = static_cast<Schedule::Products>(3); }},
    {"dot products are a microkernel's", [](Kernel &k) { k.schedule.mr = k.schedule.nr = k.schedule.kc = 0; }},
    {"types and groups are of panels, which a microkernel has",
     [](Kernel &k) {
       k.schedule.mr = k.schedule.nr = k.schedule.kc = 0;
       k.schedule.products = Schedule::Products::widened;
     }},
    {"no dot products of i8 by i32 in i32 in groups of 4", [](Kernel &k) { contract_of(k).b_factor = DType::none; }},
    {"no dot products of i8 by i8 in i32 in groups of 2", [](Kernel &k) { contract_of(k).group = 2; }},
    {"operand b does not read the packed panels: expected b1[640*(i2 // 16) + 64*(i3 // 4) + 4*(i2 % 16) + i3 % 4 + 5]",
     [](Kernel &k) { contract_of(k).packed_offset = 5; }},
};

TEST(VerifyForms, RefusesEachBrokenRuleOfPanelsByItsOwnMessage) {
  const Kernel kernel = panel_form({DType::i8, DType::i8, DType::i32, 4, Schedule::Products::dot}).kernel;
  expect_accepted(kernel);
  for (const Refusal &refusal : refusals_of_panels) expect_refused(kernel, refusal);
}

const std::vector<Refusal> refusals_of_row_tiles = {
    {"tiles of rows lie along a parallel axis, lanes along inner ones, and products are widened",
     [](Kernel &k) { k.schedule.vector = Schedule::Vector::parallel; }},
    {"tiles of rows lie along a parallel axis, lanes along inner ones, and products are widened",
     [](Kernel &k) { k.schedule.vector_m = true; }},
    {"tiles of rows lie along a parallel axis, lanes along inner ones, and products are widened",
     [](Kernel &k) { k.schedule.products = Schedule::Products::dot; }},
    {"a tile of 4097 rows, expected 1 to 4096", [](Kernel &k) { k.schedule.tiles[1] = 4097; }},
    {"a tile of rows has one point of axis 0, not 2", [](Kernel &k) { k.schedule.tiles[0] = 2; }},
    {"stage 2: no sorts and no blocks in tiles of rows",
     [](Kernel &k) { k.stages[2].axes[0].role = Axis::Role::block; }},
    {"stage 0: in tiles of rows a contraction has one m, n and k", [](Kernel &k) { k.stages[0].axes[0].extent = 2; }},
    {"stage 0: in tiles of rows a contraction has one m, n and k",
     [](Kernel &k) { k.stages[0].axes.insert(k.stages[0].axes.begin(), loop(1)); }},
    {"stage 4: operand b reads a row_local buffer, and belongs to all rows of a tile",
     [](Kernel &k) { k.stages[4].contract->b.values[0].access = {.buffer = 7, .index = {0}}; }},
    {"axis i1 is not in scope", [](Kernel &k) { k.stages[4].contract->b.values[0].access.index[0] = axis(1, 50); }},
    {"stage 0: only a kernel's one contraction has panels", [](Kernel &k) { k.stages[0].contract->panel = 16; }},
    {"stage 4: only a kernel's one contraction has panels",
     [](Kernel &k) { k.stages[4].contract->a_factor = DType::f16; }},
};

TEST(VerifyForms, RefusesEachBrokenRuleOfTilesOfRowsByItsOwnMessage) {
  const Kernel kernel = row_tile_form({}).kernel;
  expect_accepted(kernel);
  for (const Refusal &refusal : refusals_of_row_tiles) expect_refused(kernel, refusal);
}

TEST(VerifyForms, LetsPointsMeetInOneTaskAndInBuffersOfTheirOwn) {
  Kernel kernel = ordered_kernel();
  kernel.stages[3].stores = {store_at(6, 0, 0, Store::Mode::add)};
  expect_accepted(kernel);
  kernel = ordered_kernel();
  kernel.stages[3].stores = {store_at(3, Expr::value(0), 0, Store::Mode::max)};
  EXPECT_FALSE(verify(kernel).ok());
  // The same over four rows, which are one tile.
  const auto four = [](Expr &e) {
    e = e.substitute([](const Expr &leaf) -> std::optional<Expr> {
      if (leaf.kind() == Expr::Kind::symbol) return Expr(4);
      return {};
    });
  };
  for (Stage &stage : kernel.stages) {
    for (Value &v : stage.body.values)
      for (Expr &e : v.access.index) four(e);
    for (Store &s : stage.stores) four(s.to.index[0]);
  }
  kernel.parallel[0].extent = 4;
  expect_accepted(kernel);
  kernel.schedule.tiles[0] = 3;
  EXPECT_FALSE(verify(kernel).ok());
}

TEST(VerifyForms, RefusesGroupsOfMoreThanOneAxisAndEndsThatReadIt) {
  const Kernel group = group_form(DType::f32, 0, 64).kernel;
  Kernel broken = group;
  broken.stages[0].axes.push_back(reduce(2));
  EXPECT_NE(verify(broken).message().find("a part of a reduction"), std::string::npos) << verify(broken).message();
  broken = group;
  broken.stages[0].carriers.until = axis(2, 64);
  EXPECT_EQ(verify(broken).code(), Code::corrupt);
  broken.stages[0].carriers.until = Expr::symbol("s7");
  EXPECT_EQ(verify(broken).code(), Code::corrupt);
}

TEST(VerifyForms, ReadsEachFormBackAsItWas) {
  for (const auto &forms : {store_forms(), scan_forms(), order_forms(), group_forms(), contraction_forms(),
                            panel_forms(), row_tile_forms()})
    for (const Form &form : forms) expect_accepted(form.kernel);
}

TEST(Separates, ShowsThatPointsHaveElementsOfTheirOwn) {
  const Expr s0 = Expr::symbol("s0"), s1 = Expr::symbol("s1"), i = axis(0, s0), j = axis(1, s1), k = axis(2, 6);
  EXPECT_TRUE(separates(i, {0}));
  EXPECT_TRUE(separates(i * 6 + k, {0, 2}));
  EXPECT_TRUE(separates((i * s1 + j) * 6 + k, {0, 1, 2}));
  EXPECT_TRUE(separates(j * 6 + k, {1}));
  EXPECT_TRUE(separates(i * s1 + mod(Expr::value(3), s1), {0}));
  const Expr size = 2 * s1 - 2, begin = (1 - s1) * min(0, size);  // of a size that might be negative
  EXPECT_TRUE(separates(i * size + Expr::axis(3, size) + begin, {0}));
  EXPECT_FALSE(separates(i * size + Expr::axis(3, size + 1) + begin, {0}));
  EXPECT_FALSE(separates(i + j + begin, {0, 1}));
  EXPECT_FALSE(separates(i + j, {0, 1}));
  EXPECT_FALSE(separates(i * 5 + k, {0}));
  EXPECT_FALSE(separates(j, {0, 1}));
  EXPECT_FALSE(separates(i * Expr::value(0), {0}));
  EXPECT_FALSE(separates(i * k, {0}));
  EXPECT_FALSE(separates(mod(i, 4), {0}));
  EXPECT_FALSE(separates(i * 8 + Expr::value(0), {0}));
  EXPECT_TRUE(separates(Expr::value(0) * s1 + j, {1}));
  EXPECT_TRUE(separates(i * (s1 * 4) + Expr::value(0) * s1 + j, {1}));
  EXPECT_FALSE(separates(Expr::value(0) * s0 + j, {1}));
}

TEST(Separates, TakesTheBoundsThatAGuardShows) {
  const Expr s0 = Expr::symbol("s0"), s1 = Expr::symbol("s1"), i = axis(0, s0);
  Stage stage;
  BodyBuilder body(stage.body);
  const int to = body.load(0, DType::i64, {i}), valid = body.op(Core::in_range, to, body.index(s1));
  body.yield(to);
  body.yield(body.op(Core::logical_and, valid, body.op(Core::gt, to, body.index(s0))));
  const Store guarded{{.buffer = 1, .index = {i * s1 + Expr::value(0)}, .valid = 1, .fill = 0}, 0},
      unguarded{{.buffer = 1, .index = {i * s1 + Expr::value(0)}, .valid = -1, .fill = 0}, 0},
      longer{{.buffer = 1, .index = {i * 4 + Expr::value(0)}, .valid = 1, .fill = 0}, 0};
  EXPECT_TRUE(separates(stage, guarded, {0}));
  EXPECT_FALSE(separates(stage, unguarded, {0}));
  EXPECT_FALSE(separates(stage, longer, {0}));
}

}  // namespace
}  // namespace kiln::kernel::testing
