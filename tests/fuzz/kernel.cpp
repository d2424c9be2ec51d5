// Any bytes as a kernel: an error, or a kernel that prints, whose scratch and tasks can be told at any sizes, and that
// writes back and reads again.
#include <algorithm>
#include <cstdlib>

#include "jit/kernel/kernel.h"

namespace {

using namespace kiln;

// No area of the scratch begins before it or behind its end.
void check_scratch(const kernel::Kernel &kernel, int64_t size) {
  const auto value = [&](const Expr &e) { return e.evaluate([&](const std::string &) { return size; }); };
  const kernel::ScratchLayout layout = kernel::scratch_layout(kernel);
  const int64_t bytes = value(layout.size_bytes);
  std::vector<Expr> areas = layout.row_local;
  areas.insert(areas.end(), {layout.a_panel, layout.b_panel, layout.c_tile, layout.partials, layout.waiting});
  for (const Expr &area : areas)
    if (value(area) < 0 || value(area) > bytes) std::abort();
  (void)value(kernel::task_count(kernel));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size > 16384) return 0;  // long ones are slow, and show nothing that short ones do not
  const Result<kernel::Kernel> kernel = kernel::parse({data, size});
  if (!kernel.ok()) return 0;
  if (!kernel::verify(*kernel).ok() || kernel::print(*kernel).empty()) std::abort();
  for (int64_t extent : {int64_t{0}, int64_t{1}, int64_t{7}, INT64_MAX}) check_scratch(*kernel, extent);
  // What is read once is in its final form: expressions are normalised, nothing else changes.
  const Bytes once = kernel::serialize(*kernel);
  const Result<kernel::Kernel> again = kernel::parse(once);
  if (!again.ok() || kernel::serialize(*again) != once) std::abort();
  return 0;
}
