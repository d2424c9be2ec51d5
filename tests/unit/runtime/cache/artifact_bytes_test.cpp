#include "runtime/cache/artifact_bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "runtime/cache/artifact_sections.h"
#include "runtime/cache/record.h"
#include "tests/unit/runtime/example_artifact.h"

namespace kiln {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(Artifact, KeepsWhatWasEditedAndElseHasNoWordOfIt) {
  Artifact a = example::everything();
  const Bytes without = write_artifact(a);
  a.edited = {"graph.json", "kernels/1.json"};
  const Bytes with = write_artifact(a);
  EXPECT_GT(with.size(), without.size());
  const Result<Artifact> back = read_artifact(with);
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(back->edited, a.edited);
  EXPECT_TRUE(read_artifact(without)->edited.empty());
}

TEST(Artifact, ReadsBackWhatWasWritten) {
  const Artifact a = example::everything();
  const Bytes bytes = write_artifact(a);
  const Result<Artifact> back = read_artifact(bytes);
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(write_artifact(*back), bytes);
  EXPECT_EQ(back->graph_key, a.graph_key);
  EXPECT_EQ(back->components.size(), 2u);
  EXPECT_EQ(back->components[1].name, "target");
  EXPECT_EQ(back->components[0].text, "x + y");
  EXPECT_EQ(back->uses, a.uses);
  EXPECT_EQ(*back->images[1].code, *a.images[1].code);
  EXPECT_EQ(back->images[1].kernel_key, a.images[1].kernel_key);
  EXPECT_EQ(back->contracts[0].buffers[2].in_place, (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(back->constants, a.constants);
  EXPECT_EQ(back->graphs, a.graphs);
}

TEST(Artifact, ReadsItsIdentityAlone) {
  Bytes bytes = write_artifact(example::everything());
  bytes.back() ^= 1;  // in the last section, which is not looked at
  const Result<ArtifactIdentity> identity = read_identity(bytes, bytes.size());
  ASSERT_TRUE(identity.ok()) << identity.status().message();
  EXPECT_EQ(identity->build_id, example::build);
  EXPECT_EQ(identity->components[0].name, "graph");
}

TEST(Artifact, EveryFlippedByteIsAnError) {
  const Bytes bytes = write_artifact(example::everything());
  for (size_t at = 0; at < bytes.size(); ++at) {
    Bytes damaged = bytes;
    damaged[at] ^= 0x41;
    const Result<Artifact> result = read_artifact(damaged);
    ASSERT_FALSE(result.ok()) << "byte " << at;
    const bool is_version = at >= 8 && at < 12;
    EXPECT_EQ(result.status().code(), is_version ? Code::incompatible : Code::corrupt) << "byte " << at;
    EXPECT_THAT(result.status().message(), HasSubstr("offset")) << "byte " << at;
  }
}

TEST(Artifact, EveryTruncationAndExtensionIsAnError) {
  const Bytes bytes = write_artifact(example::everything());
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(read_artifact(ByteSpan(bytes).first(size)).ok()) << size;
  Bytes longer = bytes;
  longer.push_back(0);
  EXPECT_THAT(read_artifact(longer).status().message(), StartsWith("header at offset 16: "));
}

TEST(Artifact, NamesTheDamagedSectionAndItsOffset) {
  Bytes bytes = write_artifact(example::everything());
  bytes.back() ^= 1;
  EXPECT_THAT(read_artifact(bytes).status().message(),
              testing::MatchesRegex("section 'source' at offset [0-9]+: wrong checksum"));
}

// What checksums cannot catch: a file that somebody made.
TEST(Artifact, ChecksTheContentsOfSoundSections) {
  const auto message_after = [](void (*damage)(Artifact &)) {
    Artifact a = example::everything();
    damage(a);
    const Result<Artifact> result = read_artifact(write_artifact(a));
    return result.ok() ? "accepted" : result.status().message();
  };
  EXPECT_THAT(message_after([](Artifact &a) { a.images[0].entry_offset = 53; }),
              testing::MatchesRegex(
                  "section 'images' at offset [0-9]+: image 0: the entry is at 53, expected below its size 53"));
  EXPECT_THAT(message_after([](Artifact &a) { a.kernels.pop_back(); }), HasSubstr("2 kernels for 3 images"));
  EXPECT_THAT(message_after([](Artifact &a) { a.contracts.pop_back(); }), HasSubstr("2 contracts for 3 images"));
  EXPECT_THAT(message_after([](Artifact &a) { a.constants[0].shape = {5}; }),
              HasSubstr("section 'constants' at offset"));
  EXPECT_THAT(message_after([](Artifact &a) { a.constants[0].shape = {INT64_MAX, INT64_MAX}; }),
              HasSubstr("16 bytes do not fit its shape"));
  EXPECT_THAT(message_after([](Artifact &a) { a.constants[0].shape = {-1}; }), HasSubstr("do not fit its shape"));
  EXPECT_THAT(message_after([](Artifact &a) { a.plan.steps[0].kernel = 7; }),
              testing::MatchesRegex("section 'plan' at offset [0-9]+: step 0: kernel 7, expected below 3"));
}

TEST(Record, RefusesATableThatLies) {
  const auto message_after = [](void (*damage)(Bytes &)) {
    RecordWriter writer;
    writer.add(SectionKind::graph, Bytes(10, 'g'));
    writer.add(SectionKind::report, Bytes(10, 'r'));
    Bytes bytes = writer.finish(Digest());
    damage(bytes);
    // Makes the header's checksum right again, as its author would.
    Bytes covered(120);
    std::copy_n(bytes.begin(), 56, covered.begin());
    std::copy_n(bytes.begin() + 64, 64, covered.begin() + 56);
    const uint64_t checksum = checksum_of(covered);
    std::memcpy(bytes.data() + 56, &checksum, 8);
    const Result<RecordReader> result = RecordReader::open(bytes);
    return result.ok() ? "accepted" : result.status().message();
  };
  EXPECT_EQ(message_after([](Bytes &) {}), "accepted");
  EXPECT_THAT(message_after([](Bytes &b) {
                b[64] = 7;
                b[96] = 7;
              }),
              HasSubstr("section 'report'"));                                                               // twice
  EXPECT_THAT(message_after([](Bytes &b) { b[72 + 7] = 0xff; }), HasSubstr("section table at offset 64"));  // offset
  EXPECT_THAT(message_after([](Bytes &b) { b[80 + 7] = 0xff; }), HasSubstr("section table at offset 64"));  // size
  EXPECT_THAT(message_after([](Bytes &b) { b[104] -= 64; }), HasSubstr("section table at offset 96"));      // overlap
  EXPECT_THAT(message_after([](Bytes &b) { b[140] = 1; }),
              HasSubstr("from offset 138 to section 'report' at offset 192 are not zero"));  // between
  EXPECT_THAT(message_after([](Bytes &b) {
                b.resize(b.size() + 64);
                const uint64_t size = b.size();
                std::memcpy(b.data() + 16, &size, 8);
              }),
              HasSubstr("follow the last section"));
}

TEST(KernelImage, ReadsBackAndKnowsItsKey) {
  const Image image = example::add_kernel();
  const Bytes bytes = write_kernel_images({&image, 1});
  const Result<std::vector<Image>> back = read_kernel_images(bytes);
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(*back->front().code, *image.code);
  EXPECT_EQ(back->front().kernel_key, image.kernel_key);
  for (size_t at = 0; at < bytes.size(); ++at) {
    Bytes damaged = bytes;
    damaged[at] ^= 0x80;
    EXPECT_FALSE(read_kernel_images(damaged).ok()) << at;
  }
}

TEST(KernelImage, ImagesThatShareTheirCodeKeepItOnce) {
  std::vector<Image> images = {example::add_kernel(), example::add_kernel(), example::failing_kernel()};
  images[1].code = images[0].code;
  images[1].entry = "second";
  images[1].use.registers = 40;
  images[1].compiler = "a compiler";
  images[1].kernel_key = digest_of("second");
  const Bytes bytes = write_kernel_images(images);
  const Result<std::vector<Image>> back = read_kernel_images(bytes);
  ASSERT_TRUE(back.ok()) << back.status().message();
  ASSERT_EQ(back->size(), 3u);
  EXPECT_EQ((*back)[0].code, (*back)[1].code);
  EXPECT_NE((*back)[0].code, (*back)[2].code);
  EXPECT_EQ((*back)[1].entry, "second");
  EXPECT_EQ((*back)[1].use.registers, 40u);
  EXPECT_EQ((*back)[1].compiler, "a compiler");
  EXPECT_EQ(write_kernel_images(*back), bytes);
}

}  // namespace
}  // namespace kiln
