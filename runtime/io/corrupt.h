// The error of a file that is not what its format says. For the files of this folder.
#pragma once
#include "jit/base/status.h"

namespace kiln {

template <class... Parts>
Status corrupt(const Parts &...parts) {
  return error(Code::corrupt, parts...);
}

}  // namespace kiln
