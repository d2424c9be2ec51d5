// Parameters that are bound to a part of a file.
#include <filesystem>
#include <fstream>
#include <functional>

#include "host.h"
#include "rows.h"
#include "tests/temporary_folder.h"

namespace {

class Source : public testing::Test {
 protected:
  Source() {
    std::vector<float> values(5000);  // more than a page before w
    values[4000] = 10, values[4001] = 20, values[4002] = 30;
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char *>(values.data()),
               static_cast<std::streamsize>(values.size() * sizeof(float)));
    source.struct_size = sizeof source;
    source.path = path.data();
    source.path_size = path.size();
    source.offset = 4000 * sizeof(float);
    type.ndim = 1;
    type.device = {kDLCPU, 0};
    type.dtype = {kDLFloat, 32, 1};
    type.shape = &two;
    const host::Graph graph = host::parse(context.get(), host::small_graph);
    executable = host::compile(context.get(), graph.get()).executable;
    kiln_call *made = nullptr;
    EXPECT_OK(kiln_call_create(executable.get(), &made));
    call.reset(made);
  }
  kiln_error *bind() { return kiln_call_bind_source(call.get(), 1, &type, &source); }
  void expect_sum(const host::Call &of, float first, float second) {
    const host::Array x({1, 2}, {1, 2}), y({1, 2}, {0, 0});
    const DLTensor *args[] = {&x.tensor, &y.tensor};
    ASSERT_OK(kiln_call_run(of.get(), args, 2, nullptr));
    EXPECT_EQ(y.values, (std::vector<float>{1 + first, 2 + second}));
  }

  const kiln::test::TemporaryFolder folder;
  const std::string path = folder.file("weights.bin");
  kiln_source source{};
  DLTensor type{};
  int64_t two = 2, three = 3;
  host::Context context = host::make_context();
  host::Executable executable;
  host::Call call;
};

TEST_F(Source, AParameterIsReadFromItsPlaceInTheFile) {
  ASSERT_OK(bind());
  expect_sum(call, 10, 20);
  source.offset += sizeof(float);
  ASSERT_OK(bind());
  expect_sum(call, 20, 30);
}

TEST_F(Source, TheFileMayGoAndClonesKeepIt) {
  ASSERT_OK(bind());
  kiln_call *made = nullptr;
  ASSERT_OK(kiln_call_clone(call.get(), &made));
  const host::Call clone(made);
  std::filesystem::remove(path);
  call = nullptr;
  expect_sum(clone, 10, 20);
}

TEST_F(Source, TheLastBytesOfTheFileAreBoundAndOneMoreIsNot) {
  source.offset = 4998 * sizeof(float);
  ASSERT_OK(bind());
  expect_sum(call, 0, 0);
  source.offset += sizeof(float);
  EXPECT_FAILS(bind(), KILN_IO, "parameter 'w': '" + path + "' has 20000 bytes, and not 8 from byte 19996 on");
  expect_sum(call, 0, 0);  // what was bound before
}

struct SourceRow : host::Row {
  uint32_t code;
  const char *words;
  std::function<void(kiln_source &, DLTensor &, uint32_t &slot)> change;
};

const std::vector<SourceRow> &source_rows() {
  static int64_t many[] = {INT64_MAX, 2}, reversed = -1;
  static const std::vector<SourceRow> table = {
      {"OffsetBehindTheEnd", KILN_IO, "has 20000 bytes, and not 8 from byte 20004 on",
       [](kiln_source &s, DLTensor &, uint32_t &) { s.offset = 20004; }},
      {"OffsetThatOverflows", KILN_IO, "has 20000 bytes",
       [](kiln_source &s, DLTensor &, uint32_t &) { s.offset = UINT64_MAX - 3; }},
      {"OffsetBetweenElements", KILN_INVALID_ARGUMENT,
       "parameter 'w': source->offset is 6, expected a multiple of its element's 4 bytes",
       [](kiln_source &s, DLTensor &, uint32_t &) { s.offset = 6; }},
      {"StridesBelowTheFile", KILN_INVALID_ARGUMENT, "source->offset is 0, and its strides reach 4 bytes below",
       [](kiln_source &s, DLTensor &t, uint32_t &) {
         s.offset = 0;
         t.strides = &reversed;
       }},
      {"SizeThatOverflows", KILN_TYPE_MISMATCH, "parameter 'w': its size overflows",
       [](kiln_source &, DLTensor &t, uint32_t &) {
         t.ndim = 2;
         t.shape = many;
       }},
      {"NoFile", KILN_IO, "parameter 'w': cannot open 'nowhere'",
       [](kiln_source &s, DLTensor &, uint32_t &) {
         s.path = "nowhere";
         s.path_size = 7;
       }},
      {"AFolder", KILN_IO, "not a regular file",
       [](kiln_source &s, DLTensor &, uint32_t &) {
         s.path = "/";
         s.path_size = 1;
       }},
      {"EmptyPath", KILN_INVALID_ARGUMENT, "source->path is empty",
       [](kiln_source &s, DLTensor &, uint32_t &) { s.path_size = 0; }},
      {"NulInPath", KILN_INVALID_ARGUMENT, "source->path has a NUL byte inside",
       [](kiln_source &s, DLTensor &, uint32_t &) {
         s.path = "a\0b";
         s.path_size = 3;
       }},
      {"AnInput", KILN_INVALID_ARGUMENT, "input 'x': a source is for parameters",
       [](kiln_source &, DLTensor &, uint32_t &slot) { slot = 0; }},
      {"AnOutput", KILN_INVALID_ARGUMENT, "output 'y': a source is for parameters",
       [](kiln_source &, DLTensor &, uint32_t &slot) { slot = 2; }},
      {"NoSlot", KILN_INVALID_ARGUMENT, "there is no slot 3; the signature has 3",
       [](kiln_source &, DLTensor &, uint32_t &slot) { slot = 3; }},
      {"AnotherDtype", KILN_TYPE_MISMATCH, "parameter 'w': dtype is i32, expected f32",
       [](kiln_source &, DLTensor &t, uint32_t &) { t.dtype.code = kDLInt; }},
      {"AnotherRank", KILN_TYPE_MISMATCH, "parameter 'w': rank is 0, expected 1",
       [](kiln_source &, DLTensor &t, uint32_t &) { t.ndim = 0; }},
      {"WithData", KILN_INVALID_ARGUMENT, "type->data is not NULL",
       [](kiln_source &s, DLTensor &t, uint32_t &) { t.data = &s; }},
      {"WithAByteOffset", KILN_INVALID_ARGUMENT, "its byte_offset is not 0",
       [](kiln_source &, DLTensor &t, uint32_t &) { t.byte_offset = 4; }},
      {"OnAGpu", KILN_INVALID_ARGUMENT, "type is on cuda:0, expected the host's memory",
       [](kiln_source &, DLTensor &t, uint32_t &) { t.device = {kDLCUDA, 0}; }},
      {"Reserved", KILN_INVALID_ARGUMENT, "source->reserved0 is not 0",
       [](kiln_source &s, DLTensor &, uint32_t &) { s.reserved0 = 1; }},
      {"WithoutItsSize", KILN_INVALID_ARGUMENT, "source->struct_size is 0",
       [](kiln_source &s, DLTensor &, uint32_t &) { s.struct_size = 0; }},
  };
  return table;
}

class SourceMisuse : public Source, public testing::WithParamInterface<SourceRow> {};
INSTANTIATE_TEST_SUITE_P(Rows, SourceMisuse, testing::ValuesIn(source_rows()), host::name_of_row);

TEST_P(SourceMisuse, IsRefusedAndWhatWasBoundStays) {
  ASSERT_OK(bind());
  kiln_source wrong = source;
  DLTensor wrong_type = type;
  uint32_t slot = 1;
  GetParam().change(wrong, wrong_type, slot);
  EXPECT_FAILS(kiln_call_bind_source(call.get(), slot, &wrong_type, &wrong), GetParam().code, GetParam().words);
  expect_sum(call, 10, 20);
}

TEST_F(Source, WithoutTypeOrSourceItIsRefused) {
  EXPECT_FAILS(kiln_call_bind_source(call.get(), 1, nullptr, &source), KILN_INVALID_ARGUMENT, "type is NULL");
  EXPECT_FAILS(kiln_call_bind_source(call.get(), 1, &type, nullptr), KILN_INVALID_ARGUMENT, "source is NULL");
  type.shape = &three;
  ASSERT_OK(bind());
  const host::Array x({1, 2}, {1, 2});
  const DLTensor *args[] = {&x.tensor};
  EXPECT_FAILS(kiln_call_run(call.get(), args, 1, nullptr), KILN_TYPE_MISMATCH, "parameter 'w'");
}

}  // namespace
