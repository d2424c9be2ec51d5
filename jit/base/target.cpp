#include "jit/base/target.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
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

uint32_t cache_bytes(int name, uint32_t fallback) {
  long bytes = sysconf(name);  // 0 or -1 where the C library or a virtual machine does not tell
  return bytes > 0 && bytes < (1L << 30) ? static_cast<uint32_t>(bytes) : fallback;
}

uint32_t usable_cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return static_cast<uint32_t>(std::max(1, CPU_COUNT(&set)));
  return static_cast<uint32_t>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
}

}  // namespace

std::string Target::name() const {
  return on_device() ? arch : level == Level::v4 ? "v4" : level == Level::v3 ? "v3" : "x86-64";
}

void Target::serialize(ByteWriter &out) const {
  out.put(static_cast<uint8_t>(level));
  out.put(l1_bytes);
  out.put(l2_bytes);
  out.put(cores);
  out.text(arch);
}

Target Target::host() {
  Target target;
  target.level = host_level();
  target.l1_bytes = cache_bytes(_SC_LEVEL1_DCACHE_SIZE, target.l1_bytes);
  target.l2_bytes = cache_bytes(_SC_LEVEL2_CACHE_SIZE, target.l2_bytes);
  target.cores = usable_cores();
  return target;
}

Target Target::device(std::string_view arch) {
  Target target;
  target.level = Level::device;
  target.l1_bytes = target.l2_bytes = target.cores = 0;
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
