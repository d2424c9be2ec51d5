// How results are rounded: of a compile by its option "rounding", of a region also by kiln.region.rounding.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kiln {

// strict: each 16-bit value of the graph is rounded where its op ends, and sums have one order, so that results do not
// depend on how a graph is cut, fused and scheduled. relaxed: 16-bit values that only other ops of the graph read may
// stay f32, sums are added up as it is fastest, and convolutions may be made of transformed tiles.
enum class Rounding : uint8_t { strict, relaxed };
inline constexpr std::array<std::string_view, 2> rounding_names = {"strict", "relaxed"};
inline std::string_view name_of(Rounding rounding) { return rounding_names[static_cast<size_t>(rounding)]; }

}  // namespace kiln
