// Bound arrays, and what is made of the parameters once: shared by a call and its clones.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/exec/executable.h"
#include "runtime/exec/place.h"
#include "runtime/exec/signature.h"

namespace kiln {

// A borrowed array with a descriptor of its own.
struct Binding {
  void *data = nullptr;  // null: not bound
  DType dtype = DType::f32;
  std::vector<int64_t> shape, strides;
  bool has_strides = false;
  ArrayPlace place;
  std::shared_ptr<void> keep;

  Binding() = default;
  Binding(const ArrayRef &array, std::shared_ptr<void> owner);
  bool bound() const { return data != nullptr; }
  ArrayRef array() const;  // points into this
};

// Bindings change only while one call holds the object (see Call::State::own_parameters). Preparing may be asked for by
// several calls at once: one does it, the others wait. Each program of an executable has them prepared for itself.
class Parameters {
 public:
  explicit Parameters(uint32_t count) : bindings_(count) {}
  // The same bindings, not prepared.
  explicit Parameters(const std::vector<Binding> &bindings) : bindings_(bindings) {}

  const std::vector<Binding> &bindings() const { return bindings_; }
  void bind(uint32_t parameter, Binding binding);
  // Has the executable's place prepare them, unless it has. The sizes of what is prepared depend on no symbol. What is
  // returned stays until a parameter is bound. `device`: that of all calls that share this.
  Result<const Prepared *> prepare(const Executable &executable, const Signature &signature, const ResolvedSizes &sizes,
                                   uint32_t device);
  uint64_t prepared_bytes() const;

 private:
  std::vector<Binding> bindings_;
  mutable std::mutex mutex_;
  std::map<const Executable *, Prepared> prepared_;  // which whoever asks keeps alive
};

}  // namespace kiln
