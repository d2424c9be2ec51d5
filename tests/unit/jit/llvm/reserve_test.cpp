#include "jit/llvm/reserve.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>
#include <cstring>
#include <vector>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define NEEDS_THE_SYSTEMS_MALLOC GTEST_SKIP() << "sanitizers end the process when there is no memory"
#else
#define NEEDS_THE_SYSTEMS_MALLOC
#endif

namespace kiln::codegen {
namespace {

constexpr size_t reserve_bytes = size_t{8} << 20;
constexpr size_t large = size_t{1} << 20;  // malloc asks the system for each such block

// For its life the system gives this process no more memory.
class NoMemory {
 public:
  NoMemory() {
    getrlimit(RLIMIT_AS, &before_);
    rlimit none = before_;
    none.rlim_cur = 1;
    setrlimit(RLIMIT_AS, &none);
  }
  NoMemory(const NoMemory &) = delete;
  NoMemory &operator=(const NoMemory &) = delete;
  ~NoMemory() { setrlimit(RLIMIT_AS, &before_); }

 private:
  rlimit before_{};
};

char *filled(void *block, char with, size_t size) {
  return block ? static_cast<char *>(std::memset(block, with, size)) : nullptr;
}

TEST(Reserve, GivesWhatMallocRefuses) {
  NEEDS_THE_SYSTEMS_MALLOC;
  const std::optional<Reserve> reserve = Reserve::hold(reserve_bytes);
  ASSERT_TRUE(reserve);
  EXPECT_FALSE(reserve->is_low());
  char *blocks[3] = {};
  bool was_low = false;
  {
    const NoMemory none;
    blocks[0] = filled(std::malloc(large), 'a', large);
    blocks[1] = static_cast<char *>(std::calloc(1, large));
    blocks[2] = static_cast<char *>(std::aligned_alloc(4096, large));
    was_low = reserve->is_low();
  }
  ASSERT_TRUE(blocks[0] && blocks[1] && blocks[2]);
  EXPECT_TRUE(was_low);
  EXPECT_EQ(blocks[0][large - 1], 'a');
  EXPECT_EQ(blocks[1][large - 1], 0);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(blocks[2]) % 4096, 0u);
  for (char *block : blocks) std::free(block);
  EXPECT_FALSE(reserve->is_low());
}

TEST(Reserve, KeepsContentsWhereBlocksGrow) {
  NEEDS_THE_SYSTEMS_MALLOC;
  const std::optional<Reserve> reserve = Reserve::hold(reserve_bytes);
  char *of_malloc = filled(std::malloc(large), 'm', large), *of_reserve = nullptr;
  {
    const NoMemory none;
    of_malloc = static_cast<char *>(std::realloc(of_malloc, 2 * large));
    of_reserve = static_cast<char *>(std::realloc(filled(std::malloc(large), 'r', large), 2 * large));
  }
  of_reserve = static_cast<char *>(std::realloc(of_reserve, 3 * large));
  ASSERT_TRUE(of_malloc && of_reserve);
  EXPECT_EQ(of_malloc[large - 1], 'm');
  EXPECT_EQ(of_reserve[large - 1], 'r');
  std::free(of_malloc);
  std::free(of_reserve);
  EXPECT_FALSE(reserve->is_low());
}

TEST(Reserve, UsesBlocksAgain) {
  NEEDS_THE_SYSTEMS_MALLOC;
  const std::optional<Reserve> reserve = Reserve::hold(reserve_bytes);
  void *kept = nullptr, *again = nullptr;
  bool all = true;
  {
    const NoMemory none;
    kept = std::malloc(large);
    for (int i = 0; i < 100; ++i) {
      again = std::malloc(large);
      all = all && again;
      std::free(again);
    }
  }
  EXPECT_TRUE(kept && all);
  EXPECT_FALSE(reserve->is_spent());
  std::free(kept);
}

TEST(Reserve, IsSpentInTheEnd) {
  NEEDS_THE_SYSTEMS_MALLOC;
  const std::optional<Reserve> reserve = Reserve::hold(reserve_bytes);
  std::vector<void *> blocks;
  blocks.reserve(64);
  bool was_spent = false;
  {
    const NoMemory none;
    while (void *block = std::malloc(large)) blocks.push_back(block);
    was_spent = reserve->is_spent();
  }
  EXPECT_TRUE(was_spent);
  EXPECT_GE(blocks.size(), 6u);
  for (void *block : blocks) std::free(block);
}

TEST(Reserve, BlocksOutliveIt) {
  NEEDS_THE_SYSTEMS_MALLOC;
  std::optional<Reserve> reserve = Reserve::hold(reserve_bytes);
  char *block = nullptr;
  {
    const NoMemory none;
    block = filled(std::malloc(large), 'b', large);
  }
  reserve.reset();
  ASSERT_TRUE(block);
  EXPECT_EQ(block[large - 1], 'b');
  std::free(block);
}

TEST(Reserve, IsRefusedWhereThereIsNoMemory) {
  NEEDS_THE_SYSTEMS_MALLOC;
  bool held = true;
  {
    const NoMemory none;
    held = Reserve::hold(reserve_bytes).has_value();
  }
  EXPECT_FALSE(held);
}

}  // namespace
}  // namespace kiln::codegen
