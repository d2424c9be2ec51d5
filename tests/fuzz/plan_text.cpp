// Any text as a plan: an error, or a plan that writes back and reads again. What its steps would do is proved of its
// bytes, whose target is `plan`.
#include <cstdlib>

#include "runtime/unpacked/texts.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  using namespace kiln;
  if (size > 65536) return 0;
  const Result<Plan> plan = unpacked::read_plan({reinterpret_cast<const char *>(data), size});
  if (!plan.ok()) return 0;
  const std::string once = unpacked::text_of(*plan);
  const Result<Plan> again = unpacked::read_plan(once);
  if (!again.ok() || unpacked::text_of(*again) != once) std::abort();
  ByteWriter bytes;
  serialize(*plan, {}, bytes);
  ByteReader in(bytes.bytes());
  (void)parse_plan(in, {});
  return 0;
}
