// Which columns a kernel in tiles of rows hides, and that none are hidden where something would tell.
#include "jit/kernel/hidden.h"

#include "tests/unit/jit/kernel/row_tile_forms.h"

namespace kiln::kernel::testing {
namespace {

Kernel causal() { return row_tile_form({.seen = 3}).kernel; }

TEST(HiddenColumns, AreFoundInTheComparisonThatHidesThem) {
  const Kernel kernel = causal();
  const std::optional<HiddenColumns> hidden = hidden_columns(kernel);
  ASSERT_TRUE(hidden) << print(kernel);
  EXPECT_EQ(hidden->until->text(), "i1 + 4");
  EXPECT_FALSE(hidden->from);
  EXPECT_EQ(hidden->shows.size(), 1u);
  // Scores, their maximum, weights, their sum, and the sum of products.
  ASSERT_EQ(hidden->axes.size(), 5u);
  EXPECT_EQ(hidden->axes[0], &kernel.stages[0].axes[1]);
  EXPECT_EQ(hidden->axes[4], &kernel.stages[4].axes[2]);
}

TEST(HiddenColumns, AreFoundOnBothSidesOfAWindow) {
  const Kernel window = row_tile_form({.seen = 3, .unseen = 20}).kernel;
  const std::optional<HiddenColumns> hidden = hidden_columns(window);
  ASSERT_TRUE(hidden && hidden->from && hidden->until) << print(window);
  EXPECT_EQ(hidden->from->text(), "i1 - 20");
  EXPECT_EQ(hidden->until->text(), "i1 + 4");
  EXPECT_EQ(hidden->shows.size(), 2u);

  Kernel later = causal();
  std::ranges::find(later.stages[0].body.values, Core::le, &Value::op)->op = Core::ge;
  const std::optional<HiddenColumns> first = hidden_columns(later);
  ASSERT_TRUE(first && first->from);
  EXPECT_EQ(first->from->text(), "i1 + 3");
  EXPECT_FALSE(first->until);
}

TEST(HiddenColumns, AreNoneWhereWhatHidesThemWouldShow) {
  const auto of = [](const std::function<void(Kernel &)> &change) {
    Kernel kernel = causal();
    change(kernel);
    return hidden_columns(kernel).has_value();
  };
  const auto epilogue = [](Kernel &k) -> std::vector<Value> & { return k.stages[0].body.values; };
  const auto is = [](Core op) { return [op](const Value &v) { return v.op == op; }; };
  EXPECT_FALSE(hidden_columns(row_tile_form({.type = DType::i32, .seen = 3}).kernel)) << "a number that is no limit";
  EXPECT_FALSE(of([&](Kernel &k) {
    Value &select = *std::ranges::find_if(epilogue(k), is(Core::select));
    std::swap(select.args[1], select.args[2]);
  })) << "what is not hidden";
  EXPECT_FALSE(of([](Kernel &k) { k.stages[1].carriers = carriers_of(Core::min, DType::f32); })) << "the least of them";
  EXPECT_FALSE(of([&](Kernel &k) {
    std::ranges::find_if(k.stages[2].body.values, is(Core::constant))->immediate = immediate_of(DType::f32, 1);
  })) << "weights of 1";
  EXPECT_FALSE(of([](Kernel &k) { k.stages[3].body.values[0].access.index[0] = 0; })) << "one of them, read alone";
  EXPECT_FALSE(of([](Kernel &k) { k.stages[0].stores.push_back(store_at(5, axis(3, 70))); })) << "what others read";
  EXPECT_FALSE(of([](Kernel &k) { k.schedule.mr = k.schedule.nr = k.schedule.kc = 0; })) << "point by point";
}

}  // namespace
}  // namespace kiln::kernel::testing
