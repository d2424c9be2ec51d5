// The types and shapes of a call's arrays, remembered from run to run.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kiln/kiln.h"

namespace kiln_python {
/// Whether a run's arrays are described as the last one's: compared as they come, since most runs are like the last.
class Descriptors {
 public:
  void begin() {
    at_ = 0;
    same_ = known_;
  }
  void add(const DLTensor &tensor) {
    const auto rank = static_cast<size_t>(tensor.ndim);
    const int64_t type = tensor.dtype.code | tensor.dtype.bits << 8 | tensor.dtype.lanes << 16;
    put(type << 16 | tensor.device.device_type << 8 | tensor.ndim << 1 | (tensor.strides != nullptr));
    put(tensor.shape, rank);
    if (tensor.strides) put(tensor.strides, rank);
  }
  /// Of one that Kiln makes.
  void add_none() { put(-1); }
  /// Whether all so far are as they were.
  bool same_so_far() const { return same_; }
  /// When all have been added: whether they are all that there were.
  bool end() {
    if (at_ != all_.size()) same_ = known_ = false;
    all_.resize(at_);
    return same_;
  }
  /// Whether they are those of a run that succeeded.
  void set_known(bool known) { known_ = known; }
  bool is_known() const { return known_; }

 private:
  void put(int64_t number) { put(&number, 1); }
  void put(const int64_t *numbers, size_t count) {
    if (same_ && at_ + count <= all_.size()) {
      size_t equal = 0;  // by hand: they are few, and a call of memcmp would cost more
      while (equal < count && all_[at_ + equal] == numbers[equal]) ++equal;
      if (equal == count) {
        at_ += count;
        return;
      }
    }
    same_ = known_ = false;  // whatever becomes of this run
    all_.resize(at_);
    all_.insert(all_.end(), numbers, numbers + count);
    at_ += count;
  }

  std::vector<int64_t> all_;  // end to end
  size_t at_ = 0;
  bool same_ = false, known_ = false;
};
}  // namespace kiln_python
