#include "runtime/exec/sizes.h"

#include <gtest/gtest.h>

#include "tests/unit/runtime/example_artifact.h"

namespace kiln {
namespace {

const std::vector<Plan::Symbol> symbols = {{.name = "n"}, {.name = "m"}};

int64_t value_of(const Expr &e, int64_t n, int64_t m) {
  Sizes sizes;
  const uint32_t number = sizes.add(e, symbols);
  std::vector<int64_t> out(sizes.count());
  sizes.evaluate(std::vector<int64_t>{n, m}, out);
  return out[number];
}

TEST(Sizes, AgreeWithTheExpressions) {
  const Expr n = Expr::symbol("n"), m = Expr::symbol("m");
  const Expr expressions[] = {7,
                              n,
                              2 * n + m - 3,
                              n * m * n,
                              floor_div(n - 5, 3),
                              mod(n - 5, 3),
                              min(n, m) + max(n, 2 * m),
                              ceil_div(n * m, 16),
                              floor_div(n, m),
                              mod(n, m)};
  for (const Expr &e : expressions)
    for (int64_t a : {0, 1, 4, 17})
      for (int64_t b : {0, 1, 3}) {
        const auto lookup = [&](const std::string &name) { return name == "n" ? a : b; };
        EXPECT_EQ(value_of(e, a, b), e.evaluate(lookup)) << e.text() << " at " << a << ", " << b;
      }
}

TEST(Sizes, RangesHoldAllThatTheSymbolsMakeOfThem) {
  const Expr n = Expr::symbol("n"), m = Expr::symbol("m");
  const Expr expressions[] = {7,
                              2 * n + m - 3,
                              9 - n,
                              (n - 4) * (m - 2),
                              floor_div(n - 5, 3),
                              floor_div(10, m + 1),
                              floor_div(n - 3, m),
                              mod(n - 5, 3),
                              mod(n, m + 1),
                              mod(n, m),
                              min(n, m) + max(n, 2 * m)};
  const Sizes::Range of_n{2, 9}, of_m{0, 4};
  for (const Expr &e : expressions) {
    Sizes sizes;
    const uint32_t number = sizes.add(e, symbols);
    std::vector<Sizes::Range> ranges(sizes.count());
    sizes.evaluate(std::vector{of_n, of_m}, ranges);
    for (int64_t a = of_n.low; a <= of_n.high; ++a) {
      for (int64_t b = of_m.low; b <= of_m.high; ++b) {
        EXPECT_LE(ranges[number].low, value_of(e, a, b)) << e.text() << " at " << a << ", " << b;
        EXPECT_GE(ranges[number].high, value_of(e, a, b)) << e.text() << " at " << a << ", " << b;
      }
    }
  }
}

TEST(Sizes, SaturateInsteadOfWrapping) {
  const Expr n = Expr::symbol("n"), m = Expr::symbol("m");
  EXPECT_EQ(value_of(n * m, INT64_MAX, 3), INT64_MAX);
  EXPECT_EQ(value_of(n * m + m, INT64_MAX / 2, 4), INT64_MAX);
  EXPECT_EQ(value_of(Expr(-1) * n * m, INT64_MAX, 3), INT64_MIN);
}

TEST(Sizes, EachDistinctExpressionIsEvaluatedOnce) {
  Sizes sizes;
  const Expr n = Expr::symbol("n");
  const uint32_t first = sizes.add(4 * n + 1, symbols);
  const size_t count = sizes.count();
  EXPECT_EQ(sizes.add(1 + n * 4, symbols), first);
  sizes.add(4 * n, symbols);
  EXPECT_EQ(sizes.count(), count);
}

}  // namespace
}  // namespace kiln
