#include "jit/base/cores.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "jit/base/file_descriptor.h"

namespace kiln {
namespace {

// Files of /proc and /sys have size 0 to stat, so that they are read to their end. Empty: there is none.
std::string text_of(const std::string &path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  char buffer[4096];
  for (ssize_t got; (got = ::read(file.get(), buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<size_t>(got));
  return text;
}

// microseconds of processor time in each period; 0: no limit.
uint32_t cores_of(double quota, double period) {
  if (quota <= 0 || period <= 0) return 0;
  const double cores = quota / period;
  return cores >= 1 << 20 ? 0 : static_cast<uint32_t>(cores) + (cores > static_cast<uint32_t>(cores));
}

uint32_t quota_of_folder(const std::string &folder, bool version2) {
  if (version2) {  // "max 100000", "150000 100000"
    const std::string text = text_of(folder + "/cpu.max");
    char *rest = nullptr;
    const double quota = std::strtod(text.c_str(), &rest);
    return rest == text.c_str() ? 0 : cores_of(quota, std::strtod(rest, nullptr));
  }
  return cores_of(std::strtod(text_of(folder + "/cpu.cfs_quota_us").c_str(), nullptr),
                  std::strtod(text_of(folder + "/cpu.cfs_period_us").c_str(), nullptr));
}

// The least of the group's and its parents'.
uint32_t quota_of_group(const std::string &mount, std::string group, bool version2) {
  uint32_t least = 0;
  for (;;) {
    if (const uint32_t cores = quota_of_folder(mount + group, version2)) least = least ? std::min(least, cores) : cores;
    const size_t slash = group.rfind('/');
    if (slash == std::string::npos) return least;
    group.resize(slash);
  }
}

uint32_t affinity_cores() {
  // The kernel refuses a set that is smaller than its own, which may be beyond cpu_set_t's 1,024.
  for (int count = CPU_SETSIZE; count <= 1 << 20; count *= 4) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t *)> set(CPU_ALLOC(count), [](cpu_set_t *s) { CPU_FREE(s); });
    if (set && sched_getaffinity(0, CPU_ALLOC_SIZE(count), set.get()) == 0)
      return static_cast<uint32_t>(CPU_COUNT_S(CPU_ALLOC_SIZE(count), set.get()));
  }
  return static_cast<uint32_t>(std::max(0L, sysconf(_SC_NPROCESSORS_ONLN)));
}

}  // namespace

uint32_t quota_cores(const std::string &groups, const std::string &root) {
  uint32_t least = 0;
  for (std::string_view rest = groups; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    // NUMBER:CONTROLLERS:GROUP; version 2 has number 0 and no controllers.
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const std::string controllers = "," + std::string(line.substr(first + 1, second - first - 1)) + ",";
    const bool version2 = controllers == ",,";
    if (!version2 && controllers.find(",cpu,") == std::string::npos) continue;
    std::string group(line.substr(second + 1));
    if (group == "/") group.clear();
    const uint32_t cores = quota_of_group(version2 ? root : root + "/cpu", group, version2);
    if (cores) least = least ? std::min(least, cores) : cores;
  }
  return least;
}

uint32_t usable_cores() {
  const uint32_t cores = std::max(1u, affinity_cores());
  const uint32_t quota = quota_cores(text_of("/proc/self/cgroup"), "/sys/fs/cgroup");
  return quota ? std::min(quota, cores) : cores;
}

}  // namespace kiln
