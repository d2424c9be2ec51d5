// A cubin in a context, and its entries.
// Lifetime: loaded and destroyed inside a ContextScope; no kernel of it may run then. Threads: any once it is loaded.
// Failure: code incompatible when the device cannot run the cubin, or the driver's.
#pragma once
#include <string>
#include <utility>

#include "jit/cuda/driver.h"

namespace kiln::cuda {

class LoadedModule {
 public:
  static Result<LoadedModule> load(const Driver &driver, const void *image) {
    ModuleHandle handle = nullptr;
    KILN_TRY(driver.check(driver.module_load(&handle, image), "cuModuleLoadData"));
    return LoadedModule(driver, handle);
  }
  LoadedModule(LoadedModule &&other) noexcept
      : driver_(other.driver_), handle_(std::exchange(other.handle_, nullptr)) {}
  LoadedModule &operator=(LoadedModule &&) = delete;
  ~LoadedModule() {
    if (handle_) (void)driver_->module_unload(handle_);
  }

  Result<FunctionHandle> function(const char *name) const {
    FunctionHandle function = nullptr;
    KILN_TRY(driver_->check(driver_->module_function(&function, handle_, name), str_cat("cuModuleGetFunction ", name)));
    return function;
  }

 private:
  LoadedModule(const Driver &driver, ModuleHandle handle) : driver_(&driver), handle_(handle) {}
  const Driver *driver_;
  ModuleHandle handle_;
};

}  // namespace kiln::cuda
