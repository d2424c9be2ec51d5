// Any bytes as a record of the cache: an error or an artifact that is written back to the same bytes.
#include <algorithm>
#include <cstdlib>

#include "runtime/cache/artifact.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const kiln::ByteSpan bytes(data, size);
  const kiln::Result<kiln::Artifact> artifact = kiln::read_artifact(bytes);
  if (!artifact.ok()) return 0;
  const kiln::Bytes again = kiln::write_artifact(*artifact);
  if (!std::equal(again.begin(), again.end(), bytes.begin(), bytes.end())) std::abort();
  return 0;
}
