// Any bytes as a record of the cache: an error, or what writes back and reads again. The checksums would keep every
// mutation from the parsers behind them, so the bytes are read a second time with checksums made right, as by somebody
// who means harm.
#include <cstdlib>
#include <cstring>

#include "runtime/cache/artifact_bytes.h"
#include "runtime/cache/artifact_sections.h"
#include "runtime/cache/targets.h"
#include "runtime/cache/weights.h"

namespace {

using kiln::Bytes;
using kiln::ByteSpan;

// Sets the length and all checksums of a record (runtime/cache/record.h) by what is there.
void repair(Bytes &file) {
  constexpr size_t count_at = 12, length_at = 16, checksum_at = 56, table_at = 64, entry_size = 32;
  if (file.size() < table_at) return;
  uint32_t count = 0;
  std::memcpy(&count, file.data() + count_at, sizeof count);
  if (count > (file.size() - table_at) / entry_size) return;
  const uint64_t length = file.size();
  std::memcpy(file.data() + length_at, &length, sizeof length);
  const size_t table_end = table_at + count * entry_size;
  for (size_t entry = table_at; entry < table_end; entry += entry_size) {
    uint64_t offset = 0, size = 0;
    std::memcpy(&offset, file.data() + entry + 8, sizeof offset);
    std::memcpy(&size, file.data() + entry + 16, sizeof size);
    if (offset > length || size > length - offset) continue;
    const uint64_t checksum = kiln::checksum_of(ByteSpan(file).subspan(offset, size));
    std::memcpy(file.data() + entry + 24, &checksum, sizeof checksum);
  }
  Bytes head(file.begin(), file.begin() + checksum_at);
  head.insert(head.end(), file.begin() + table_at, file.begin() + static_cast<std::ptrdiff_t>(table_end));
  const uint64_t checksum = kiln::checksum_of(head);
  std::memcpy(file.data() + checksum_at, &checksum, sizeof checksum);
}

void read(ByteSpan bytes) {
  (void)kiln::read_identity(bytes, bytes.size());
  (void)kiln::read_targets(bytes);
  (void)kiln::read_kernel_images(bytes);
  kiln::BlocksHead head;
  (void)kiln::read_weights(bytes, head);
  const kiln::Result<kiln::Artifact> artifact = kiln::read_artifact(bytes);
  if (!artifact.ok()) return;
  (void)kiln::print(artifact->plan);
  // What is read once is in its final form: expressions are normalised, nothing else changes.
  const Bytes once = kiln::write_artifact(*artifact);
  const kiln::Result<kiln::Artifact> again = kiln::read_artifact(once);
  if (!again.ok() || kiln::write_artifact(*again) != once) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  read({data, size});
  Bytes repaired(data, data + size);
  repair(repaired);
  read(repaired);
  return 0;
}
