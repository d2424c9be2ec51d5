// A loaded artifact, and calls on it. Cold and warm executables are loaded by this one path, from artifact bytes.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jit/base/kernel_args.h"
#include "jit/base/status.h"
#include "runtime/cache/artifact.h"
#include "runtime/exec/image_memory.h"
#include "runtime/exec/thread_pool.h"
#include "runtime/graph/graph.h"

namespace kiln {

// Immutable; any number of threads.
class Executable {
 public:
  // Refuses (incompatible) an artifact of another build or for a feature level that this machine lacks. `ops` reads the
  // graph of reference steps.
  static Result<std::shared_ptr<const Executable>> load(std::shared_ptr<const Artifact> artifact, const OpTable &ops,
                                                        std::shared_ptr<ThreadPool> pool, std::string_view build_id);
  const Artifact &artifact() const { return *artifact_; }
  const Plan &plan() const { return artifact_->plan; }
  kiln_kernel_fn kernel(uint32_t i) const { return entries_[i]; }
  ThreadPool &pool() const { return *pool_; }
  const Graph *reference_graph() const { return graph_.get(); }

 private:
  std::shared_ptr<const Artifact> artifact_;
  std::shared_ptr<ThreadPool> pool_;
  ImageMemory memory_;
  std::vector<kiln_kernel_fn> entries_;
  GraphPtr graph_;
};

// A borrowed or owned array, as a call sees it. Strides in elements; null: row-major.
struct ArrayRef {
  void *data = nullptr;
  DType dtype = DType::f32;
  uint32_t rank = 0;
  const int64_t *shape = nullptr, *strides = nullptr;
};

// Memory of an output that Kiln allocated; recycled when the last owner lets go.
struct OutputBuffer;

// Bound slots, resolved shapes, arena. One thread at a time (a second one gets BUSY). Slots number the signature:
// inputs, then parameters, then outputs. Parameters must be bound before run; inputs and outputs may be bound or given
// to run.
class Call {
 public:
  static Result<std::unique_ptr<Call>> create(std::shared_ptr<const Executable> executable);
  Result<std::unique_ptr<Call>> clone() const;  // shares parameters and what prepare made; own arena

  Result<uint32_t> slot(std::string_view name) const;
  // Borrowed: must stay valid and unmoved while bound. `keep` (may be null) is held while bound. Binding a parameter
  // again makes the next run prepare again. An array with data null unbinds.
  Status bind(uint32_t slot, const ArrayRef &array, std::shared_ptr<void> keep);
  // `args` fill the slots that are not bound: inputs, then outputs; an output with data null is allocated by Kiln and
  // stays with the call until the next run or take.
  Status run(std::span<const ArrayRef> args);
  // Same shapes as the last run, other addresses.
  Status run_data(std::span<void *const> data);
  // The shape that a slot had in the last run (inputs, outputs), or of a bound parameter.
  Result<std::span<const int64_t>> dims(uint32_t slot) const;
  struct Taken {
    void *data;
    DType dtype;
    std::vector<int64_t> shape;
    std::shared_ptr<void> owner;
  };
  Result<Taken> take(uint32_t slot);  // an output that Kiln allocated; the call lets go of it
  const Executable &executable() const { return *executable_; }
  uint64_t arena_bytes() const;  // now held: arena, prepared, scratch
  ~Call();

 private:
  struct State;  // call.cpp
  explicit Call(std::shared_ptr<const Executable> executable);
  std::shared_ptr<const Executable> executable_;
  std::unique_ptr<State> state_;
};

}  // namespace kiln
