#include "runtime/exec/array_place.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "jit/base/str.h"

namespace kiln {

std::string text_of(const ArrayPlace &place) {
  constexpr std::array<std::pair<int32_t, std::string_view>, 5> known = {
      {{2, "cuda"}, {8, "metal"}, {10, "rocm"}, {13, "cuda managed"}, {14, "oneapi"}}};
  if (place.is_host()) return "the host's memory";
  const auto *const name = std::ranges::find(known, place.device_type, &std::pair<int32_t, std::string_view>::first);
  if (name == known.end()) return str_cat("device type ", place.device_type, ":", place.index);
  return str_cat(name->second, ":", place.index);
}

}  // namespace kiln
