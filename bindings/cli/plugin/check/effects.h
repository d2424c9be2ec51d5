// An op with an effect, for graphs of the check's own: it notes what it is given, in the order of its tokens.
#pragma once
#include <vector>

#include "../trial.h"

namespace kiln::cli::plugin_check {

inline constexpr const char *note_op = "check.note";  // (x, token) -> token

// Its effect belongs to the thread that runs the graph.
void add_note_op(const Context &context);
// What runs on this thread noted since the last time, oldest first.
std::vector<Array> take_notes();

}  // namespace kiln::cli::plugin_check
