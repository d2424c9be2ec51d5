// What Kiln tells the host while the host waits for it.
#pragma once
#include <cstdint>
#include <functional>
#include <string_view>

namespace kiln {

// Numbers are KILN_EVENT_*.
enum class Event : uint32_t { progress = 1, warning, loop, entry, step };
inline constexpr uint32_t all_events = 1u << 1 | 1u << 2 | 1u << 3 | 1u << 4 | 1u << 5;

// Told on the thread that is inside the call that it belongs to. True: what goes on is to end.
using TellHost = std::function<bool(Event, std::string_view text)>;

}  // namespace kiln
