// The environment variables of env.def. Read when asked for, never kept: there is no hidden state.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "jit/base/status.h"

namespace kiln {

enum class Env : uint8_t {
#define ENV(name, kind, doc) name,
#include "jit/base/env.def"
#undef ENV
};

struct EnvInfo {
  enum class Kind : uint8_t { text, count, flag };
  const char *name;
  std::string_view doc;
  Env variable;
  Kind kind;
};
std::span<const EnvInfo> all_env();

// Whether all values are of their variables' kinds; the error is of the first that is not.
Status check_env();

// A variable that is unset or empty is nullopt. The typed ones name variable, value and what was expected.
std::optional<std::string> env_text(Env variable);
Result<std::optional<uint32_t>> env_count(Env variable);  // a decimal number, at least 1
Result<bool> env_flag(Env variable);                      // "1" or "0"; unset: false
// One that is none of Kiln's: a pass asks for it by its name. Unset is nullopt, empty is not.
std::optional<std::string> env_of_others(const std::string &name);

}  // namespace kiln
