// Any text as a kernel: an error, or a kernel that has bytes, and writes back and reads again.
#include <cstdlib>

#include "runtime/unpacked/texts.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  using namespace kiln;
  if (size > 65536) return 0;  // long ones are slow, and show nothing that short ones do not
  const Result<kernel::Kernel> kernel = unpacked::read_kernel({reinterpret_cast<const char *>(data), size});
  if (!kernel.ok()) return 0;
  const Bytes bytes = kernel::serialize(*kernel);
  const Result<kernel::Kernel> of_bytes = kernel::parse(bytes);
  if (!of_bytes.ok()) std::abort();
  const Result<kernel::Kernel> again = unpacked::read_kernel(unpacked::text_of(*of_bytes));
  if (!again.ok() || kernel::serialize(*again) != kernel::serialize(*of_bytes)) std::abort();
  return 0;
}
