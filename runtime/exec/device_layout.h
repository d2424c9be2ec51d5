// Places in one block of a device's memory, one after the other.
#pragma once
#include <algorithm>
#include <cstdint>

namespace kiln {

class DeviceLayout {
 public:
  // The offset of the next `bytes`. A size that is too large stays so: allocating that much fails.
  uint64_t add(uint64_t bytes) {
    constexpr uint64_t alignment = 256, largest = uint64_t{1} << 62;
    const uint64_t offset = size_;
    size_ = std::min(largest, size_ + std::min(largest, bytes + alignment - 1) / alignment * alignment);
    return offset;
  }
  uint64_t size_bytes() const { return size_; }

 private:
  uint64_t size_ = 0;
};

}  // namespace kiln
