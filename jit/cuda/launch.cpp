#include "jit/cuda/launch.h"

#include <algorithm>
#include <bit>

namespace kiln::cuda {
namespace {

constexpr uint32_t threads_per_multiprocessor = 2048;  // that can be resident: more blocks would only wait

}  // namespace

Dimensions dimensions_of(const kiln_kernel_use &use, int64_t points, uint32_t max_threads, uint32_t multiprocessors) {
  // A power of two: blocks that share a point halve themselves when they reduce.
  const uint32_t threads = std::bit_floor(std::max(1u, std::min(use.group_threads, max_threads)));
  const int64_t blocks = use.whole_group ? points : (points + threads - 1) / threads;
  const int64_t most = int64_t{multiprocessors} * std::max(1u, threads_per_multiprocessor / threads);
  return {static_cast<uint32_t>(std::clamp<int64_t>(blocks, 1, most)), threads};
}

Bytes parameter_of(const kiln_device_launch &launch, Address scratch, Address error_word) {
  ByteWriter out;
  for (uint64_t i = 0; i < launch.buffer_count; ++i) out.put<uint64_t>(launch.buffers[i]);
  if (launch.buffer_count == 0) out.put<uint64_t>(0);  // an array has at least one element
  for (uint64_t i = 0; i < launch.size_count; ++i) out.put<int64_t>(launch.sizes[i]);
  if (launch.size_count == 0) out.put<int64_t>(0);
  out.put<int64_t>(launch.points);
  out.put<uint64_t>(scratch);
  out.put<uint64_t>(error_word);
  return out.take();
}

}  // namespace kiln::cuda
