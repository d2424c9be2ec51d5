#include "runtime/exec/memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace kiln {
namespace {

TEST(Memory, IsAlignedForVectorsAndHugePages) {
  for (uint64_t size : {1ull, 63ull, 64ull, 5000ull, (2ull << 20) - 1, 2ull << 20, (5ull << 20) + 1}) {
    const Result<Memory> memory = Memory::allocate(size, "test");
    ASSERT_TRUE(memory.ok());
    EXPECT_GE(memory->size_bytes(), size);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory->data()) % (size >= 2 << 20 ? 2 << 20 : 64), 0u) << size;
    std::memset(memory->data(), 1, size);
  }
  EXPECT_EQ(Memory::allocate(0, "test")->data(), nullptr);
}

TEST(Memory, TooMuchIsAnErrorThatSaysForWhat) {
  const Result<Memory> memory = Memory::allocate(UINT64_MAX, "arena");
  EXPECT_EQ(memory.status().code(), Code::out_of_memory);
  EXPECT_EQ(memory.status().message(), "cannot allocate 18446744073709551615 bytes for the arena");
}

TEST(Memory, GrowsAndNeverShrinks) {
  Memory memory;
  ASSERT_TRUE(memory.grow(100, "test").ok());
  const uint8_t *data = memory.data();
  ASSERT_TRUE(memory.grow(50, "test").ok());
  EXPECT_EQ(memory.data(), data);
  ASSERT_TRUE(memory.grow(1000, "test").ok());
  EXPECT_GE(memory.size_bytes(), 1000u);
}

TEST(Areas, LieOneAfterTheOtherAligned) {
  Areas areas;
  ASSERT_TRUE(areas.resize(std::vector<uint64_t>{12, 0, 64, 65}, "test").ok());
  ASSERT_EQ(areas.count(), 4u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(areas[0]) % 64, 0u);
  for (const auto &[area, offset] : {std::pair(1, 64), {2, 64}, {3, 128}})
    EXPECT_EQ(areas[static_cast<size_t>(area)] - areas[0], offset);
  EXPECT_EQ(areas.resize(std::vector<uint64_t>{8, UINT64_MAX}, "arena").code(), Code::out_of_memory);
}

// Whether the byte can be read: the kernel says so where a program would die.
bool is_readable(const uint8_t *byte) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const bool readable = write(ends[1], byte, 1) == 1;
  close(ends[0]);
  close(ends[1]);
  return readable;
}

TEST(Areas, AreFlushWithPagesThatCannotBeAccessedWhereThatIsAskedFor) {
  const std::vector<uint64_t> sizes{16, 4096, 12};
  for (const char *guard : {"1", "2"}) {
    setenv("KILN_GUARD_PAGES", guard, 1);
    Areas areas;
    const Status resized = areas.resize(sizes, "test");
    unsetenv("KILN_GUARD_PAGES");
    ASSERT_TRUE(resized.ok());
    for (size_t i = 0; i < sizes.size(); ++i) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(areas[i]) % 8, 0u);
      EXPECT_TRUE(is_readable(areas[i]));
      EXPECT_TRUE(is_readable(areas[i] + sizes[i] - 1));
      EXPECT_EQ(areas[i][sizes[i] - 1], 0xff) << "what nobody wrote is NaN";
      EXPECT_FALSE(is_readable(*guard == '1' ? areas[i] + (sizes[i] + 7) / 8 * 8 : areas[i] - 1)) << guard;
      EXPECT_FALSE(is_readable(*guard == '1' ? areas[i] - 4096 : areas[i] + 4096)) << guard;
    }
  }
}

TEST(Areas, RefuseAGuardThatIsNeitherOneNorTwo) {
  setenv("KILN_GUARD_PAGES", "3", 1);
  Areas areas;
  const Status resized = areas.resize(std::vector<uint64_t>{16}, "test");
  unsetenv("KILN_GUARD_PAGES");
  EXPECT_EQ(resized.message(), "KILN_GUARD_PAGES is 3, expected 1 or 2");
}

TEST(BufferRecycler, GivesBackABufferOfAboutTheSize) {
  const auto recycler = std::make_shared<BufferRecycler>();
  auto buffer = *recycler->acquire(1000);
  const uint8_t *data = buffer->memory.data();
  buffer.reset();
  EXPECT_GE(recycler->kept_bytes(), 1000u);
  auto again = *recycler->acquire(950);
  EXPECT_EQ(again->memory.data(), data);
  EXPECT_EQ(recycler->kept_bytes(), 0u);
  again.reset();
  EXPECT_NE((*recycler->acquire(100))->memory.data(), data) << "most of it would lie idle";
}

TEST(BufferRecycler, KeepsABoundedNumber) {
  const auto recycler = std::make_shared<BufferRecycler>();
  std::vector<std::shared_ptr<OutputBuffer>> buffers;
  for (int i = 0; i < 100; ++i) buffers.push_back(*recycler->acquire(1024));
  buffers.clear();
  EXPECT_EQ(recycler->kept_bytes(), 16u * 1024);
}

TEST(BufferRecycler, LivesUntilItsLastBufferIsLetGo) {
  auto recycler = std::make_shared<BufferRecycler>();
  const std::weak_ptr<BufferRecycler> alive = recycler;
  auto buffer = *recycler->acquire(64);
  recycler.reset();
  ASSERT_FALSE(alive.expired());
  buffer->memory.data()[63] = 1;
  buffer.reset();  // which it takes back
  EXPECT_TRUE(alive.expired());
}

}  // namespace
}  // namespace kiln
