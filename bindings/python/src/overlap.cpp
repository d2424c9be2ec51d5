#include "overlap.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace kiln_python {
namespace {
// Where an array lies in memory, in bytes.
struct Extent {
  struct Step {
    uint64_t stride, count;  // in bytes; of further elements
  };
  uint64_t begin = 0, end = 0;  // equal: it is empty
  uint64_t element = 0;
  std::vector<Step> steps{};  // upwards from the lowest element

  explicit Extent(const DLTensor &tensor) : element(tensor.dtype.bits / 8u) {
    begin = reinterpret_cast<uintptr_t>(tensor.data) + tensor.byte_offset;
    end = begin + element;
    uint64_t dense = element;
    for (int i = tensor.ndim; i-- > 0;) {
      if (tensor.shape[i] == 0) end = begin;
      if (tensor.shape[i] == 0) return;
      const auto count = static_cast<uint64_t>(tensor.shape[i]) - 1;
      const int64_t stride =
          tensor.strides ? tensor.strides[i] * static_cast<int64_t>(element) : static_cast<int64_t>(dense);
      dense *= count + 1;
      if (count == 0) continue;
      steps.push_back({static_cast<uint64_t>(stride < 0 ? -stride : stride), count});
      (stride < 0 ? begin : end) += static_cast<uint64_t>(stride) * count;
    }
  }

  // Of what repeats after `period` bytes: where in it the elements lie. Others are one step.
  std::pair<uint64_t, uint64_t> within(uint64_t period) const {
    uint64_t reach = element;
    for (const Step &step : steps)
      if (step.stride % period) reach += step.stride * step.count;
    return {begin % period, begin % period + reach};
  }
};

// Apart within a period that both repeat, as columns of one table are.
bool are_apart(const Extent &a, const Extent &b, uint64_t period) {
  const auto [a_begin, a_end] = a.within(period);
  const auto [b_begin, b_end] = b.within(period);
  return (a_end <= b_begin && b_end <= a_begin + period) || (b_end <= a_begin && a_end <= b_begin + period);
}
}  // namespace

bool elements_apart(const DLTensor &tensor) {
  std::vector<std::pair<uint64_t, uint64_t>> dims;  // stride and size, of those that have a second element
  for (int i = 0; i < tensor.ndim; ++i) {
    if (tensor.shape[i] == 0) return true;
    const int64_t stride = tensor.strides[i];
    if (tensor.shape[i] != 1)
      dims.emplace_back(stride < 0 ? -static_cast<uint64_t>(stride) : static_cast<uint64_t>(stride), tensor.shape[i]);
  }
  std::sort(dims.begin(), dims.end());
  uint64_t reached = 0;
  for (const auto &[stride, size] : dims) {
    if (stride <= reached) return false;
    reached += stride * (size - 1);  // the array is in memory, so that it does not overflow
  }
  return true;
}

bool may_overlap(const DLTensor &left, const DLTensor &right) {
  const Extent a(left), b(right);
  if (a.begin == a.end || b.begin == b.end || a.end <= b.begin || b.end <= a.begin) return false;
  for (const Extent *each : {&a, &b})
    for (const Extent::Step &step : each->steps)
      if (step.stride && are_apart(a, b, step.stride)) return false;
  return true;
}
}  // namespace kiln_python
