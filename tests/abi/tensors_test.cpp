// Tensors in files, and reports by path.

#include <algorithm>
#include <cstring>
#include <fstream>
#include <numeric>

#include "host.h"
#include "tests/temporary_folder.h"

namespace {

class TensorsTest : public testing::Test {
 protected:
  // A file of this test's own with that ending.
  void name(std::string_view ending) { path = folder.file("some" + std::string(ending)); }
  host::Tensors open() {
    kiln_tensors *tensors = nullptr;
    EXPECT_OK(kiln_tensors_open(path.data(), path.size(), &tensors));
    return host::Tensors(tensors);
  }
  kiln_error *write(std::vector<const DLTensor *> tensors, std::vector<kiln_text> names) {
    return kiln_tensors_write(path.data(), path.size(), names.data(), tensors.data(), tensors.size());
  }
  const kiln::test::TemporaryFolder folder;
  std::string path;
  host::Array matrix{{2, 3}, {1, 2, 3, 4, 5, 6}};
  host::Array scalar{{}, {7}};
};

TEST_F(TensorsTest, SafetensorsReadBack) {
  name(".safetensors");
  ASSERT_OK(write({&matrix.tensor, &scalar.tensor}, {{"layer.weight", 12}, {"s", 1}}));
  const host::Tensors tensors = open();
  ASSERT_EQ(kiln_tensors_count(tensors.get()), 2u);
  kiln_text first{};
  const DLTensor *tensor = nullptr;
  ASSERT_OK(kiln_tensors_at(tensors.get(), 0, &first, nullptr));
  EXPECT_EQ(host::text_of(first), "layer.weight");
  ASSERT_OK(kiln_tensors_find(tensors.get(), "layer.weight", 12, &tensor));
  EXPECT_EQ(tensor->ndim, 2);
  EXPECT_EQ(tensor->shape[1], 3);
  EXPECT_EQ(static_cast<const float *>(tensor->data)[5], 6.0f);
  EXPECT_FAILS(kiln_tensors_find(tensors.get(), "bias", 4, &tensor), KILN_UNKNOWN_NAME, "'bias' among the 2");
  EXPECT_FAILS(kiln_tensors_at(tensors.get(), 2, nullptr, &tensor), KILN_OUT_OF_RANGE, "tensor 2 of 2");
}

TEST_F(TensorsTest, NpyReadsBackUnderTheFilesName) {
  name(".npy");
  ASSERT_OK(write({&matrix.tensor}, {{nullptr, 0}}));
  const host::Tensors tensors = open();
  kiln_text stem{};
  const DLTensor *tensor = nullptr;
  ASSERT_OK(kiln_tensors_at(tensors.get(), 0, &stem, &tensor));
  EXPECT_EQ(host::text_of(stem), "some");
  EXPECT_EQ(tensor->shape[0], 2);
  EXPECT_EQ(static_cast<const float *>(tensor->data)[5], 6.0f);
}

TEST_F(TensorsTest, StridedTensorsAreWrittenDense) {
  name(".npy");
  int64_t shape[] = {3, 2}, strides[] = {1, 3};  // the matrix, transposed
  DLTensor transposed = matrix.tensor;
  transposed.shape = shape;
  transposed.strides = strides;
  ASSERT_OK(write({&transposed}, {{nullptr, 0}}));
  const DLTensor *tensor = nullptr;
  const host::Tensors tensors = open();
  ASSERT_OK(kiln_tensors_at(tensors.get(), 0, nullptr, &tensor));
  EXPECT_EQ(static_cast<const float *>(tensor->data)[1], 4.0f);
}

// NumPy lacks some of the types; the error says what to do.
TEST_F(TensorsTest, EveryElementTypeReadsBackOrIsRefusedByName) {
  std::vector<uint8_t> bytes(24);
  std::iota(bytes.begin(), bytes.end(), uint8_t{0});
  for (uint32_t dtype = KILN_F64; dtype <= KILN_F8_E5M2; ++dtype) {
    kiln_text known{};
    uint32_t size = 0, dlpack = 0;
    ASSERT_OK(kiln_dtype_info(dtype, &known, &size, &dlpack));
    SCOPED_TRACE(host::text_of(known));
    std::vector<uint8_t> elements = bytes;
    if (dtype == KILN_BOOL) std::ranges::transform(bytes, elements.begin(), [](uint8_t byte) { return byte & 1; });
    int64_t count = 24 / static_cast<int64_t>(size);
    DLTensor written = matrix.tensor;
    written.data = elements.data();
    written.ndim = 1;
    written.shape = &count;
    written.dtype = {static_cast<uint8_t>(dlpack), static_cast<uint8_t>(dlpack >> 8), 1};
    const bool numpy = dtype != KILN_BF16 && dtype != KILN_F8_E4M3FN && dtype != KILN_F8_E5M2;
    for (const char *ending : {".safetensors", ".npy"}) {
      name(ending);
      if (!numpy && ending == std::string_view(".npy")) {
        EXPECT_FAILS(write({&written}, {{"t", 1}}), KILN_INVALID_ARGUMENT,
                     "npy has no type for " + host::text_of(known) + "; .safetensors has one");
        continue;
      }
      ASSERT_OK(write({&written}, {{"t", 1}}));
      const host::Tensors tensors = open();
      const DLTensor *read = nullptr;
      ASSERT_OK(kiln_tensors_at(tensors.get(), 0, nullptr, &read));
      EXPECT_EQ(read->dtype.code, written.dtype.code);
      EXPECT_EQ(read->dtype.bits, written.dtype.bits);
      ASSERT_EQ(read->shape[0], count);
      EXPECT_EQ(std::memcmp(read->data, elements.data(), elements.size()), 0);
    }
  }
}

TEST_F(TensorsTest, AnotherEndingIsRefused) {
  name(".bin");
  EXPECT_FAILS(write({&matrix.tensor}, {{"m", 1}}), KILN_INVALID_ARGUMENT, "ends in .safetensors or .npy");
  path = path + ".npy";
  EXPECT_FAILS(write({&matrix.tensor, &scalar.tensor}, {{"m", 1}, {"s", 1}}), KILN_INVALID_ARGUMENT,
               "one tensor, not 2");
}

TEST_F(TensorsTest, CutFilesAreCorrupt) {
  name(".safetensors");
  ASSERT_OK(write({&matrix.tensor}, {{"m", 1}}));
  std::ifstream in(path, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  for (size_t size = 0; size < whole.size(); size++) {
    std::ofstream(path, std::ios::binary | std::ios::trunc).write(whole.data(), static_cast<std::streamsize>(size));
    kiln_tensors *tensors = nullptr;
    EXPECT_FAILS(kiln_tensors_open(path.data(), path.size(), &tensors), KILN_CORRUPT, path);
  }
}

TEST_F(TensorsTest, AMissingFileIsNamed) {
  name(".npy");
  kiln_tensors *tensors = nullptr;
  EXPECT_FAILS(kiln_tensors_open(path.data(), path.size(), &tensors), KILN_IO, path);
}

TEST(Reports, AreReadByPathAndType) {
  kiln_report *made = nullptr;
  ASSERT_OK(kiln_build_report(&made));
  const host::Report report(made);
  EXPECT_EQ(host::i64(report, "abi.major"), KILN_ABI_MAJOR);
  EXPECT_EQ(host::text(report, "build_id").size(), 32u);
  int64_t number = 5;
  EXPECT_FAILS(kiln_report_get_i64(made, "build_id", 8, &number), KILN_TYPE_MISMATCH, "'build_id' of the report");
  EXPECT_FAILS(kiln_report_get_i64(made, "abi.minute", 10, &number), KILN_UNKNOWN_NAME, "'abi.minute'");
  EXPECT_EQ(number, 5);
  uint64_t count = 0;
  EXPECT_OK(kiln_report_count(made, "abi", 3, &count));
  EXPECT_EQ(count, 2u);
  kiln_text key{};
  EXPECT_OK(kiln_report_key(made, "abi", 3, 1, &key));
  EXPECT_EQ(host::text_of(key), "minor");
  EXPECT_FAILS(kiln_report_key(made, "abi", 3, 2, &key), KILN_OUT_OF_RANGE, "member 2 of 2");
}

TEST(Version, IsTheHeaders) { EXPECT_EQ(kiln_version(), KILN_ABI_MAJOR << 16 | KILN_ABI_MINOR); }

TEST(Dtypes, TellNameSizeAndDlpack) {
  kiln_text name{};
  uint32_t bytes = 0, dlpack = 0;
  ASSERT_OK(kiln_dtype_info(KILN_BF16, &name, &bytes, &dlpack));
  EXPECT_EQ(host::text_of(name), "bf16");
  EXPECT_EQ(bytes, 2u);
  EXPECT_EQ(dlpack, kDLBfloat | 16u << 8 | 1u << 16);
  EXPECT_FAILS(kiln_dtype_info(17, &name, nullptr, nullptr), KILN_OUT_OF_RANGE, "17");
}

TEST(CacheCommand, NeedsACacheAndAKnownVerb) {
  const host::Context off = host::make_context();
  kiln_report *made = nullptr;
  EXPECT_FAILS(kiln_cache_command(off.get(), "ls", 2, nullptr, &made), KILN_INVALID_ARGUMENT, "cache is off");
  const kiln::test::TemporaryFolder folder;
  const host::Context on = host::make_context(folder.path());
  EXPECT_FAILS(kiln_cache_command(on.get(), "list", 4, nullptr, &made), KILN_UNKNOWN_NAME, "'list'; it has: ls");
  ASSERT_OK(kiln_cache_command(on.get(), "stats", 5, nullptr, &made));
  EXPECT_EQ(host::i64(host::Report(made), "entries"), 0);
}

}  // namespace
