// A hash of sources, compiler, flags and the LLVM that is linked, made at each build. In every key, and on both sides
// of every private border.
#pragma once

namespace kiln {
extern const char *const build_id_text;  // 32 hex digits
}  // namespace kiln
