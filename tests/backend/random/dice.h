// Random choices that are the same on every machine: std's distributions differ between standard libraries.
#pragma once
#include <cstdint>
#include <random>

namespace kiln::testing {

class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed * 0x9e3779b97f4a7c15 + 1) {}
  int64_t below(int64_t count) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(count)); }
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }  // both included
  double unit() { return static_cast<double>(random_() >> 11) * 0x1p-53; }            // [0, 1)
  bool chance(double probability) { return unit() < probability; }
  // One of a list; it is not empty.
  template <class List>
  auto &pick(List &&list) {
    return list[static_cast<size_t>(below(static_cast<int64_t>(list.size())))];
  }
  std::mt19937_64 &generator() { return random_; }

 private:
  std::mt19937_64 random_;
};

}  // namespace kiln::testing
