// Executables as handles.
#pragma once
#include <memory>

#include "abi/src/handles.h"

namespace kiln::abi {

inline kiln_executable *make_executable(const std::shared_ptr<Context> &context,
                                        std::shared_ptr<const Executable> executable) {
  return new kiln_executable{.magic = {},
                             .live = {context, &LiveCounts::executables},
                             .executable = std::move(executable),
                             .joined = {},
                             .targets = {}};
}

}  // namespace kiln::abi
