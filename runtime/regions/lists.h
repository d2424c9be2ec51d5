// Lists of numbers, one for each of some others, in one piece of memory.
#pragma once
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace kiln {

class Lists {
 public:
  Lists() = default;
  // Of `count`. What they are made of is told twice: by calls of what `tell` is given, with a number and one more for
  // its list.
  template <class Tell>
  Lists(size_t count, const Tell &tell) : begins_(count + 1) {
    tell([&](uint32_t number, uint32_t) { ++begins_[number + 1]; });
    std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
    std::vector<uint32_t> next(begins_.begin(), begins_.end() - 1);
    items_.resize(begins_.back());
    tell([&](uint32_t number, uint32_t item) { items_[next[number]++] = item; });
  }
  void add(std::span<const uint32_t> list) {
    items_.insert(items_.end(), list.begin(), list.end());
    begins_.push_back(static_cast<uint32_t>(items_.size()));
  }

  size_t size() const { return begins_.size() - 1; }
  std::span<const uint32_t> operator[](size_t number) const {
    return std::span(items_).subspan(begins_[number], begins_[number + 1] - begins_[number]);
  }

 private:
  std::vector<uint32_t> begins_ = {0}, items_;
};

}  // namespace kiln
