// Where the kernels of an executable run: this processor (host_place.h) or a device (device_place.h). What a call does
// besides (binding, checking, resolving sizes) is the same everywhere, and asks the place for three things: to prepare
// parameters, to place what a run needs in memory, and to run.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "jit/base/status.h"
#include "runtime/exec/array_place.h"
#include "runtime/io/file_source.h"

namespace kiln {

class Executable;
class LoopWatch;
class PreparedParts;
class ResolvedSizes;
class Signature;

// A parameter's array, as it was bound.
struct ParameterArray {
  void *data = nullptr;    // null: there is none, or only what was prepared of it
  bool is_stored = false;  // it is that of the artifact's file
  ArrayPlace place;
  const std::optional<FileSource> *source = nullptr;  // never null: where it lies in a file, if it does
};

// The parameters of one binding where the kernels read them, and what the plan's prepare steps made of them. Addresses
// are the place's; calls only read what is there.
struct Prepared {
  std::vector<void *> parameters, storages;                 // by the plan's numbers of parameters and prepared storages
  uint64_t size_bytes = 0;                                  // of memory that is theirs alone, and of no part
  std::vector<std::shared_ptr<const void>> memory = {};     // which holds them
  std::map<uint32_t, std::shared_ptr<void>> programs = {};  // by step: what its backend made of its parameters
};

// One call at its place: its steps, and the memory that they use. One thread at a time.
class Runner {
 public:
  Runner() = default;
  Runner(const Runner &) = delete;
  Runner &operator=(const Runner &) = delete;
  virtual ~Runner() = default;

  // Memory for a run at the call's sizes, when they have changed. Errors: out_of_memory; internal for a damaged plan.
  virtual Status place() = 0;
  // The only memory beside the host's that arrays may be in: then the steps use them where they are. The host's: none.
  virtual ArrayPlace own_place() const = 0;
  // From now on the array of an input or output is at `data`, in the host's memory or in own_place().
  virtual void set_array(uint32_t slot, void *data, bool in_own_place) = 0;
  virtual void set_prepared(const Prepared &prepared) = 0;
  // Runs all steps, after the four above. `arrays` has the address of each slot of the signature. Returns when the
  // outputs are there, also when a kernel found an error (out_of_range). No run is in flight.
  virtual Status run(std::span<void *const> arrays) = 0;

  // The same, but returns early, with a run in flight, unless it failed: `arrays` stay until finish. `stream`: as in
  // RunRequest; refused where there are none.
  virtual Status start(std::span<void *const> arrays, uint64_t stream) = 0;
  // Whether a run may be started while another one is in flight, and comes after it.
  virtual bool queues() const = 0;
  // Whether finish would return at once.
  virtual Result<bool> is_over() = 0;
  // Until no run is in flight. As run.
  virtual Status finish() = 0;
  virtual uint64_t size_bytes() const = 0;  // of the memory that it holds
};

// Immutable, or locked inside. Threads: any.
class Place {
 public:
  Place() = default;
  Place(const Place &) = delete;
  Place &operator=(const Place &) = delete;
  virtual ~Place() = default;

  // Whether it can run what it has. code incompatible: that is for a processor that this one is not.
  virtual Status check() const { return {}; }
  // For a call; what it refers to outlives it. The sizes need not be resolved yet. Loops tell `watch` of their turns.
  // `device`: which one of the backend's.
  virtual Result<std::unique_ptr<Runner>> make_runner(const Executable &executable, const Signature &signature,
                                                      ResolvedSizes &sizes, LoopWatch &watch,
                                                      uint32_t device) const = 0;
  // Runs those of the plan's prepare steps whose results are not among `parts`; they are then. `parameters` must stay
  // as long as the result, and be in the host's memory or where the runners of the device have theirs.
  // `parts_alone`: only for them, which may be kept without a call; those that lack a parameter are left out.
  virtual Result<Prepared> prepare(const Executable &executable, const Signature &signature, const ResolvedSizes &sizes,
                                   std::span<const ParameterArray> parameters, uint32_t device, PreparedParts &parts,
                                   bool parts_alone) const = 0;
};

}  // namespace kiln
