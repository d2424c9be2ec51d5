// What a library is in memory, as against the file that it was loaded from.
#pragma once
#include "jit/base/bytes.h"
#include "jit/base/dynamic_library.h"

namespace kiln {

// Makes the pages of `library` this process's own, so that no change of its file reaches them any more. True when all
// of them are, and those that the loader does not write are byte for byte what `file` says. False: another file was
// mapped, or the system forbids it; the library runs as before.
bool own_pages(const DynamicLibrary &library, ByteSpan file);

}  // namespace kiln
