#include "runtime/modules.h"

namespace kiln {

Modules::Modules() {
  for (const BackendInfo *backend : backends())
    if (backend->makes_code()) modules_.try_emplace(backend->name, std::string(backend->module));
}

Result<std::shared_ptr<Device>> Modules::device(const BackendInfo &backend, uint32_t index) {
  const std::lock_guard lock(mutex_);
  std::weak_ptr<Device> &known = devices_[{backend.name, index}];
  if (std::shared_ptr<Device> open = known.lock()) return open;
  KILN_ASSIGN(const kiln_device_table *table, of(backend).device_table());
  KILN_ASSIGN(std::shared_ptr<Device> device, Device::open(*table, index));
  known = device;
  return device;
}

}  // namespace kiln
