#include "runtime/dim_table.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

TEST(DimTable, EqualExpressionsHaveOneNumber) {
  DimTable table;
  const Expr n = Expr::symbol("n");
  const uint64_t twice = table.number_of(n + n);
  EXPECT_NE(twice, 0u);
  EXPECT_EQ(table.number_of(n * 2), twice);
  EXPECT_NE(table.number_of(n), twice);
  EXPECT_EQ(table.expr(twice), n * 2);
}

TEST(DimTable, UnknownNumbersAreNothing) {
  DimTable table;
  EXPECT_EQ(table.expr(0), std::nullopt);
  EXPECT_EQ(table.expr(1), std::nullopt);
  const uint64_t number = table.number_of(Expr::symbol("n"));
  EXPECT_EQ(table.expr(number + 1), std::nullopt);
}

TEST(DimTable, NumbersOfAnotherTableAreNothing) {
  DimTable one, other;
  const uint64_t number = one.number_of(Expr::symbol("n"));
  (void)other.number_of(Expr::symbol("m"));
  EXPECT_EQ(other.expr(number), std::nullopt);
}

TEST(DimTable, TextsStayWhereTheyAre) {
  DimTable table;
  const std::string &first = table.text_of(Expr::symbol("first"));
  for (int i = 0; i < 1000; i++) (void)table.number_of(Expr::symbol(str_cat("s", i)));
  EXPECT_EQ(&first, &table.text_of(Expr::symbol("first")));
}

}  // namespace
}  // namespace kiln
