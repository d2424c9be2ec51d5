// Which nodes are compiled together: by what they are marked for, and by what the host asks for.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/graph/graph.h"

namespace kiln {

// all: every node, whatever it is marked for. marked: those that are marked for a region, by region. except_fallback:
// all but those that are marked to fall back; those that are marked for no region are one, too. none: none.
enum class Mode : uint8_t { all, marked, except_fallback, none };

// What runs a node that is in no region. kernel: code of its own, with the same values. reference: its reference
// kernel, which is slow. error: as kernel, but a node that should be in a region and cannot is an error.
enum class Fallback : uint8_t { kernel, reference, error };

// By which options name them, in their order.
inline constexpr std::array<std::string_view, 4> mode_names = {"all", "marked", "except_fallback", "none"};
inline constexpr std::array<std::string_view, 3> fallback_names = {"kernel", "reference", "error"};
inline std::string_view name_of(Mode mode) { return mode_names[static_cast<size_t>(mode)]; }

struct Modes {
  Mode forward = Mode::all, backward = Mode::all;  // by the phase of a node
  Fallback fallback = Fallback::kernel;

  bool cut() const { return forward != Mode::all || backward != Mode::all; }
  bool wants_marks() const { return forward == Mode::marked || backward == Mode::marked; }
};
std::string described(const Modes &modes);  // "marked", or "all, backward none"

// A node that its reference kernel runs is first decomposed (kiln.decompose).
bool is_decomposed_always(const Node &node);

// The region of an op node, "" for the one without a name. Nothing: it falls back.
std::optional<std::string> region_of(const Node &node, const Modes &modes);

}  // namespace kiln
