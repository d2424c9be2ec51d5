// Backends: who makes code of a region, and where it runs. A row each.
#pragma once
#include <span>
#include <string_view>

#include "jit/base/status.h"
#include "jit/base/target.h"

namespace kiln {

struct BackendInfo {
  std::string_view name;
  std::string_view module;  // the library beside libkiln that makes its code and, for a device, runs it; empty: no code
  std::span<const std::string_view> archs;  // of a device: what it can be compiled for; empty: this processor runs it

  bool on_device() const { return !archs.empty(); }
};

std::span<const BackendInfo> backends();
// code unknown_name: names those that there are.
Result<const BackendInfo *> find_backend(std::string_view name);

// The target of `backend` for the options `cpu` (Target::by_name) and `arch` (one of its archs, or "native"; only of a
// device). "native" on a device is a target without arch: whoever needs code has to ask the device. Errors:
// unknown_name; invalid_argument for an option that the backend does not have.
Result<Target> target_of(const BackendInfo &backend, std::string_view cpu, std::string_view arch);

}  // namespace kiln
