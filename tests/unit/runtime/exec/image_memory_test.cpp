#include "runtime/exec/image_memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "jit/base/kernel_args.h"
#include "runtime/exec/perf_map.h"
#include "tests/unit/runtime/example_artifact.h"

namespace kiln {
namespace {

// The line of /proc/self/maps that holds `address`.
std::string map_line(const void *address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx", &begin, &end) == 2 && begin <= reinterpret_cast<uintptr_t>(address) &&
        reinterpret_cast<uintptr_t>(address) < end)
      return line;
  }
  return "";
}

TEST(ImageMemory, RunsWhatItLoaded) {
  const std::vector<Image> images = {example::failing_kernel(), example::add_kernel()};
  const Result<ImageMemory> memory = ImageMemory::load(images, "kiln-test");
  ASSERT_TRUE(memory.ok()) << memory.status().message();
  float a[2] = {1, 2}, b[2] = {10, 20}, out[2] = {};
  void *buffers[] = {a, b, out};
  uint32_t error_word = 0;
  kiln_kernel_args args{buffers, nullptr, 0, 2, nullptr, &error_word};
  const auto add = reinterpret_cast<kiln_kernel_fn>(reinterpret_cast<uintptr_t>(memory->entry(1)));
  EXPECT_EQ(add(&args), 0);
  EXPECT_EQ(out[1], 22);
}

TEST(ImageMemory, ImagesAreAlignedNamedAndNotWritable) {
  const std::vector<Image> images = {example::failing_kernel(), example::add_kernel(), example::add_size_kernel()};
  const Result<ImageMemory> memory = ImageMemory::load(images, "kiln-test");
  ASSERT_TRUE(memory.ok());
  for (size_t i = 0; i < images.size(); ++i) EXPECT_EQ(reinterpret_cast<uintptr_t>(memory->entry(i)) % 64, 0u);
  const std::string line = map_line(memory->entry(0));
  EXPECT_NE(line.find(" r-x"), std::string::npos) << line;
  EXPECT_NE(line.find("kiln-test"), std::string::npos) << line;
}

TEST(ImageMemory, UnmapsWhenItDies) {
  const void *entry;
  {
    const std::vector<Image> images = {example::add_kernel()};
    Result<ImageMemory> memory = ImageMemory::load(images, "kiln-test-unmap");
    ASSERT_TRUE(memory.ok());
    entry = memory->entry(0);
    const ImageMemory moved = std::move(memory).value();
    EXPECT_NE(map_line(entry).find("kiln-test-unmap"), std::string::npos);
  }
  EXPECT_EQ(map_line(entry).find("kiln-test-unmap"), std::string::npos);
}

TEST(ImageMemory, DoesWithoutAMemoryFile) {
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit none{0, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &none);  // no file can grow
  const std::vector<Image> images = {example::failing_kernel()};
  const Result<ImageMemory> memory = ImageMemory::load(images, "kiln-test");
  setrlimit(RLIMIT_FSIZE, &before);

  ASSERT_TRUE(memory.ok()) << memory.status().message();
  const std::string line = map_line(memory->entry(0));
  EXPECT_NE(line.find(" r-x"), std::string::npos) << line;
  EXPECT_EQ(line.find("kiln-test"), std::string::npos) << line;
  uint32_t error_word = 0;
  kiln_kernel_args args{};
  args.error_word = &error_word;
  reinterpret_cast<kiln_kernel_fn>(reinterpret_cast<uintptr_t>(memory->entry(0)))(&args);
  EXPECT_EQ(error_word, KILN_ERROR_INDEX_OUT_OF_RANGE);
}

TEST(PerfMap, NamesKernelsInAnonymousMemory) {
  const std::vector<Image> images = {example::add_kernel()};
  const Result<ImageMemory> memory = ImageMemory::load(images, "kiln-test", true);
  ASSERT_TRUE(memory.ok());
  EXPECT_EQ(map_line(memory->entry(0)).find("kiln-test"), std::string::npos);
  write_perf_map(*memory, images, "example");
  const std::string path = str_cat("/tmp/perf-", getpid(), ".map");
  std::string line;
  std::ifstream map(path);
  std::getline(map, line);
  EXPECT_NE(line.find(" 35 kiln kernel 0 of example"), std::string::npos) << line;
  unlink(path.c_str());
}

TEST(ImageMemory, NoImagesNeedNoMemory) { EXPECT_EQ(ImageMemory::load({}, "none")->size_bytes(), 0u); }

TEST(ImageMemory, RefusesAnEntryOutsideTheImage) {
  Image image = example::add_kernel();
  image.entry_offset = image.code->size();
  EXPECT_EQ(ImageMemory::load({&image, 1}, "bad").status().message(),
            "image 0: the entry is at 53, expected below its size 53");
}

}  // namespace
}  // namespace kiln
