#include "jit/base/env.h"

#include <charconv>
#include <cstdlib>

namespace kiln {
namespace {

constexpr EnvInfo variables[] = {
#define ENV(name, kind, doc) {#name, doc, Env::name, EnvInfo::Kind::kind},
#include "jit/base/env.def"
#undef ENV
};

const char *name_of(Env variable) { return variables[static_cast<size_t>(variable)].name; }

}  // namespace

std::span<const EnvInfo> all_env() { return variables; }

Status check_env() {
  for (const EnvInfo &info : variables) {
    switch (info.kind) {
      case EnvInfo::Kind::text:
        break;
      case EnvInfo::Kind::count:
        KILN_TRY(env_count(info.variable).status());
        break;
      case EnvInfo::Kind::flag:
        KILN_TRY(env_flag(info.variable).status());
        break;
    }
  }
  return {};
}

std::optional<std::string> env_text(Env variable) {
  const char *text = std::getenv(name_of(variable));
  return text && *text ? std::optional<std::string>(text) : std::nullopt;
}

Result<std::optional<uint32_t>> env_count(Env variable) {
  std::optional<std::string> text = env_text(variable);
  if (!text) return std::optional<uint32_t>();
  uint32_t number = 0;
  const char *end = text->data() + text->size();
  if (auto [at, failure] = std::from_chars(text->data(), end, number);
      failure != std::errc() || at != end || number == 0)
    return invalid(name_of(variable), " is '", *text, "'; expected a number from 1 to ", UINT32_MAX);
  return std::optional(number);
}

Result<bool> env_flag(Env variable) {
  std::optional<std::string> text = env_text(variable);
  if (!text || *text == "0") return false;
  if (*text == "1") return true;
  return invalid(name_of(variable), " is '", *text, "'; expected 0 or 1");
}

std::optional<std::string> env_of_others(const std::string &name) {
  const char *text = std::getenv(name.c_str());
  return text ? std::optional<std::string>(text) : std::nullopt;
}

}  // namespace kiln
