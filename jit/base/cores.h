// How many cores this process may use.
#pragma once
#include <cstdint>
#include <string>

namespace kiln {

// The cores of the calling thread's affinity, or fewer where a control group's quota gives less time than they have. At
// least 1.
uint32_t usable_cores();

// The whole cores (rounded up) that the quotas of a process's control groups give it; 0: no limit. `groups` is the text
// of /proc/self/cgroup, `root` the folder where control groups are mounted, of version 2 (cpu.max) or 1
// (cpu/cpu.cfs_quota_us).
uint32_t quota_cores(const std::string &groups, const std::string &root);

}  // namespace kiln
