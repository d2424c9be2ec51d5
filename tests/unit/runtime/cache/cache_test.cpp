#include "runtime/cache/cache.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "runtime/cache/files.h"
#include "tests/child.h"
#include "tests/temporary_folder.h"
#include "tests/unit/runtime/example_artifact.h"

namespace kiln {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::StartsWith;

class CacheTest : public testing::Test {
 protected:
  Lookup find(Cache &cache, const Artifact &a) {
    return cache.find(a.graph_key, a.components, example::build, "x86-64");
  }
  // The one file with this extension.
  fs::path only_file(std::string_view extension) {
    fs::path found;
    for (const auto &entry : fs::recursive_directory_iterator(dir_))
      if (entry.path().extension() == extension) {
        EXPECT_TRUE(found.empty()) << found << " and " << entry.path();
        found = entry.path();
      }
    return found;
  }
  void flip_byte(const fs::path &path, std::streamoff at) {
    fs::permissions(path, fs::perms::owner_all);
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(at);
    const char byte = static_cast<char>(file.get());
    file.seekp(at);
    file.put(static_cast<char>(byte ^ 1));
  }
  size_t files_below(const fs::path &dir) {
    size_t count = 0;
    if (fs::exists(dir))
      for (const auto &entry : fs::recursive_directory_iterator(dir)) count += entry.is_regular_file();
    return count;
  }

  const test::TemporaryFolder folder_;
  const fs::path root_ = folder_.path(), dir_ = root_ / "deep" / "cache";
};

Artifact with_key(std::string_view name) {
  Artifact a = example::add(4);
  a.graph_key = digest_of(name);
  a.components = {{"graph", digest_of(name), ""}, {"target", digest_of("x86-64"), ""}, {"build", digest_of("b"), ""}};
  return a;
}

TEST_F(CacheTest, TakesNothingThatWasEdited) {
  Cache cache(dir_, 0);
  Artifact edited = example::add(Expr::symbol("n"));
  edited.edited = {"plan.json"};
  EXPECT_EQ(cache.publish(edited).message(), "an edited artifact is nobody's to find");
  EXPECT_EQ(find(cache, edited).outcome, Outcome::miss);
}

TEST_F(CacheTest, FindsWhatWasPublished) {
  Cache cache(dir_, 0);
  const Artifact a = example::everything();
  EXPECT_EQ(find(cache, a).outcome, Outcome::miss);
  EXPECT_FALSE(fs::exists(dir_)) << "a lookup writes nothing";
  ASSERT_TRUE(cache.publish(a).ok());
  const Lookup lookup = find(cache, a);
  EXPECT_EQ(lookup.outcome, Outcome::hit);
  EXPECT_EQ(lookup.reason, "hit");
  ASSERT_NE(lookup.artifact, nullptr);
  EXPECT_EQ(write_artifact(*lookup.artifact), write_artifact(a));
  EXPECT_EQ(cache.io_errors(), 0u);
}

TEST_F(CacheTest, FoldersAreTheOwnersAloneAndTagged) {
  Cache cache(dir_, 0);
  ASSERT_TRUE(cache.publish(example::add(4)).ok());
  for (const auto &entry : fs::recursive_directory_iterator(root_)) {
    struct stat info{};
    ASSERT_EQ(stat(entry.path().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, entry.is_directory() ? 0700u : 0600u) << entry.path();
  }
  std::ifstream tag(dir_ / "CACHEDIR.TAG");
  std::string line;
  std::getline(tag, line);
  EXPECT_EQ(line, "Signature: 8a477f597d28d172789f06886806bc55");
}

TEST_F(CacheTest, PublishingTwiceKeepsTheFirst) {
  Cache cache(dir_, 0);
  Artifact a = example::add(4);
  ASSERT_TRUE(cache.publish(a).ok());
  a.report_json = "another";
  ASSERT_TRUE(cache.publish(a).ok());
  EXPECT_EQ(find(cache, a).artifact->report_json, "{}");
  EXPECT_EQ(files_below(dir_ / "a"), 1u) << "nothing temporary is left";
}

TEST_F(CacheTest, AMissSaysWhatDiffersFromTheNearestRecord) {
  Cache cache(dir_, 0);
  EXPECT_EQ(find(cache, with_key("first")).reason, "no record");
  ASSERT_TRUE(cache.publish(with_key("first")).ok());
  ASSERT_TRUE(cache.publish(with_key("second")).ok());
  Artifact wanted = with_key("first");
  wanted.graph_key = digest_of("other");
  wanted.components[1].digest = digest_of("v4");
  EXPECT_EQ(find(cache, wanted).reason, "component 'target' differs from the nearest record");
  wanted.components.push_back({"pass fuse_rms_norm", digest_of("1.0"), ""});
  EXPECT_EQ(find(cache, wanted).reason, "components 'target', 'pass fuse_rms_norm' differ from the nearest record");
  EXPECT_EQ(find(cache, wanted).outcome, Outcome::miss);
}

TEST_F(CacheTest, ADamagedRecordIsRejectedAndQuarantinedAndCanBePublishedAgain) {
  Cache cache(dir_, 0);
  const Artifact a = example::everything();
  ASSERT_TRUE(cache.publish(a).ok());
  flip_byte(only_file(".kiln"), 400);
  EXPECT_EQ(cache.verify()->size(), 1u);
  Lookup lookup = find(cache, a);
  EXPECT_EQ(lookup.outcome, Outcome::reject);
  EXPECT_THAT(lookup.reason, StartsWith("the record is damaged: section '"));
  EXPECT_EQ(lookup.artifact, nullptr);
  EXPECT_EQ(files_below(dir_ / "quarantine"), 1u);
  EXPECT_EQ(find(cache, a).outcome, Outcome::miss);
  ASSERT_TRUE(cache.publish(a).ok());
  EXPECT_EQ(find(cache, a).outcome, Outcome::hit);
}

TEST_F(CacheTest, ARecordThatDoesNotLoadCanBeReplaced) {
  Cache cache(dir_, 0);
  Artifact a = example::add(4);
  ASSERT_TRUE(cache.publish(a).ok());
  cache.reject(find(cache, a));
  EXPECT_EQ(find(cache, a).outcome, Outcome::miss);
  a.report_json = "another";
  ASSERT_TRUE(cache.publish(a).ok());
  EXPECT_EQ(find(cache, a).artifact->report_json, "another");
}

TEST_F(CacheTest, ATruncatedOrEmptyRecordIsRejected) {
  Cache cache(dir_, 0);
  const Artifact a = example::everything();
  for (uintmax_t size : {0u, 10u, 64u, 200u}) {
    ASSERT_TRUE(cache.publish(a).ok());
    fs::resize_file(only_file(".kiln"), size);
    EXPECT_EQ(find(cache, a).outcome, Outcome::reject) << size;
  }
}

// Sparse, so that no disk is filled; nobody has memory for what its size says.
constexpr uintmax_t tebibyte = uintmax_t{1} << 40;

TEST_F(CacheTest, ARecordOfAnotherSizeThanItSaysIsRejectedUnread) {
  Cache cache(dir_, 0);
  const Artifact a = example::everything();
  const Image kernel = example::add_kernel();
  ASSERT_TRUE(cache.publish(a).ok());
  ASSERT_TRUE(cache.publish_kernels(std::vector{kernel}).ok());
  const std::string size = std::to_string(write_artifact(a).size());
  fs::resize_file(only_file(".kiln"), tebibyte);
  fs::resize_file(only_file(".kimg"), tebibyte);
  const auto problems = cache.verify();
  ASSERT_TRUE(problems.ok()) << problems.status().message();
  ASSERT_EQ(problems->size(), 2u);
  EXPECT_EQ((*problems)[0].what, "header at offset 16: 1099511627776 bytes, expected " + size);
  const Lookup lookup = find(cache, a);
  EXPECT_EQ(lookup.outcome, Outcome::reject);
  EXPECT_EQ(lookup.reason, "the record is damaged: " + (*problems)[0].what);
  EXPECT_EQ(cache.find_kernel(kernel.kernel_key), std::nullopt);
  ASSERT_TRUE(cache.publish(a).ok());
  ASSERT_TRUE(cache.publish_kernels(std::vector{kernel}).ok());
  EXPECT_EQ(find(cache, a).outcome, Outcome::hit);
  EXPECT_NE(cache.find_kernel(kernel.kernel_key), std::nullopt);
  EXPECT_EQ(cache.io_errors(), 0u) << "damage is none";
}

TEST_F(CacheTest, AMissReadsOfOtherRecordsTheirComponentsAlone) {
  Cache cache(dir_, 0);
  ASSERT_TRUE(cache.publish(with_key("first")).ok());
  const RecordFile record = open_record(only_file(".kiln"), SectionKind::components);
  EXPECT_LT(record.bytes.size(), record.length);
  EXPECT_EQ(record.length, fs::file_size(only_file(".kiln")));
  // Beside it, and of no graph's: what is too large for memory, and what is no record.
  fs::create_directories(dir_ / "a" / "X");
  std::ofstream(dir_ / "a" / "X" / "foo.kiln") << "KILNREC";
  fs::resize_file(dir_ / "a" / "X" / "foo.kiln", tebibyte);
  Artifact wanted = with_key("first");
  wanted.graph_key = digest_of("other");
  wanted.components[1].digest = digest_of("v4");
  EXPECT_EQ(find(cache, wanted).reason, "component 'target' differs from the nearest record");
}

TEST_F(CacheTest, WhatIsLargerThanTheLimitIsEvictedFirst) {
  Cache cache(dir_, 0);
  ASSERT_TRUE(cache.publish(with_key("a")).ok());
  const fs::path large = only_file(".kiln");
  ASSERT_TRUE(cache.publish(with_key("b")).ok());
  fs::resize_file(large, tebibyte);  // which is the newest by that
  ASSERT_TRUE(cache.evict().ok());
  EXPECT_FALSE(fs::exists(large));
  EXPECT_EQ(find(cache, with_key("b")).outcome, Outcome::hit);
}

TEST_F(CacheTest, AFolderThatNoWriterMarkedIsNotCleared) {
  Cache cache(dir_, 0);
  EXPECT_EQ(*cache.clear(), 0u) << "it is not there";
  fs::create_directories(dir_ / "a" / "notes");
  std::ofstream(dir_ / ".tmp-notes") << "a person's";
  for (const char *tag : {"", "Signature: 8a477f597d28d172789f06886806bc55\n# of another program\n"}) {
    if (*tag) std::ofstream(dir_ / "CACHEDIR.TAG") << tag;
    const size_t files = files_below(dir_);
    EXPECT_EQ(cache.clear().status().message(), dir_.string() +
                                                    " is no cache of Kiln's: it has no CACHEDIR.TAG that says so; "
                                                    "nothing is removed");
    EXPECT_EQ(files_below(dir_), files);
  }
  EXPECT_TRUE(fs::exists(dir_ / "a" / "notes"));
}

TEST_F(CacheTest, ARecordUnderAnotherKeysNameIsRejected) {
  Cache cache(dir_, 0);
  ASSERT_TRUE(cache.publish(with_key("a")).ok());
  const fs::path from = only_file(".kiln"), folder = dir_ / "a" / digest_of("b").hex();
  fs::create_directory(folder);
  fs::copy_file(from, folder / from.filename());
  const Lookup lookup = find(cache, with_key("b"));
  EXPECT_EQ(lookup.outcome, Outcome::reject);
  EXPECT_THAT(lookup.reason, HasSubstr("the key is not the file's"));
}

TEST_F(CacheTest, ARecordOfAnotherBuildOrTargetIsAMissThatNamesIt) {
  Cache cache(dir_, 0);
  const Artifact a = example::add(4);
  ASSERT_TRUE(cache.publish(a).ok());
  Lookup lookup = cache.find(a.graph_key, a.components, "another build", "x86-64");
  EXPECT_EQ(lookup.outcome, Outcome::miss);
  EXPECT_EQ(lookup.reason, "component 'build' differs from the record");
  ASSERT_TRUE(cache.publish(a).ok());
  lookup = cache.find(a.graph_key, a.components, example::build, "v4");
  EXPECT_EQ(lookup.reason, "component 'target' differs from the record");
}

TEST_F(CacheTest, KernelImagesHaveTheirOwnFiles) {
  Cache cache(dir_, 0);
  const Image image = example::add_kernel();
  EXPECT_FALSE(cache.find_kernel(image.kernel_key).has_value());
  ASSERT_TRUE(cache.publish_kernels({&image, 1}).ok());
  const auto found = cache.find_kernel(image.kernel_key);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(*found->code, *image.code);
  flip_byte(only_file(".kimg"), 200);
  EXPECT_FALSE(cache.find_kernel(image.kernel_key).has_value());
  EXPECT_EQ(files_below(dir_ / "quarantine"), 1u);
}

TEST_F(CacheTest, ImagesThatShareTheirCodeAreFoundUnderEachKey) {
  Cache cache(dir_, 0);
  std::vector<Image> images = {example::add_kernel(), example::add_kernel()};
  images[1].code = images[0].code;
  images[1].entry = "second";
  images[1].kernel_key = digest_of("second");
  ASSERT_TRUE(cache.publish_kernels(images).ok());
  for (const Image &image : images) {
    const auto found = cache.find_kernel(image.kernel_key);
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->entry, image.entry);
    EXPECT_EQ(*found->code, *image.code);
  }
  EXPECT_EQ(cache.list()->size(), 2u);
  EXPECT_TRUE(cache.verify()->empty());
  ASSERT_TRUE(cache.publish_kernels(images).ok()) << "again";
}

TEST_F(CacheTest, ListsVerifiesAndClears) {
  Cache cache(dir_, 0);
  EXPECT_TRUE(cache.list()->empty());
  ASSERT_TRUE(cache.publish(with_key("a")).ok());
  ASSERT_TRUE(cache.publish_kernels(std::vector{example::add_kernel()}).ok());
  std::ofstream(dir_ / "a" / "notes.txt") << "a person's";
  const auto entries = cache.list();
  ASSERT_TRUE(entries.ok());
  ASSERT_EQ(entries->size(), 2u);
  EXPECT_EQ((*entries)[0].kind, "artifact");
  EXPECT_EQ((*entries)[0].key, digest_of("a").hex());
  EXPECT_EQ((*entries)[0].size_bytes, write_artifact(with_key("a")).size());
  EXPECT_EQ((*entries)[1].kind, "kernel");
  EXPECT_EQ((*entries)[1].key, example::add_kernel().kernel_key.hex());
  EXPECT_TRUE(cache.verify()->empty());
  EXPECT_EQ(*cache.clear(), 2u);
  EXPECT_TRUE(cache.list()->empty());
  EXPECT_TRUE(fs::exists(dir_ / "a" / "notes.txt")) << "only the cache's own files are removed";
}

TEST_F(CacheTest, EvictsTheOldestWhenItGrowsTooLarge) {
  const uint64_t size = write_artifact(with_key("0")).size();
  Cache cache(dir_, size * 4 + size / 2);
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(cache.publish(with_key(std::to_string(i))).ok());
    const fs::path folder = dir_ / "a" / digest_of(std::to_string(i)).hex();
    const timespec times[2] = {{1000 + i, 0}, {1000 + i, 0}};
    for (const auto &entry : fs::directory_iterator(folder)) utimensat(AT_FDCWD, entry.path().c_str(), times, 0);
  }
  EXPECT_EQ(find(cache, with_key("0")).outcome, Outcome::hit) << "and is young again";
  ASSERT_TRUE(cache.publish(with_key("4")).ok());
  EXPECT_EQ(find(cache, with_key("0")).outcome, Outcome::hit);
  EXPECT_EQ(find(cache, with_key("1")).outcome, Outcome::miss);
  EXPECT_EQ(find(cache, with_key("4")).outcome, Outcome::hit);
  EXPECT_LE(files_below(dir_ / "a") * size, cache.max_bytes());
  EXPECT_FALSE(fs::exists(dir_ / "a" / digest_of("1").hex())) << "its folder goes with it";
}

TEST_F(CacheTest, EvictsWhatIsDatedInTheFutureBeforeWhatIsNew) {
  const uint64_t size = write_artifact(with_key("0")).size();
  Cache cache(dir_, size * 4 + size / 2);
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(cache.publish(with_key(std::to_string(i))).ok());
    const timespec future[2] = {{1LL << 33, 0}, {1LL << 33, 0}};
    const fs::path folder = dir_ / "a" / digest_of(std::to_string(i)).hex();
    for (const auto &entry : fs::directory_iterator(folder)) utimensat(AT_FDCWD, entry.path().c_str(), future, 0);
  }
  for (const char *key : {"4", "5", "6"}) ASSERT_TRUE(cache.publish(with_key(key)).ok());
  for (const char *key : {"4", "5", "6"}) EXPECT_EQ(find(cache, with_key(key)).outcome, Outcome::hit) << key;
}

TEST_F(CacheTest, EvictionRemovesWhatDeadWritersLeft) {
  Cache cache(dir_, 0);
  ASSERT_TRUE(cache.publish(with_key("a")).ok());
  const fs::path record = only_file(".kiln"), empty = dir_ / "a" / digest_of("b").hex();
  for (const fs::path &folder : {record.parent_path(), dir_}) {
    std::ofstream(folder / ".tmp-1-1-1") << "old";
    std::ofstream(folder / ".tmp-1-1-2") << "dated in the future";
    const timespec old[2] = {{1000, 0}, {1000, 0}}, future[2] = {{1LL << 33, 0}, {1LL << 33, 0}};
    utimensat(AT_FDCWD, (folder / ".tmp-1-1-1").c_str(), old, 0);
    utimensat(AT_FDCWD, (folder / ".tmp-1-1-2").c_str(), future, 0);
  }
  fs::create_directory(empty);
  ASSERT_TRUE(cache.evict().ok());
  EXPECT_EQ(files_below(dir_), 3u) << "the record, the ledger and the tag";
  EXPECT_FALSE(fs::exists(empty));
  EXPECT_EQ(find(cache, with_key("a")).outcome, Outcome::hit);
}

// On the caller's thread, which blocks no signals: SIGXFSZ would end the process.
TEST_F(CacheTest, WhereNoFileMayGrowWritesAreErrors) {
  Cache cache(dir_, 0);
  ASSERT_TRUE(cache.publish(with_key("a")).ok());
  test::in_child([&] {
    const rlimit none{0, 0};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &none), 0);
    const std::string no_note = "cannot write " + (dir_ / "ledger").string();
    EXPECT_THAT(cache.evict().message(), StartsWith(no_note));
    EXPECT_THAT(cache.clear().status().message(), StartsWith(no_note));
    EXPECT_THAT(cache.publish(with_key("b")).message(), StartsWith(no_note));
  });
}

// What lies in a record's place, and what the lookup says of it.
struct Wrong {
  const char *name;
  std::function<void(const fs::path &place, const fs::path &record)> put;
  const char *reason;
};
void PrintTo(const Wrong &wrong, std::ostream *out) { *out << wrong.name; }

class WrongRecord : public CacheTest, public testing::WithParamInterface<Wrong> {};

TEST_P(WrongRecord, IsToldAndPutAsideAndMadeAgain) {
  Cache cache(dir_, 0);
  const Artifact a = with_key("a");
  ASSERT_TRUE(cache.publish(a).ok());
  const fs::path record = only_file(".kiln");
  for (const bool looked_up : {true, false}) {
    fs::rename(record, root_ / "record");
    GetParam().put(record, root_ / "record");
    if (looked_up) {
      const Lookup lookup = find(cache, a);
      EXPECT_EQ(lookup.outcome, Outcome::reject);
      EXPECT_EQ(lookup.reason, GetParam().reason);
      EXPECT_EQ(cache.last_io_error(), lookup.reason);
      EXPECT_EQ(find(cache, a).outcome, Outcome::miss);
    }
    ASSERT_TRUE(cache.publish(a).ok());
    EXPECT_EQ(find(cache, a).outcome, Outcome::hit);
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_ / "quarantine"), fs::directory_iterator()), 2);
}
INSTANTIATE_TEST_SUITE_P(
    Is, WrongRecord,
    testing::Values(Wrong{"AFolder",
                          [](const fs::path &path, const fs::path &) {
                            fs::create_directory(path);
                            std::ofstream(path / "thesis.txt") << "years of work";
                          },
                          "a folder is in the record's place"},
                    Wrong{"ADanglingLink",
                          [](const fs::path &path, const fs::path &) { fs::create_symlink("/none", path); },
                          "a link is in the record's place"},
                    Wrong{"ALinkToTheRecord",
                          [](const fs::path &path, const fs::path &record) { fs::create_symlink(record, path); },
                          "a link is in the record's place"},
                    Wrong{"AFifo",
                          [](const fs::path &path, const fs::path &) { ASSERT_EQ(mkfifo(path.c_str(), 0600), 0); },
                          "what is in the record's place is no regular file"}),
    [](const auto &at) { return at.param.name; });

TEST_F(CacheTest, AnUnreadableRecordIsToldAndPutAside) {
  Cache cache(dir_, 0);
  ASSERT_TRUE(cache.publish(with_key("a")).ok());
  fs::permissions(root_, fs::perms(0755));
  fs::permissions(only_file(".kiln"), fs::perms::none);
  if (geteuid() == 0) {  // who reads everything: then as nobody, to whom it all belongs
    for (const auto &entry : fs::recursive_directory_iterator(root_))
      ASSERT_EQ(lchown(entry.path().c_str(), 65534, 65534), 0);
    ASSERT_EQ(lchown(root_.c_str(), 65534, 65534), 0);
    ASSERT_EQ(seteuid(65534), 0);
  }
  const Lookup lookup = find(cache, with_key("a"));
  const Status published = cache.publish(with_key("a"));
  const Outcome after = find(cache, with_key("a")).outcome;
  ASSERT_EQ(getuid() == 0 ? seteuid(0) : 0, 0);
  EXPECT_EQ(lookup.outcome, Outcome::reject);
  EXPECT_EQ(lookup.reason, "the record cannot be used: Permission denied");
  EXPECT_TRUE(published.ok()) << published.message();
  EXPECT_EQ(after, Outcome::hit);
}

TEST_F(CacheTest, AFileInThePlaceOfAKeysFolderIsPutAside) {
  Cache cache(dir_, 0);
  const Artifact a = with_key("a");
  fs::create_directories(dir_ / "a");
  std::ofstream(dir_ / "a" / digest_of("a").hex()) << "in the way";
  ASSERT_TRUE(cache.publish(a).ok());
  EXPECT_EQ(find(cache, a).outcome, Outcome::hit);
}

TEST_F(CacheTest, WhatWasPublishedSinceIsNotPutAside) {
  fs::create_directories(dir_);
  const std::string place = dir_ / "record", to = dir_ / "aside";
  std::ofstream(place) << "damaged";
  RecordFile damaged = open_record(place);
  ASSERT_EQ(damaged.state, RecordFile::State::damaged);
  fs::remove(place);  // by another reader, after which another writer publishes
  std::ofstream(place) << "good";
  EXPECT_TRUE(set_aside(place, damaged.identity, to).ok());
  EXPECT_TRUE(fs::exists(place));
  EXPECT_FALSE(fs::exists(to));
  EXPECT_TRUE(set_aside(place, open_record(place).identity, to).ok());
  EXPECT_FALSE(fs::exists(place));
}

TEST_F(CacheTest, AFolderThatCannotBeMadeIsAnErrorThatIsCounted) {
  std::ofstream(root_ / "deep") << "a file where a folder should be";
  Cache cache(dir_, 0);
  const Artifact a = example::add(4);
  EXPECT_EQ(find(cache, a).outcome, Outcome::miss);
  const Status status = cache.publish(a);
  EXPECT_EQ(status.code(), Code::io);
  EXPECT_THAT(status.message(), HasSubstr("Not a directory"));
  EXPECT_GE(cache.io_errors(), 1u);
  EXPECT_EQ(cache.last_io_error(), status.message());
}

TEST_F(CacheTest, AnUnwritableFolderIsAnErrorThatIsCounted) {
  fs::create_directories(dir_);
  fs::permissions(root_, fs::perms(0755));
  fs::permissions(dir_, fs::perms(0555));
  Cache cache(dir_, 0);
  const bool root = geteuid() == 0;  // who writes everywhere: then as nobody
  ASSERT_EQ(root ? seteuid(65534) : 0, 0);
  const Status status = cache.publish(example::add(4));
  const Lookup lookup = find(cache, example::add(4));
  ASSERT_EQ(root ? seteuid(0) : 0, 0);
  EXPECT_THAT(status.message(), HasSubstr("Permission denied"));
  EXPECT_EQ(cache.io_errors(), 1u);
  EXPECT_EQ(lookup.outcome, Outcome::miss);
  fs::permissions(dir_, fs::perms::owner_all);
}

TEST_F(CacheTest, AFullDiskIsAnErrorAndLeavesNothingBehind) {
  Cache cache(dir_, 0);
  ASSERT_TRUE(cache.publish(with_key("a")).ok());
  const Artifact large = [] {
    Artifact a = with_key("large");
    a.report_json.assign(1 << 20, ' ');
    return a;
  }();
  // A limit on the size of files fails a write half-way, as a full disk does.
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{256 << 10, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const Status status = cache.publish(large);
  setrlimit(RLIMIT_FSIZE, &before);

  EXPECT_EQ(status.code(), Code::io);
  EXPECT_EQ(cache.io_errors(), 1u);
  EXPECT_EQ(find(cache, large).outcome, Outcome::miss);
  EXPECT_EQ(find(cache, with_key("a")).outcome, Outcome::hit);
  EXPECT_EQ(files_below(dir_ / "a"), 1u);
}

TEST_F(CacheTest, WithoutAFolderEverythingMisses) {
  setenv("KILN_CACHE", "off", 1);
  Cache cache("", 0);
  unsetenv("KILN_CACHE");
  EXPECT_EQ(cache.dir(), "");
  EXPECT_EQ(find(cache, example::add(4)).reason, "no cache folder");
  EXPECT_EQ(cache.publish(example::add(4)).code(), Code::io);
}

TEST_F(CacheTest, TheDefaultFolderFollowsTheEnvironment) {
  setenv("KILN_CACHE", "/k", 1);
  EXPECT_EQ(Cache("", 0).dir(), "/k");
  unsetenv("KILN_CACHE");
  setenv("XDG_CACHE_HOME", "/x", 1);
  EXPECT_EQ(Cache("", 0).dir(), "/x/kiln");
  setenv("XDG_CACHE_HOME", "relative", 1);
  setenv("HOME", "/h", 1);
  EXPECT_EQ(Cache("", 0).dir(), "/h/.cache/kiln");
  unsetenv("XDG_CACHE_HOME");
}

TEST_F(CacheTest, ManyThreadsPublishAndFindAtOnce) {
  const uint64_t size = write_artifact(with_key("0")).size();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      Cache cache(dir_, size * 6);  // as of several processes; some of it is evicted all the time
      for (int i = 0; i < 100; ++i) {
        const Artifact a = with_key(std::to_string((i + t) % 10));
        wrong += !cache.publish(a).ok();
        const Lookup lookup = find(cache, a);
        wrong += lookup.outcome == Outcome::reject || (lookup.artifact && lookup.artifact->graph_key != a.graph_key);
      }
      wrong += cache.io_errors() != 0;
    });
  for (std::thread &thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(Cache(dir_, 0).verify()->empty());
  EXPECT_EQ(files_below(dir_ / "quarantine"), 0u);
}

}  // namespace
}  // namespace kiln
