// Executables as handles.
#pragma once
#include <memory>

#include "abi/src/handles.h"

namespace kiln::abi {

inline kiln_executable *make_executable(const std::shared_ptr<Context> &context,
                                        std::shared_ptr<const Executable> executable) {
  return new kiln_executable{{}, {}, {context, &LiveCounts::executables}, std::move(executable), {}, {}};
}

}  // namespace kiln::abi
