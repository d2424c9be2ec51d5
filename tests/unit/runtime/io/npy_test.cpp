#include <gtest/gtest.h>

#include "runtime/io/tensor_file.h"

namespace kiln {
namespace {

Bytes npy_file(std::string_view header, size_t data_bytes, uint8_t major = 1) {
  ByteWriter out;
  for (char c : std::string_view("\x93NUMPY")) out.put(c);
  out.put(major);
  out.put<uint8_t>(0);
  if (major == 1)
    out.put(static_cast<uint16_t>(header.size()));
  else
    out.put(static_cast<uint32_t>(header.size()));
  for (char c : header) out.put(c);
  for (size_t i = 0; i < data_bytes; ++i) out.put(static_cast<uint8_t>(i));
  return out.take();
}
std::string npy_refusal(const Bytes &bytes) { return parse_npy(bytes).status().message(); }

TEST(Npy, ReadsEachVersion) {
  for (uint8_t major : {1, 2, 3}) {
    Bytes bytes = npy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", 24, major);
    Result<StoredTensor> tensor = parse_npy(bytes);
    ASSERT_TRUE(tensor.ok()) << tensor.status().message();
    EXPECT_EQ(tensor->dtype, DType::f32);
    EXPECT_EQ(tensor->shape, (std::vector<int64_t>{2, 3}));
    EXPECT_TRUE(tensor->strides.empty());
    EXPECT_EQ(tensor->bytes.data() + 24, bytes.data() + bytes.size());
  }
}

TEST(Npy, ReadsScalarsEmptyTensorsAndAnyOrderOfMembers) {
  EXPECT_EQ(parse_npy(npy_file("{'descr': '<i8', 'fortran_order': False, 'shape': ()}", 8))->shape.size(), 0u);
  EXPECT_EQ(parse_npy(npy_file("{'shape': (0,), 'fortran_order': False, 'descr': '|b1'}", 0))->dtype, DType::boolean);
  EXPECT_EQ(parse_npy(npy_file("{\"shape\": (3,), \"descr\": \"<f2\", \"fortran_order\": True}", 6))->dtype,
            DType::f16);
}

TEST(Npy, FortranOrderComesAsStrides) {
  Result<StoredTensor> tensor = parse_npy(npy_file("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3, 4)}", 24));
  ASSERT_TRUE(tensor.ok());
  EXPECT_EQ(tensor->strides, (std::vector<int64_t>{1, 2, 6}));
}

TEST(Npy, RefusalsSayWhatIsWrong) {
  EXPECT_EQ(npy_refusal({}), "not an npy file");
  EXPECT_EQ(npy_refusal(Bytes(100)), "not an npy file");
  EXPECT_EQ(npy_refusal(npy_file("{}", 0, 4)), "npy of version 4; 1 to 3 are known");
  EXPECT_EQ(npy_refusal(npy_file("{}", 0)), "header: descr, fortran_order or shape is missing");
  EXPECT_EQ(npy_refusal(npy_file("{'descr': '>f4', 'fortran_order': False, 'shape': ()}", 4)),
            "dtype '>f4' is not one that Kiln has");
  EXPECT_EQ(npy_refusal(npy_file("{'descr': '<c8', 'fortran_order': False, 'shape': ()}", 8)),
            "dtype '<c8' is not one that Kiln has");
  EXPECT_EQ(npy_refusal(npy_file("{'descr': '<V2', 'fortran_order': False, 'shape': ()}", 2)),
            "dtype '<V2' is not one that Kiln has; .npy has none for bf16 and 8-bit floats, use .safetensors");
  EXPECT_EQ(npy_refusal(npy_file("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}", 4)),
            "header: expected a dtype in quotes (Kiln reads no records) before '[('a', '<f4''");
  EXPECT_EQ(npy_refusal(npy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", 4)),
            "header: expected a size before '-1,)}'");
  EXPECT_EQ(npy_refusal(npy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", 4)),
            "has 4 bytes of data; its dtype and shape need 8");
  EXPECT_EQ(npy_refusal(npy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", 12)),
            "has 12 bytes of data; its dtype and shape need 8");
  EXPECT_EQ(npy_refusal(npy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 8)}", 4)),
            "has 4 bytes of data; its dtype and shape need more than there can be");
  EXPECT_EQ(npy_refusal(npy_file("{'descr': '<f4', 'fortran_order': True, 'shape': (4, 4611686018427387904, 0)}", 0)),
            "has 0 bytes of data; its dtype and shape need more than there can be");
  EXPECT_EQ(npy_refusal(npy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", 4)),
            "header: expected a size before '999999999999'");
}

TEST(Npy, EveryTruncationIsRefused) {
  Bytes whole = npy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n", 8);
  ASSERT_TRUE(parse_npy(whole).ok());
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_EQ(parse_npy(ByteSpan(whole).first(size)).status().code(), Code::corrupt) << size;
}

TEST(Npy, WrittenTensorsReadBackAligned) {
  Bytes data{1, 2, 3, 4, 5, 6, 7, 8};
  for (auto [dtype, shape] :
       {std::pair(DType::i8, std::vector<int64_t>{2, 4}), {DType::f64, {}}, {DType::i16, {4, 1}}}) {
    Result<Bytes> written = write_npy({.name = "", .dtype = dtype, .shape = shape, .strides = {}, .bytes = data});
    ASSERT_TRUE(written.ok());
    EXPECT_EQ((written->size() - data.size()) % 64, 0u);
    Result<StoredTensor> back = parse_npy(*written);
    ASSERT_TRUE(back.ok()) << back.status().message();
    EXPECT_EQ(back->dtype, dtype);
    EXPECT_EQ(back->shape, shape);
    EXPECT_EQ(Bytes(back->bytes.begin(), back->bytes.end()), data);
  }
  EXPECT_EQ(
      write_npy({.name = "", .dtype = DType::bf16, .shape = {4}, .strides = {}, .bytes = data}).status().message(),
      "npy has no type for bf16; .safetensors has one");
}

}  // namespace
}  // namespace kiln
