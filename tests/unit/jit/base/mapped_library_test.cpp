#include "jit/base/mapped_library.h"

#include "tests/temporary_folder.h"
#include "tests/unit/jit/base/marked_library.h"

namespace kiln {
namespace {

using test::marked_library, test::marks_of;

class MappedLibrary : public testing::Test {
 protected:
  DynamicLibrary loaded() {
    EXPECT_TRUE(write_file(path_, marked_library()).ok());
    return *DynamicLibrary::open(path_);
  }
  const test::TemporaryFolder folder_;
  const std::string path_ = folder_.file("marked.so");
};

TEST_F(MappedLibrary, ThatOwnsItsPagesSeesNoChangeOfItsFile) {
  const DynamicLibrary library = loaded();
  ASSERT_TRUE(own_pages(library, marked_library()));
  test::put_in_place(path_, marked_library('1', '1'));
  EXPECT_EQ(marks_of(library), "00");
}

TEST_F(MappedLibrary, IsComparedWithTheFileWhereTheLoaderDoesNotWrite) {
  const DynamicLibrary library = loaded();
  EXPECT_FALSE(own_pages(library, marked_library('1', '0')));
  EXPECT_TRUE(own_pages(library, marked_library('0', '1'))) << "the loader may have written that";
  EXPECT_EQ(marks_of(library), "00");
}

TEST_F(MappedLibrary, IsNotThatOfAFileWithOtherSegments) {
  const DynamicLibrary library = loaded();
  Bytes other = marked_library();
  const size_t first_segment = 64, p_align = 48;  // of ELF's header, and in a program header
  other[first_segment + p_align] ^= 1;
  EXPECT_FALSE(own_pages(library, other));
  other.resize(100);
  EXPECT_FALSE(own_pages(library, other)) << "cut short in its program headers";
  EXPECT_FALSE(own_pages(library, {})) << "empty";
}

}  // namespace
}  // namespace kiln
