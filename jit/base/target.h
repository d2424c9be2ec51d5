// What code is generated for: features of a processor, or a device's architecture. Its name says all of it, and is in
// the keys of graphs and kernels (runtime/cache/key.h); nothing else of a machine changes what is compiled: neither its
// caches nor its cores.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "jit/base/features.h"
#include "jit/base/status.h"

namespace kiln {

struct Target {
  FeatureSet features;
  bool is_device = false;  // not this processor: `arch` says what. Scalar code, each point of the parallel axes a task
  std::string arch;        // device: its backend's name of the architecture

  bool on_device() const { return is_device; }
  // Of the widest registers; 4 on a device.
  uint32_t vector_bytes() const;
  std::string name() const { return on_device() ? arch : features.text(); }  // "v4+vnni"; `arch`

  static Target host();  // all that this machine has
  static Target device(std::string_view arch);
  // FeatureSet::parse: "native" (this machine's), "x86-64", "v3", "v4+vnni-movbe".
  static Result<Target> by_name(std::string_view name);
  // Error (incompatible): names the features that this machine lacks.
  Status check_host() const;
  bool runs_on_host() const { return check_host().ok(); }
};

}  // namespace kiln
