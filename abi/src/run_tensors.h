// The arrays that a callback is run on, in C form: row-major, in the host's memory.
#pragma once
#include <kiln/dlpack.h>

#include <span>
#include <vector>

#include "abi/src/convert.h"
#include "runtime/ops/registered.h"

namespace kiln::abi {

class RunTensors {
 public:
  RunTensors() = default;
  explicit RunTensors(std::span<const RunArray> arrays) { resize(arrays); }
  RunTensors(const RunTensors &) = delete;
  RunTensors &operator=(const RunTensors &) = delete;

  void resize(std::span<const RunArray> arrays) {
    arrays_.assign(arrays.begin(), arrays.end());
    tensors_.assign(arrays_.size(), DLTensor{});
    pointers_.clear();
    for (size_t i = 0; i < arrays_.size(); ++i) {
      DLTensor &tensor = tensors_[i];
      tensor.device = {kDLCPU, 0};
      tensor.ndim = static_cast<int32_t>(arrays_[i].dims.size());
      tensor.dtype = dlpack_type(arrays_[i].dtype);
      tensor.shape = arrays_[i].dims.data();
      pointers_.push_back(&tensor);
    }
  }
  void place(std::span<void *const> data) {
    for (size_t i = 0; i < tensors_.size(); ++i)
      tensors_[i].data = arrays_[i].dtype == DType::token ? nullptr : data[i];
  }
  const DLTensor *const *data() const { return pointers_.data(); }
  uint64_t size() const { return pointers_.size(); }

 private:
  std::vector<RunArray> arrays_;
  std::vector<DLTensor> tensors_;
  std::vector<const DLTensor *> pointers_;
};

}  // namespace kiln::abi
