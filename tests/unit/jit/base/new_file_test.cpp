#include "jit/base/new_file.h"
#include "tests/temporary_folder.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

namespace kiln {
namespace {

namespace fs = std::filesystem;

constexpr uint8_t content[] = {'n', 'e', 'w'};

class NewFileTest : public testing::Test {
 protected:
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto &entry : fs::directory_iterator(folder_)) found.push_back(entry.path().filename().string());
    return found;
  }
  std::string text(const std::string &name) const {
    std::ifstream in(folder_ + "/" + name);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  // A child that dies in the middle of what it does.
  static void in_a_killed_child(const std::function<void()> &what) {
    const pid_t child = fork();
    if (child == 0) {
      what();
      _exit(0);  // no destructor runs
    }
    waitpid(child, nullptr, 0);
  }
  const test::TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path();
};

using Names = std::vector<std::string>;

TEST_F(NewFileTest, NothingIsLeftOfOneThatGotNoName) {
  NewFile(folder_, ".t-", 0600).write(content);
  EXPECT_EQ(names(), Names{});
  in_a_killed_child([&] {
    NewFile file(folder_, ".t-", 0600);
    (void)file.write(content);
    _exit(0);
  });
  EXPECT_EQ(names(), Names{}) << "the file system has no files without a name";
}

TEST_F(NewFileTest, LinksWhereNothingIsAndSaysSo) {
  NewFile file(folder_, ".t-", 0600), second(folder_, ".t-", 0600);
  EXPECT_TRUE(file.write(content) && second.write(content));
  EXPECT_TRUE(file.link(folder_ + "/a"));
  EXPECT_EQ(text("a"), "new");
  EXPECT_FALSE(second.link(folder_ + "/a"));
  EXPECT_EQ(errno, EEXIST);
}

TEST_F(NewFileTest, ReplacesAFileAndLeavesNothingBeside) {
  std::ofstream(folder_ + "/a") << "old";
  std::ofstream(folder_ + "/.t-a") << "of a writer that was killed between link and rename";
  NewFile file(folder_, ".t-", 0600);
  ASSERT_TRUE(file.write(content) && file.replace(folder_ + "/a"));
  EXPECT_EQ(text("a"), "new");
  EXPECT_EQ(names(), Names{"a"});
}

TEST_F(NewFileTest, WritersOfOneFileAllSucceedAndLeaveNothingBeside) {
  std::atomic<int> failures = 0;
  const auto write = [&](uint8_t letter) {
    for (int i = 0; i < 500; ++i) {
      NewFile file(folder_, ".t-", 0600);
      const uint8_t bytes[] = {letter, letter};
      failures += !(file.write(bytes) && file.replace(folder_ + "/a"));
    }
  };
  std::thread other(write, 'x'), third(write, 'y');
  write('z');
  other.join();
  third.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(names(), Names{"a"});
  EXPECT_TRUE(text("a") == "xx" || text("a") == "yy" || text("a") == "zz") << text("a");
}

TEST_F(NewFileTest, AFolderIsNotReplaced) {
  fs::create_directory(folder_ + "/a");
  NewFile file(folder_, ".t-", 0600);
  EXPECT_FALSE(file.write(content) && file.replace(folder_ + "/a"));
  EXPECT_EQ(errno, EISDIR);
  EXPECT_EQ(names(), Names{"a"});
}

TEST_F(NewFileTest, ItsFolderMustBeThere) {
  const NewFile file(folder_ + "/none", ".t-", 0600);
  EXPECT_FALSE(file.is_open());
  EXPECT_EQ(errno, ENOENT);
}

}  // namespace
}  // namespace kiln
