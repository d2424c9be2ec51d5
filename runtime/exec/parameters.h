// Bound arrays, and what is made of the parameters once: shared by a call and its clones.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/exec/device_call.h"
#include "runtime/exec/executable.h"
#include "runtime/exec/memory.h"
#include "runtime/exec/signature.h"

namespace kiln {

// A borrowed array with a descriptor of its own.
struct Binding {
  void *data = nullptr;  // null: not bound
  DType dtype = DType::f32;
  std::vector<int64_t> shape, strides;
  bool has_strides = false;
  std::shared_ptr<void> keep;

  Binding() = default;
  Binding(const ArrayRef &array, std::shared_ptr<void> owner);
  bool bound() const { return data != nullptr; }
  ArrayRef array() const;  // points into this
};

// Bindings change only while one call holds the object (see Call::State::own_parameters). Preparing may be asked for by
// several calls at once: one does it, the others wait.
class Parameters {
 public:
  explicit Parameters(uint32_t count) : bindings_(count) {}
  // The same bindings, not prepared.
  explicit Parameters(const std::vector<Binding> &bindings) : bindings_(bindings) {}

  const std::vector<Binding> &bindings() const { return bindings_; }
  void bind(uint32_t parameter, Binding binding);
  // Runs the plan's prepare steps unless they have run. The sizes of what is prepared depend on no symbol.
  Status prepare(const Executable &executable, const ResolvedSizes &sizes);
  // After prepare: where the plan's prepared storages are; or all that is on a device, null where there is none.
  const std::vector<void *> &storages() const { return storages_; }
  const DeviceParameters *on_device() const { return device_.get(); }
  uint64_t prepared_bytes() const;

 private:
  Status run_prepare(const Executable &executable, const ResolvedSizes &sizes);
  Status prepare_on_device(const Executable &executable, const ResolvedSizes &sizes);

  std::vector<Binding> bindings_;
  std::mutex mutex_;
  std::atomic<bool> prepared_{false};
  Areas memory_;
  std::vector<void *> storages_;
  std::unique_ptr<DeviceParameters> device_;
};

// Makes `memory` hold a block of each of these sizes; `out` is where they lie.
Status place_storages(std::span<const uint32_t> size_numbers, const ResolvedSizes &sizes, std::string_view what,
                      Areas &memory, std::vector<void *> &out);

}  // namespace kiln
