// A library whose file differs from another in one byte, in the part that the loader maps as it is or in the part that
// it may write; and what it has in memory.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "jit/base/dynamic_library.h"
#include "jit/base/file.h"
#include "tests/paths.h"

namespace kiln::test {

enum class Mark : uint8_t { read_only, written };

// The file of marked_library.c, with its marks set to these.
inline Bytes marked_library(char read_only = '0', char written = '0') {
  Bytes file = *read_file(binary_dir + "/test_libraries/marked.so");
  for (const auto &[text, mark] : {std::pair<std::string_view, char>{"read-only mark: ", read_only},
                                   std::pair<std::string_view, char>{"written mark: ", written}}) {
    const auto found = std::ranges::search(file, text);
    EXPECT_NE(found.begin(), file.end()) << text;
    *found.end() = static_cast<uint8_t>(mark);
  }
  return file;
}

// What code that runs would see now.
inline std::string marks_of(const DynamicLibrary &library) {
  constexpr size_t read_only_at = 16, written_at = 8192 + 14;
  return {(*library.symbol<const volatile char *>("kiln_read_only_mark"))[read_only_at],
          (*library.symbol<const volatile char *>("kiln_written_mark"))[written_at]};
}

// Into the same file: who has it open or mapped sees it.
inline void put_in_place(const std::string &path, const Bytes &bytes) {
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary)
      .write(reinterpret_cast<const char *>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}
// As another file of the same name.
inline void put_another(const std::string &path, const Bytes &bytes) {
  EXPECT_TRUE(write_file(path + ".new", bytes).ok());
  std::filesystem::rename(path + ".new", path);
}

}  // namespace kiln::test
