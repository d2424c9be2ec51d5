// Any bytes as npy: an error, or a tensor of which every element can be addressed, written and read back the same.
#include <algorithm>
#include <cstdlib>

#include "runtime/io/tensor_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  using namespace kiln;
  const Result<StoredTensor> tensor = parse_npy({data, size});
  if (!tensor.ok()) return 0;
  int64_t last = 0;  // the offset of the last element, by strides
  for (size_t d = 0; d < tensor->strides.size(); ++d) last += (tensor->shape[d] - 1) * tensor->strides[d];
  const bool empty = std::ranges::find(tensor->shape, 0) != tensor->shape.end();
  if (!empty && static_cast<uint64_t>(last + 1) * size_of(tensor->dtype) > tensor->bytes.size()) std::abort();
  const Result<Bytes> written = write_npy(*tensor);  // as row-major: the bytes stay
  const Result<StoredTensor> again = parse_npy(*written);
  if (!again.ok() || again->dtype != tensor->dtype || again->shape != tensor->shape) std::abort();
  if (!std::ranges::equal(again->bytes, tensor->bytes)) std::abort();
  return 0;
}
