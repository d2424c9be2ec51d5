// Places in one block of memory, one after the other.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace kiln {

class Layout {
 public:
  explicit Layout(uint64_t alignment) : alignment_(alignment) {}

  // The offset of the next `bytes`. A sum that is too large stays so: allocating that much fails.
  uint64_t add(uint64_t bytes) {
    constexpr uint64_t largest = uint64_t{1} << 62;
    const uint64_t offset = size_;
    size_ = std::min(largest, size_ + (std::min(largest, bytes) + alignment_ - 1) / alignment_ * alignment_);
    return offset;
  }
  // One offset for each.
  std::vector<uint64_t> add(std::span<const uint64_t> sizes_bytes) {
    std::vector<uint64_t> offsets;
    for (uint64_t bytes : sizes_bytes) offsets.push_back(add(bytes));
    return offsets;
  }
  uint64_t size_bytes() const { return size_; }

 private:
  const uint64_t alignment_;
  uint64_t size_ = 0;
};

}  // namespace kiln
