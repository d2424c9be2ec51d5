// What a host may ask of a context.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/options.h"

namespace kiln {

// What becomes of a compile when a pass fails.
enum class PassFailures : uint8_t { fail, skip };
AttrValue to_attr(PassFailures policy);
Status from_attr(const AttrValue &value, PassFailures &out);

struct ContextOptions {
  uint32_t threads = 0;                        // 0: one per usable core
  std::string cache;                           // a folder; "": the standard one; "off"
  uint64_t cache_max_bytes = 0;                // 0: the cache's default
  bool prepared = true;                        // whether what is made of parameters in files is kept there
  uint64_t prepared_max_bytes = 0;             // likewise
  std::vector<std::string> load_symbols = {};  // files that functions may be taken of
  PassFailures pass_failures = PassFailures::fail;
  uint32_t pass_budget_ms = 0;  // 0: none
};

std::span<const OptionRow<ContextOptions>> context_option_rows();

}  // namespace kiln
