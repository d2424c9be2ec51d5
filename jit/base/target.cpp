#include "jit/base/target.h"

#include <array>
#include <utility>

namespace kiln {
namespace {

Target::Level host_level() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
            __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("f16c");
  bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
            __builtin_cpu_supports("avx512vl");
  return v4 ? Target::Level::v4 : v3 ? Target::Level::v3 : Target::Level::x86_64;
#else
#error "Kiln generates code for x86-64 only"
#endif
}

}  // namespace

std::string Target::name() const {
  return on_device() ? arch : level == Level::v4 ? "v4" : level == Level::v3 ? "v3" : "x86-64";
}

Target Target::host() {
  Target target;
  target.level = host_level();
  return target;
}

Target Target::device(std::string_view arch) {
  Target target;
  target.level = Level::device;
  target.arch = arch;
  return target;
}

Result<Target> Target::by_name(std::string_view name) {
  Target target = host();
  if (name == "native") return target;
  static constexpr std::array<std::pair<std::string_view, Level>, 5> levels{
      {{"x86-64", Level::x86_64}, {"v3", Level::v3}, {"avx2", Level::v3}, {"v4", Level::v4}, {"avx512", Level::v4}}};
  for (auto [known, level] : levels) {
    if (known != name) continue;
    target.level = level;
    return target;
  }
  return error(Code::unknown_name, "cpu '", name, "' is unknown; expected native, x86-64, v3 (avx2) or v4 (avx512)");
}

bool Target::runs_on_host() const { return level <= host_level(); }

}  // namespace kiln
