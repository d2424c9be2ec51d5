#include "jit/cuda/context.h"

namespace kiln::cuda {

Result<std::shared_ptr<const Context>> Context::open(std::shared_ptr<const Driver> driver, uint32_t ordinal) {
  int count = 0;
  KILN_TRY(driver->check(driver->device_count(&count), "cuDeviceGetCount"));
  if (ordinal >= static_cast<uint32_t>(count))
    return error(Code::no_device, "[cuda] device ", ordinal, " was asked for; the driver has ", count);
  DeviceId device = 0;
  KILN_TRY(driver->check(driver->device_get(&device, static_cast<int>(ordinal)), "cuDeviceGet"));
  ContextHandle handle = nullptr;
  KILN_TRY(driver->check(driver->context_retain(&handle, device), "cuDevicePrimaryCtxRetain"));
  const std::shared_ptr<Context> context(new Context(std::move(driver), device, handle));
  KILN_TRY(context->read_attributes());
  return std::shared_ptr<const Context>(context);
}

Status Context::read_attributes() {
  const auto read = [&](int attribute, int &value) {
    return driver_->check(driver_->device_attribute(&value, attribute, device_), "cuDeviceGetAttribute");
  };
  int major = 0, minor = 0, processors = 0, pools = 0;
  KILN_TRY(read(number::compute_major, major));
  KILN_TRY(read(number::compute_minor, minor));
  KILN_TRY(read(number::multiprocessors, processors));
  // Drivers before 11.2 know neither the attribute nor the functions.
  if (driver_->allocate_async && driver_->free_async) KILN_TRY(read(number::memory_pools, pools));
  arch_ = str_cat("sm_", major, minor);
  multiprocessors_ = static_cast<uint32_t>(std::max(processors, 1));
  has_memory_pools_ = pools != 0;
  return {};
}

}  // namespace kiln::cuda
