// What a host may ask of a context.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/options.h"

namespace kiln {

struct ContextOptions {
  uint32_t threads = 0;                        // 0: one per usable core
  std::string cache;                           // a folder; "": the standard one; "off"
  uint64_t cache_max_bytes = 0;                // 0: the cache's default
  std::vector<std::string> load_symbols = {};  // files that functions may be taken of
};

std::span<const OptionRow<ContextOptions>> context_option_rows();

}  // namespace kiln
