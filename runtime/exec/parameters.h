// Bound arrays, and what is made of the parameters once: shared by a call and its clones.
#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "runtime/exec/executable.h"
#include "runtime/exec/place.h"
#include "runtime/exec/prepare_parts.h"
#include "runtime/exec/signature.h"

namespace kiln {

// A borrowed array with a descriptor of its own.
struct Binding {
  void *data = nullptr;    // null: not bound, or stored without its values
  bool is_stored = false;  // of a parameter: it is that of the artifact's file
  DType dtype = DType::f32;
  std::vector<int64_t> shape, strides;
  bool has_strides = false;
  ArrayPlace place;
  std::shared_ptr<void> keep;
  std::optional<FileSource> source;  // of a parameter

  Binding() = default;
  Binding(const ArrayRef &array, std::shared_ptr<void> owner);
  bool bound() const { return data || is_stored; }
  ArrayRef array() const;  // points into this
};

// Bindings change only while one call holds the object (see Call::State::own_parameters). Preparing may be asked for by
// several calls at once: one does it, the others wait. Each program of an executable has them prepared for itself, but
// what several prepare alike is there once.
class Parameters : public std::enable_shared_from_this<Parameters> {
 public:
  // Those that the executable's file has are bound.
  Parameters(const Executable &executable, PreparedParts::Store store);
  // The same bindings, and what is prepared of them.
  Parameters(const Parameters &other);
  Parameters &operator=(const Parameters &) = delete;

  const std::vector<Binding> &bindings() const { return bindings_; }
  // One that binds nothing: to what the executable's file has, if it has the parameter.
  void bind(uint32_t parameter, Binding binding);
  // Has the executable's place prepare them, unless it has. The sizes of what is prepared depend on no symbol. What is
  // returned holds as long as version() stays. `device`: that of all calls that share this.
  Result<std::shared_ptr<const Prepared>> prepare(const Executable &executable, const Signature &signature,
                                                  const ResolvedSizes &sizes, uint32_t device);
  // Has those parts of it prepared whose parameters are bound, and are what the signature says.
  Status prepare_parts(const Executable &executable, const Signature &signature, const ResolvedSizes &sizes,
                       uint32_t device);
  std::shared_ptr<const PreparedPart> part(const Digest &name) const;  // null: there is none
  // Rises when something is to be prepared again. Never 0.
  uint64_t version() const { return version_.load(std::memory_order_acquire); }
  // Tells the host what was found since; code cancelled.
  Status tell() const { return parts_.store().tell ? parts_.store().tell() : Status(); }
  // Has the records that were not read yet read in the background: one that is not what it was is prepared again.
  void verify_later() {
    if (has_unverified_.load(std::memory_order_relaxed)) verify_records();
  }

  uint64_t prepared_bytes() const;
  std::vector<std::shared_ptr<const PreparedPart>> parts() const;

 private:
  using PartPtr = std::shared_ptr<const PreparedPart>;
  Binding stored(uint32_t parameter) const;
  std::vector<ParameterArray> arrays(const Signature &signature, const ResolvedSizes &sizes) const;
  bool uses_weights() const;
  Status check_weights() const;
  void list_unverified();
  void verify_records();
  void drop(const PartPtr &part);  // null: all that the executable's file has

  const std::shared_ptr<const Weights> weights_;  // the executable's
  std::vector<Binding> bindings_;
  mutable std::mutex mutex_;
  PreparedParts parts_;
  std::vector<PartPtr> unverified_;  // which the next run that succeeds has read
  std::atomic<bool> has_unverified_ = false;
  std::atomic<uint64_t> version_ = 1;
  std::map<const Executable *, std::shared_ptr<const Prepared>> prepared_;  // which whoever asks keeps alive
};

}  // namespace kiln
