// What a refusal must be, from a file beside the case: the code's name, then the message, whole.
#pragma once
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/abi/host.h"
#include "tests/paths.h"

namespace refused {

inline std::string name_of(uint32_t code) {
  static constexpr const char *names[] = {
      "OK",         "INVALID_ARGUMENT", "TYPE_MISMATCH", "UNKNOWN_NAME", "UNIMPLEMENTED", "INVARIANT",
      "NOT_CACHED", "CANCELLED",        "OUT_OF_MEMORY", "BUSY",         "PLUGIN_FAILED", "IO",
      "CORRUPT",    "INCOMPATIBLE",     "NO_DEVICE",     "OUT_OF_RANGE", "INTERNAL"};
  return code < std::size(names) ? names[code] : "code " + std::to_string(code);
}

inline std::filesystem::path folder() { return std::filesystem::path(kiln::test::source_dir) / "tests/error"; }

inline std::string read_file(const std::filesystem::path &path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

// Compares with CASE.txt, `name` being CASE's path below tests/error. On a difference the actual text is left in the
// build folder, below error/.
inline void expect(const host::Error &error, const std::string &name) {
  const std::string actual = name_of(error.code) + "\n" + error.message + "\n";
  const std::filesystem::path file = folder() / (name + ".txt");
  if (std::filesystem::exists(file) && read_file(file) == actual) return;
  const std::filesystem::path left = std::filesystem::path(kiln::test::binary_dir) / "error" / (name + ".txt");
  std::filesystem::create_directories(left.parent_path());
  std::ofstream(left) << actual;
  ADD_FAILURE() << file << " differs; the actual text is in " << left << ":\n" << actual;
}

// The same for a case in code.
#define EXPECT_REFUSED(error, expected_code, expected_message) \
  do {                                                         \
    const host::Error refused_ = (error);                      \
    EXPECT_EQ(refused::name_of(refused_.code), expected_code); \
    EXPECT_EQ(refused_.message, expected_message);             \
  } while (0)

}  // namespace refused
