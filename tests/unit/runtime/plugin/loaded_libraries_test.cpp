// What runs is what was digested, whatever becomes of the file between the two.
#include "runtime/plugin/loaded_libraries.h"

#include <functional>

#include "tests/temporary_folder.h"
#include "tests/unit/jit/base/marked_library.h"

namespace kiln {
namespace {

using test::marked_library, test::marks_of;

struct Change {
  const char *name;
  void (*put)(const std::string &path, const Bytes &bytes);
  char read_only, written;  // of the file that comes
};
void PrintTo(const Change &change, std::ostream *out) { *out << change.name; }

class LoadedLibrary : public testing::TestWithParam<Change> {
 protected:
  // The file as it is now.
  Result<DynamicLibrary> open() {
    KILN_ASSIGN(FileDescriptor file, open_file(path_));
    KILN_ASSIGN(const Bytes bytes, read_file(file, path_));
    return open(std::move(file), bytes);
  }
  Result<DynamicLibrary> open(FileDescriptor file, const Bytes &bytes) {
    KILN_ASSIGN(LoadedLibraries::Open opened, libraries_.open(path_, std::move(file), bytes, digest_of(bytes)));
    return opened.library;
  }
  LoadedLibraries libraries_;
  const test::TemporaryFolder folder_;
  const std::string path_ = folder_.file("marked.so");
  const Bytes before_ = marked_library(), after_ = marked_library(GetParam().read_only, GetParam().written);
};

TEST_P(LoadedLibrary, IsWhatWasReadWhereTheFileHasChangedSince) {
  ASSERT_TRUE(write_file(path_, before_).ok());
  Result<FileDescriptor> file = open_file(path_);
  ASSERT_TRUE(file.ok());
  GetParam().put(path_, after_);
  const Result<DynamicLibrary> library = open(std::move(*file), before_);
  ASSERT_TRUE(library.ok()) << library.status().message();
  EXPECT_EQ(marks_of(*library), "00");
}

TEST_P(LoadedLibrary, StaysWhatItWasWhereTheFileChangesAndIsNotTakenForWhatTheFileHoldsThen) {
  ASSERT_TRUE(write_file(path_, before_).ok());
  const Result<DynamicLibrary> library = open();
  ASSERT_TRUE(library.ok()) << library.status().message();
  GetParam().put(path_, after_);
  const Result<DynamicLibrary> next = open();
  ASSERT_TRUE(next.ok()) << next.status().message();
  EXPECT_EQ(marks_of(*next), (std::string{GetParam().read_only, GetParam().written}));
  EXPECT_EQ(marks_of(*library), "00");
  GetParam().put(path_, before_);
  EXPECT_EQ(open()->handle(), library->handle());
}

INSTANTIATE_TEST_SUITE_P(Changed, LoadedLibrary,
                         testing::Values(Change{"InPlaceWhereNobodyWrites", test::put_in_place, '1', '0'},
                                         Change{"InPlaceInItsData", test::put_in_place, '0', '1'},
                                         Change{"ByAnotherFile", test::put_another, '1', '0'},
                                         Change{"ByAnotherFileOfOtherData", test::put_another, '0', '1'}),
                         [](const auto &at) { return at.param.name; });

}  // namespace
}  // namespace kiln
