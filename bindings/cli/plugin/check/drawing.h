// What random graphs are drawn by.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace kiln::cli::plugin_check {

struct Random {
  uint64_t state;
  uint64_t next() {  // splitmix64
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  size_t below(size_t n) { return static_cast<size_t>(next() % n); }
};

// The names that the plugin's file has.
class Named {
 public:
  explicit Named(std::string_view bytes) : bytes_(bytes), is_rust_(bytes.find("RUST_BACKTRACE") != bytes.npos) {}
  // As a string of its own in the file, or at the end of one; in Rust, where strings stand without an end, anywhere.
  bool has(const std::string &name) {
    const auto [at, is_new] = found_.try_emplace(name);
    if (is_new) at->second = bytes_.find(is_rust_ ? name : name + '\0') != bytes_.npos;
    return at->second;
  }

 private:
  std::string_view bytes_;
  bool is_rust_;
  std::map<std::string, bool> found_;
};

}  // namespace kiln::cli::plugin_check
