#include "runtime/plan/storage.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

const Expr size_n = Expr::symbol("n"), size_m = Expr::symbol("m");

TEST(StoragePool, GivesStorageOfEqualSizeAgain) {
  StoragePool pool;
  const uint32_t a = pool.take(size_n * 4), b = pool.take(size_n * 8);
  EXPECT_NE(a, b);
  pool.give_back(a);
  pool.give_back(b);
  EXPECT_EQ(pool.take(size_n * 8), b);
  EXPECT_EQ(pool.take(size_n * 4), a);
}

TEST(StoragePool, TakesTheSmallestFreeOneThatIsLargeEnough) {
  StoragePool pool;
  const uint32_t small = pool.take(100), middle = pool.take(200), large = pool.take(300);
  for (uint32_t storage : {small, middle, large}) pool.give_back(storage);
  EXPECT_EQ(pool.take(150), middle);
  EXPECT_EQ(std::move(pool).finish()[middle].size_bytes, Expr(200));
}

TEST(StoragePool, GrowsTheLargestFreeOneWhenNoneIsLargeEnough) {
  StoragePool pool;
  const uint32_t small = pool.take(100), large = pool.take(300);
  pool.give_back(small);
  pool.give_back(large);
  EXPECT_EQ(pool.take(400), large);
  EXPECT_EQ(std::move(pool).finish()[large].size_bytes, Expr(400));
}

TEST(StoragePool, ComparesSymbolicSizesThatOrderForAllValues) {
  StoragePool pool;
  const uint32_t a = pool.take(size_n * size_m * 4);
  pool.give_back(a);
  EXPECT_EQ(pool.take(size_n * size_m * 12), a);
  EXPECT_EQ(std::move(pool).finish()[a].size_bytes, size_n * size_m * 12);
}

TEST(StoragePool, DoesNotShareBetweenSizesThatCannotBeCompared) {
  StoragePool pool;
  const uint32_t a = pool.take(size_n * 4);
  pool.give_back(a);
  EXPECT_NE(pool.take(size_m * 4), a);
}

TEST(StoragePool, NeverGivesOneStorageTwice) {
  StoragePool pool;
  const uint32_t a = pool.take(64);
  pool.give_back(a);
  EXPECT_EQ(pool.take(64), a);
  EXPECT_NE(pool.take(64), a);
}

}  // namespace
}  // namespace kiln
