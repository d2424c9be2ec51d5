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
  // Maps all images, each 64-byte aligned, under `name` (seen in /proc/self/maps): from a sealed memory file or, where
  // the system forbids such files, in anonymous memory. With `anonymous` it takes the latter at once: perf looks names
  // up for anonymous memory alone.
  static Result<ImageMemory> load(std::span<const Image> images, std::string_view name, bool anonymous = false);
  const void *entry(size_t image) const { return entries_[image]; }
  size_t size_bytes() const { return size_; }

 private:
  void *base_ = nullptr;
  size_t size_ = 0;
  std::vector<const void *> entries_;
};

}  // namespace kiln
