// Writing a file of bytes that come in parts, so that nobody holds all of them.
#pragma once
#include <functional>
#include <string>

#include "jit/base/bytes.h"
#include "jit/base/status.h"

namespace kiln {

using WriteBytes = std::function<bool(ByteSpan)>;
// As write_file (file.h): `produce` gives `write` the parts, and stops, answering false, where that does.
Status produce_file(const std::string &path, const std::function<bool(const WriteBytes &write)> &produce);

}  // namespace kiln
