// The code generating modules of all backends, and the devices that they opened. One per context. Threads: any.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include "runtime/backends/backend.h"
#include "runtime/codegen_module.h"
#include "runtime/exec/device.h"

namespace kiln {

class Modules {
 public:
  Modules();
  // Of a backend that has one. Opened when it is first asked for something.
  CodegenModule &of(const BackendInfo &backend) { return modules_.find(backend.name)->second; }
  // One of the devices of a backend that has some: opened once, and kept while somebody uses it.
  Result<std::shared_ptr<Device>> device(const BackendInfo &backend, uint32_t index);

 private:
  std::map<std::string_view, CodegenModule> modules_;  // by the backend's name; never changes
  std::mutex mutex_;
  std::map<std::pair<std::string_view, uint32_t>, std::weak_ptr<Device>> devices_;
};

}  // namespace kiln
