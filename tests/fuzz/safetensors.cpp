// Any bytes as safetensors: an error, or tensors that are written and read back the same.
#include <algorithm>
#include <cstdlib>

#include "runtime/io/tensor_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  using namespace kiln;
  const Result<std::vector<StoredTensor>> tensors = parse_safetensors({data, size});
  if (!tensors.ok()) return 0;
  const Result<Bytes> written = write_safetensors(*tensors);
  if (!written.ok()) std::abort();
  const Result<std::vector<StoredTensor>> again = parse_safetensors(*written);
  const auto same = [](const StoredTensor &a, const StoredTensor &b) {
    return a.name == b.name && a.dtype == b.dtype && a.shape == b.shape && std::ranges::equal(a.bytes, b.bytes);
  };
  if (!again.ok() || !std::ranges::equal(*tensors, *again, same)) std::abort();
  return 0;
}
