// A GPU of this machine as a host sees it: arrays in its memory, and the rate at which it copies. By the driver alone,
// opened where it is needed.
#pragma once
#include <kiln/dlpack.h>

#include <cstdint>
#include <span>
#include <vector>

#include "figure.h"

namespace kiln::bench {

// Device 0. What it made goes with it.
class Gpu {
 public:
  Gpu();  // throws Skipped where this machine has none, or no driver
  Gpu(const Gpu &) = delete;
  ~Gpu();

  // An f32 array that holds `values`, row by row; `shape` has as many elements.
  const DLTensor *array(std::vector<int64_t> shape, std::span<const float> values);
  std::vector<float> values(const DLTensor *array) const;
  // Seconds of a copy of that many bytes from its memory to its memory: of the fastest of some.
  double copy_seconds(size_t bytes);

 private:
  struct Array {
    std::vector<int64_t> shape;
    DLTensor tensor;
  };
  template <class... Arguments>
  void call(const char *name, Arguments... arguments) const;
  unsigned long long allocate(size_t bytes);

  void *library_ = nullptr;
  std::vector<unsigned long long> memory_;
  std::vector<std::unique_ptr<Array>> arrays_;
};

}  // namespace kiln::bench
