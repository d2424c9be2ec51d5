// Tables that no save writes: what is wrong with them is told before anything of them is used. Their checksums are
// right.
#include "runtime/exec/weights.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "runtime/cache/weights.h"
#include "tests/temporary_folder.h"
#include "tests/unit/runtime/exec/example_call.h"

namespace kiln {
namespace {

using testing::HasSubstr;

// Parameter 'w' of example::everything(), and 64 bytes of data.
WeightsImage image() {
  static const float values[16] = {1, 2, 3, 4};
  WeightsImage image;
  image.table.parameters = {{0, true, DType::f32, {4}, {1}, 0, 16}};
  image.pieces = {{0, {reinterpret_cast<const uint8_t *>(values), sizeof values}}};
  image.size = sizeof values;
  return image;
}

Result<std::shared_ptr<const Weights>> opened(const Artifact &artifact, const WeightsImage &image) {
  const test::TemporaryFolder folder;
  Bytes bytes = write_artifact(artifact, artifact.entries, image);
  for_each_block(image.pieces, image.size, [&](ByteSpan block) {
    bytes.insert(bytes.end(), block.begin(), block.end());
    return true;
  });
  const std::string path = folder.file("model.kiln");
  KILN_TRY(write_file(path, bytes));
  KILN_ASSIGN(MappedFile mapped, MappedFile::open(path));
  return Weights::open(std::make_shared<const MappedFile>(std::move(mapped)), path);
}

// Of the example with this image.
std::string refusal(const WeightsImage &image, const Artifact &artifact = example::everything()) {
  const auto weights = opened(artifact, image);
  if (!weights.ok()) {
    EXPECT_EQ(weights.status().code(), Code::corrupt);
    return weights.status().message();
  }
  const Status status = check_weights(**weights, *example::load(artifact));
  EXPECT_TRUE(status.ok() || status.code() == Code::corrupt);
  return status.ok() ? "" : status.message();
}

TEST(Weights, WhatIsWrittenIsReadAndVerified) {
  EXPECT_EQ(refusal(image()), "");
  const auto weights = opened(example::everything(), image());
  ASSERT_TRUE(weights.ok()) << weights.status().message();
  EXPECT_EQ((*weights)->bytes().size(), 64u);
  const std::atomic<bool> never = false;
  EXPECT_TRUE((*weights)->verify(never).ok());
  EXPECT_TRUE((*weights)->is_verified());
}

TEST(Weights, DataOutsideOfTheFileIsRefused) {
  WeightsImage far = image();
  far.table.parameters[0].offset = 64;
  EXPECT_THAT(refusal(far), HasSubstr("section 'weights' at offset "));
  EXPECT_THAT(refusal(far), HasSubstr(": entry 0 has 16 bytes at 64 of 64"));
  far = image();
  far.table.parameters[0].offset = UINT64_MAX - 63;
  EXPECT_THAT(refusal(far), HasSubstr(" of 64"));
  far = image();
  far.table.parameters[0].offset = 4;
  EXPECT_THAT(refusal(far), HasSubstr("entry 0 has 16 bytes at 4 of 64"));
  far = image();
  far.table.parts = {{Digest(), {0}, 0, 65}};
  EXPECT_THAT(refusal(far), HasSubstr("entry 1 has 65 bytes at 0 of 64"));
}

TEST(Weights, ATableOfAnotherProgramIsRefused) {
  const auto changed = [](auto change) {
    WeightsImage other = image();
    change(other.table.parameters[0]);
    return refusal(other);
  };
  using Parameter = WeightsTable::Parameter;
  EXPECT_EQ(changed([](Parameter &p) { p.number = 1; }),
            "section 'weights': parameter 1: it is there twice, or the program has none");
  EXPECT_THAT(changed([](Parameter &p) { p.dtype = DType::i32; }), HasSubstr("of another type than the program's"));
  EXPECT_THAT(changed([](Parameter &p) { p.dims = p.strides = {2, 2}; }), HasSubstr("of another type"));
  EXPECT_THAT(changed([](Parameter &p) { p.dims = {5}; }), HasSubstr("its bytes are not those of its type"));
  EXPECT_THAT(changed([](Parameter &p) { p.dims = {-1}; }), HasSubstr("its bytes are not"));
  EXPECT_THAT(changed([](Parameter &p) { p.strides = {INT64_MAX}; }), HasSubstr("its bytes are not"));
  EXPECT_THAT(changed([](Parameter &p) { p.strides.clear(); }), HasSubstr("expected parameters and parts"));
  WeightsImage twice = image();
  twice.table.parameters.push_back(twice.table.parameters[0]);
  EXPECT_THAT(refusal(twice), HasSubstr("it is there twice"));
}

TEST(Weights, AParameterThatACallReadsHasValues) {
  WeightsImage without = image();
  without.table.parameters[0].has_values = false;
  EXPECT_EQ(refusal(without), "") << "it is read to be prepared, alone";
  Artifact reads = example::everything();
  reads.plan.steps[1].slots[1] = 2;  // the parameter, in place of what is prepared of it
  EXPECT_THAT(refusal(without, reads), HasSubstr("it has no values, which the program reads"));
  EXPECT_EQ(refusal(image(), reads), "");
}

TEST(Weights, BlocksInWhichPiecesMeetArePutTogether) {
  constexpr uint64_t block = 1 << 20;
  const Bytes a(2 * block + 100, 1), b(50, 2);
  const PlacedBytes pieces[] = {{0, a}, {2 * block + 128, b}};
  std::vector<Bytes> blocks;
  for_each_block(pieces, 2 * block + 192, [&](ByteSpan bytes) {
    blocks.emplace_back(bytes.begin(), bytes.end());
    return true;
  });
  ASSERT_EQ(blocks.size(), 3u);
  EXPECT_EQ(blocks[0], Bytes(block, 1));
  EXPECT_EQ(blocks[1], Bytes(block, 1));
  Bytes last(192);
  std::fill_n(last.begin(), 100, 1);
  std::fill_n(last.begin() + 128, 50, 2);
  EXPECT_EQ(blocks[2], last);
}

}  // namespace
}  // namespace kiln
