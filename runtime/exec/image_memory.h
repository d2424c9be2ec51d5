// Executable memory for an artifact's images: one sealed memory file, copied, verified there, mapped read-execute.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "jit/base/hash.h"
#include "jit/base/status.h"
#include "runtime/plan/artifact.h"

namespace kiln {

class ImageMemory {
 public:
  ImageMemory() = default;
  ImageMemory(ImageMemory &&other) noexcept;
  ImageMemory &operator=(ImageMemory &&other) noexcept;
  ~ImageMemory();
  // Maps all images, each 64-byte aligned, under `name` (seen in /proc/self/maps). Tries memfd with MFD_NOEXEC_SEAL's
  // opposite (MFD_EXEC) first, memfd without flags where that is unknown, anonymous memory last; seals what it can.
  // With `anonymous` it takes the last way at once: perf looks names up for anonymous memory alone.
  static Result<ImageMemory> load(std::span<const Image> images, std::string_view name, bool anonymous = false);
  const void *entry(size_t image) const { return entries_[image]; }
  size_t size_bytes() const { return size_; }

 private:
  void *base_ = nullptr;
  size_t size_ = 0;
  std::vector<const void *> entries_;
};

}  // namespace kiln
