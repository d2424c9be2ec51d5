// Where an array's memory is, in DLPack's numbers.
#pragma once
#include <cstdint>
#include <string>

namespace kiln {

struct ArrayPlace {
  int32_t device_type = 1, index = 0;  // the host's memory

  bool operator==(const ArrayPlace &) const = default;
  bool is_host() const { return *this == ArrayPlace(); }
};

// "cuda:1", "device type 17:0"; of the host's memory: "the host's memory".
std::string text_of(const ArrayPlace &place);

}  // namespace kiln
