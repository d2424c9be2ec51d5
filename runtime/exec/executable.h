// A loaded artifact, and calls on it. Cold and warm executables are loaded by this one path, from artifact bytes.
#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jit/base/status.h"
#include "runtime/backends/registered.h"
#include "runtime/exec/array_place.h"
#include "runtime/exec/device.h"
#include "runtime/exec/entries.h"
#include "runtime/exec/loop_watch.h"
#include "runtime/exec/place.h"
#include "runtime/exec/prepare_parts.h"
#include "runtime/exec/thread_pool.h"
#include "runtime/functions/binding.h"
#include "runtime/functions/function.h"
#include "runtime/graph/graph.h"
#include "runtime/plan/artifact.h"

namespace kiln {

class BufferRecycler;
struct PlanSizes;

// What runs one of an artifact's graphs in place of reference kernels.
struct LoadedProgram {
  BackendPtr backend;
  std::shared_ptr<const BackendProgram> program;
  uint32_t parameters = 0;  // of the graph's inputs the last ones
};

// A function that runs the node of a reference step's graph; null: none does.
struct BoundFunction {
  FunctionPtr function;
  FunctionBinding binding = {};
};

// Immutable, but for entries that are made later; any number of threads.
class Executable {
 public:
  // Refuses (incompatible) an artifact of another build or for a feature level that this machine lacks. `ops` reads the
  // graph of reference steps, and `functions` and `backends` have those that run them. The pool is shared by all calls.
  // An artifact for a device loads without one, so that it can be looked at and saved: `open_device` is asked when the
  // first call is made. With the artifact's entries. `weights` (may be null): that its file has, which are checked
  // here.
  static Result<std::shared_ptr<const Executable>> load(std::shared_ptr<const Artifact> artifact, const OpTable &ops,
                                                        std::shared_ptr<ThreadPool> pool, std::string_view build_id,
                                                        OpenDevice open_device = {},
                                                        const FunctionTable &functions = no_functions(),
                                                        const BackendTable &backends = no_backends(),
                                                        std::shared_ptr<const Weights> weights = {});
  const Artifact &artifact() const { return *artifact_; }
  const std::shared_ptr<const Artifact> &shared_artifact() const { return artifact_; }
  const Plan &plan() const { return artifact_->plan; }
  // Parameters that its file has, which are bound in all calls that bind no other. Null: it has none.
  const std::shared_ptr<const Weights> &weights() const { return weights_; }
  ThreadPool &pool() const { return *pool_; }
  const Graph &reference_graph(uint32_t index) const { return *graphs_[index]; }        // of a step of kind reference
  const BoundFunction &function_of(uint32_t index) const { return functions_[index]; }  // of that graph
  // What a registered backend runs it by; null: none does.
  const LoadedProgram *program_of(uint32_t index) const {
    const auto found = programs_.find(index);
    return found == programs_.end() ? nullptr : &found->second;
  }
  const PlanSizes &sizes() const { return *sizes_; }     // sizes.h
  BufferRecycler &outputs() const { return *outputs_; }  // memory.h
  const Place &place() const { return *place_; }         // where its kernels run
  Entries &entries() const { return *entries_; }         // programs for some sizes
  std::vector<Artifact::Entry> made_entries() const;     // those that there are by now
  bool on_device() const { return on_device_; }          // or else here
  // An error when its kernels were not compiled (compile's option `code`).
  Status check_callable() const;
  // An error that names an op whose own function runs, or a function of the host's, on the host's threads alone.
  Status check_any_thread() const;

 private:
  Status load_entries(const OpTable &ops, const OpenDevice &open_device, const FunctionTable &functions,
                      const BackendTable &backends) const;
  Status load_programs(const BackendTable &backends);

  std::shared_ptr<const Artifact> artifact_;
  std::shared_ptr<const Weights> weights_;
  bool on_device_ = false;
  std::shared_ptr<ThreadPool> pool_;
  std::unique_ptr<const Place> place_;
  std::vector<GraphPtr> graphs_;                // the artifact's
  std::vector<BoundFunction> functions_;        // by graph
  std::map<uint32_t, LoadedProgram> programs_;  // likewise
  std::string on_hosts_threads_;                // an op or function that is called on these alone; empty: none
  std::shared_ptr<const PlanSizes> sizes_;
  std::shared_ptr<BufferRecycler> outputs_;
  const std::shared_ptr<Entries> entries_ = std::make_shared<Entries>();
};

// A borrowed or owned array, as a call sees it. Strides in elements; null: row-major.
struct ArrayRef {
  void *data = nullptr;
  DType dtype = DType::f32;
  uint32_t rank = 0;
  const int64_t *shape = nullptr, *strides = nullptr;
  ArrayPlace place = {};
};

// How a run is made.
struct RunRequest {
  bool async = false;   // it is in flight when run returns
  uint64_t stream = 0;  // of the device's driver: the run comes after what it was given, and what follows comes after
                        // the run, which is in flight when run returns; 0: none
  bool steps = false;   // each is timed, told, and a place to end the run; not of one that returns early
  bool returns_early() const { return async || stream != 0; }
};

// Bound slots, resolved shapes, arena. One thread at a time (a second one gets BUSY). Slots number the signature:
// inputs, then parameters, then outputs. Parameters must be bound before run; inputs and outputs may be bound or given
// to run.
//
// A run that returns early is in flight until it is waited for. Until then its arrays stay, and all but runs like it
// (which come after it), clones and names gets BUSY.
//
// An array must have the dtype, dims and strides of its slot at the sizes of this call, and be aligned to its element.
// No output and no input that the graph writes may overlap another array. Errors: type_mismatch for what contradicts
// the signature, invalid_argument for the rest, out_of_range for what a kernel found (all outputs are defined even
// then).
class Call {
 public:
  // Errors: the kernels were not compiled; the device cannot be opened (no_device) or takes no such kernels.
  // `tell` is told of loops, and which entry a run takes; it may end the run (cancelled; what outputs hold is not
  // defined then). `device`: which of the backend's; of the processor 0. `store`: where what is prepared is looked for,
  // and kept.
  static Result<std::unique_ptr<Call>> create(std::shared_ptr<const Executable> executable, TellHost tell = {},
                                              uint32_t device = 0, PreparedParts::Store store = {});
  // Shares parameters and what prepare made, has its own arena, and nothing bound besides. A parameter that is bound
  // later, on either side, is that side's alone.
  Result<std::unique_ptr<Call>> clone() const;

  Result<uint32_t> slot(std::string_view name) const;  // the first of that name: inputs, parameters, outputs
  // Borrowed: must stay valid and unmoved while bound. `keep` (may be null) is held while bound. Binding a parameter
  // again makes the next run prepare again. An array with data null unbinds. Dtype and rank are checked here, the rest
  // by run.
  // `source`: of a parameter, where it lies in a file; none: as source_of tells.
  Status bind(uint32_t slot, const ArrayRef &array, std::shared_ptr<void> keep, std::optional<FileSource> source = {});
  // A parameter to a part of a file. `type`: its data is null. `digest`: of what it has there. Errors: io; as bind.
  Status bind_source(uint32_t slot, ArrayRef type, const std::string &path, uint64_t offset,
                     std::optional<Digest> digest = {});
  // `args` fill the slots that are not bound: inputs, then outputs; outputs may be left out at the end. An output that
  // is left out or has data null is allocated by Kiln and stays with the call until the next run or take.
  Status run(std::span<const ArrayRef> args);
  // Keeps other threads off the call for its life. Not held: one is on it already, which status() tells (busy).
  class Use {
   public:
    explicit Use(const Call &call)
        : flag_(call.in_use_), held_(!call.in_use_.test_and_set(std::memory_order_acquire)) {}
    Use(const Use &) = delete;
    Use &operator=(const Use &) = delete;
    ~Use() {
      if (held_) flag_.clear(std::memory_order_release);
    }
    bool held() const { return held_; }
    Status status() const;

   private:
    std::atomic_flag &flag_;
    const bool held_;
  };
  // The same inside a use that is held: for who prepares `args` in memory that belongs to the call.
  Status run(const Use &use, std::span<const ArrayRef> args, const RunRequest &how = {});
  // The slot that run's argument `index` is for, for messages: "input 'x'".
  std::string describe_argument(size_t index) const;
  // Same shapes as the last run, other addresses, one for each slot that is not bound (null: an output that Kiln
  // allocates).
  Status run_data(std::span<void *const> data, const RunRequest &how = {});
  // Until no run is in flight. What kernels of those since the last wait have found, or what else they came to.
  Status wait();
  // The same, if none is in flight any more; else false, at once.
  Result<bool> poll();
  // Of any thread: has the run end that is under way, as soon as it can.
  void cancel();
  // The shape that a slot had in the last run (inputs, outputs), or of a bound parameter. Valid until the next run or
  // bind.
  Result<std::span<const int64_t>> dims(uint32_t slot) const;
  struct Taken {
    void *data;
    DType dtype;
    std::vector<int64_t> shape, strides;  // strides in elements
    std::shared_ptr<void> owner;          // memory is recycled when the last owner lets go
    ArrayPlace place;
  };
  // An output of the last run, inside a use that is held: wherever it lies. Valid until the next run, or bind.
  Result<ArrayRef> output(const Use &use, uint32_t slot) const;
  // An output that Kiln allocated; the call lets go of it. Of a view of an input: what keeps the input alive.
  Result<Taken> take(uint32_t slot);
  const Executable &executable() const { return *executable_; }
  // What a file has that holds the executable, its entries that are made by now, and the parameters that are bound:
  // what programs prepare of them, and the values of those that anything else reads. All of it stays as long as the use
  // and the bindings. Errors: as run; unimplemented: a parameter is on a device.
  struct Saved {
    std::vector<Artifact::Entry> entries;
    WeightsImage weights;
  };
  Result<Saved> saved(const Use &use) const;
  uint64_t arena_bytes() const;  // now held: arena, prepared, scratch; of a device, all that is there
  std::vector<std::shared_ptr<const PreparedPart>> prepared_parts() const;  // those that there are
  std::vector<uint32_t> stored_parameters() const;  // those that are bound to the executable's file
  // Which program the last run ran: the name of an entry, or "general"; "" before the first run.
  std::string_view ran() const;
  std::vector<StepTimes::Row> step_times() const;  // of the last run, if it was to time them
  Status check_landed() const;                     // busy: a run is in flight
  ~Call();

 private:
  struct Program;  // call_state.h
  struct State;
  Call(std::shared_ptr<const Executable> executable, TellHost tell, uint32_t device, PreparedParts::Store store);
  Status check_output(uint32_t slot) const;
  std::shared_ptr<const Executable> executable_;
  std::unique_ptr<State> state_;
  mutable std::atomic_flag in_use_ = ATOMIC_FLAG_INIT;
};

}  // namespace kiln
