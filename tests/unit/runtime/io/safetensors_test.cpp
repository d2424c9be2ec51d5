#include <gtest/gtest.h>

#include "runtime/io/tensor_file.h"
#include "tests/temporary_folder.h"

namespace kiln {
namespace {

Bytes file(std::string_view header, size_t data_bytes) {
  ByteWriter out;
  out.text(header);
  for (size_t i = 0; i < data_bytes; ++i) out.put(static_cast<uint8_t>(i));
  return out.take();
}
std::string refusal(const Bytes &bytes) { return parse_safetensors(bytes).status().message(); }

TEST(Safetensors, ReadsNamesTypesAndBytesInTheFilesOrder) {
  Bytes bytes = file(R"({"__metadata__": {"format": "pt"}, "b": {"dtype": "I64", "shape": [], "data_offsets": [16, 24]},
      "a": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}, "empty": {"dtype": "BF16", "shape": [0, 9], "data_offsets": [24, 24]}})",
                     24);
  Result<std::vector<StoredTensor>> tensors = parse_safetensors(bytes);
  ASSERT_TRUE(tensors.ok()) << tensors.status().message();
  ASSERT_EQ(tensors->size(), 3u);
  EXPECT_EQ((*tensors)[0].name, "b");
  EXPECT_EQ((*tensors)[0].dtype, DType::i64);
  EXPECT_EQ((*tensors)[0].bytes[0], 16);
  EXPECT_EQ((*tensors)[1].shape, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ((*tensors)[2].bytes.size(), 0u);
}

TEST(Safetensors, RefusalsNameTheTensor) {
  EXPECT_EQ(refusal({1, 2, 3}), "too short for safetensors: 3 bytes");
  EXPECT_EQ(refusal({255, 255, 255, 255, 255, 255, 255, 255}),
            "its header should have 18446744073709551615 bytes; the file has 8");
  EXPECT_EQ(refusal(file("[]", 0)), "header: expected an object");
  EXPECT_EQ(refusal(file("{\"a\": 1, \"a\": 2}", 0)),
            "header: JSON, line 1, column 10: key 'a' stands twice in one object");
  EXPECT_EQ(refusal(file("{\"a\": 1}", 0)), "tensor 'a': expected an object with dtype, shape and data_offsets");
  auto one = [](std::string_view dtype, std::string_view shape, std::string_view offsets, size_t bytes) {
    return refusal(file(
        str_cat("{\"a\":{\"dtype\":\"", dtype, "\",\"shape\":", shape, ",\"data_offsets\":", offsets, "}}"), bytes));
  };
  EXPECT_EQ(one("F32", "[1]", "[0,4]", 4), "");
  EXPECT_EQ(one("F8_E8M0", "[4]", "[0,4]", 4), "tensor 'a': dtype 'F8_E8M0' is not one that Kiln has");
  EXPECT_EQ(one("F32", "[-1]", "[0,4]", 4), "tensor 'a': shape is no list of sizes");
  EXPECT_EQ(one("F32", "[0.5]", "[0,4]", 4), "tensor 'a': shape is no list of sizes");
  EXPECT_EQ(one("F32", "[1]", "[0]", 4), "tensor 'a': data_offsets is no pair of offsets");
  EXPECT_EQ(one("F32", "[1]", "[4,0]", 4), "tensor 'a': its bytes 4 to 0 are not within the 4 of the file");
  EXPECT_EQ(one("F32", "[1]", "[0,8]", 4), "tensor 'a': its bytes 0 to 8 are not within the 4 of the file");
  EXPECT_EQ(one("F32", "[2]", "[0,4]", 4), "tensor 'a': has 4 bytes; its dtype and shape need 8");
  EXPECT_EQ(one("F32", "[4503599627370496,4503599627370496]", "[0,4]", 4),
            "tensor 'a': has 4 bytes; its dtype and shape need more than there can be");
  EXPECT_EQ(one("F32", "[1]", "[4,8]", 8), "tensor 'a': its bytes leave a gap after those of the one before");
  EXPECT_EQ(one("F32", "[1]", "[0,4]", 6), "2 bytes at the end belong to no tensor");
}

TEST(Safetensors, OverlapsAreRefused) {
  EXPECT_EQ(refusal(file(R"({"a": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]},
                             "b": {"dtype": "U8", "shape": [4], "data_offsets": [2, 6]}})",
                         6)),
            "tensor 'b': its bytes overlap those of the one before");
}

TEST(Safetensors, EveryTruncationIsRefused) {
  Bytes whole = file("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8);
  ASSERT_TRUE(parse_safetensors(whole).ok());
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_EQ(parse_safetensors(ByteSpan(whole).first(size)).status().code(), Code::corrupt) << size;
}

TEST(Safetensors, WrittenTensorsReadBack) {
  Bytes first{1, 2, 3}, second{4, 5, 6, 7};
  std::vector<StoredTensor> tensors{
      {.name = "ä\n\"", .dtype = DType::u8, .shape = {3}, .strides = {}, .bytes = first},
      {.name = "x", .dtype = DType::bf16, .shape = {1, 2}, .strides = {}, .bytes = second}};
  Result<Bytes> written = write_safetensors(tensors);
  ASSERT_TRUE(written.ok());
  Result<std::vector<StoredTensor>> back = parse_safetensors(*written);
  ASSERT_TRUE(back.ok()) << back.status().message();
  ASSERT_EQ(back->size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ((*back)[i].name, tensors[i].name);
    EXPECT_EQ((*back)[i].dtype, tensors[i].dtype);
    EXPECT_EQ((*back)[i].shape, tensors[i].shape);
    EXPECT_TRUE(std::ranges::equal((*back)[i].bytes, tensors[i].bytes));
  }
  tensors[1].name = tensors[0].name;
  EXPECT_EQ(write_safetensors(tensors).status().code(), Code::invalid_argument);
}

TEST(TensorFile, OpensBothFormatsAndAlignsElements) {
  const test::TemporaryFolder folder;
  const std::string tensors_path = folder.file("w.safetensors"), npy_path = folder.file("labels.npy");
  Bytes data{1, 2, 3, 4};
  // One byte before the floats, so that they lie at an odd address in the file.
  Bytes odd = file(
      R"({"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}, "f": {"dtype": "F32", "shape": [1], "data_offsets": [1, 5]}})",
      5);
  ASSERT_TRUE(write_file(tensors_path, odd).ok());
  std::vector<StoredTensor> one{{.name = "any", .dtype = DType::i32, .shape = {1}, .strides = {}, .bytes = data}};
  ASSERT_TRUE(write_tensor_file(npy_path, one).ok());

  Result<TensorFile> opened = TensorFile::open(tensors_path);
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  TensorFile moved = std::move(opened).value();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(moved.tensors()[1].bytes.data()) % 4, 0u);
  EXPECT_EQ(moved.tensors()[1].bytes[3], 4);
  EXPECT_EQ(TensorFile::open(npy_path)->tensors()[0].name, "labels");
  EXPECT_EQ(TensorFile::open(folder.file("x.bin")).status().message(),
            folder.file("x.bin") + ": expected a name that ends in .safetensors or .npy");
  ASSERT_TRUE(write_file(npy_path, data).ok());
  EXPECT_EQ(TensorFile::open(npy_path).status().message(), npy_path + ": not an npy file");
}

}  // namespace
}  // namespace kiln
