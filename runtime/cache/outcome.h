// How a search in the cache ended.
#pragma once
#include <cstdint>
#include <string_view>

namespace kiln {

enum class Outcome : uint8_t { hit = 1, miss, bypass, reject };
std::string_view name_of(Outcome outcome);  // "HIT", ...

}  // namespace kiln
