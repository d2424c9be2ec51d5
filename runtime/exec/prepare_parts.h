// What a plan prepares, in parts that can be made, kept and found each by itself: two steps are of one part if they
// share memory that they prepare. Mostly a part is one parameter in one layout.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "jit/base/hash.h"
#include "jit/base/status.h"
#include "runtime/cache/prepared.h"
#include "runtime/cache/weights.h"
#include "runtime/exec/place.h"
#include "runtime/plan/plan.h"

namespace kiln {

class Executable;
class ResolvedSizes;
class Signature;

struct PreparePart {
  std::vector<uint32_t> steps;       // of the plan's `prepare`, in order
  std::vector<uint32_t> storages;    // that it prepares: those that calls read, then what is needed on the way alone
  uint32_t kept = 0;                 // how many of these calls read
  std::vector<uint32_t> parameters;  // that it is made of, as its steps come to them
};
std::vector<PreparePart> prepare_parts(const Plan &plan);

// What makes the part: kernels, sizes, constants, types. Of which parameters, it does not say; equal recipes make equal
// bytes of equal parameters.
Digest recipe_of(const PreparePart &part, const Executable &executable, const Signature &signature,
                 const ResolvedSizes &sizes);
// The same, of these numbers of parameters.
Digest name_of(const PreparePart &part, const Digest &recipe);

// Where what calls read of a part lies, in the bytes that are kept of it.
struct KeptLayout {
  std::vector<uint64_t> offsets, sizes;
  uint64_t bytes = 0;
  KeptLayout(const PreparePart &part, const Executable &executable, const ResolvedSizes &sizes);
};

// A part that is there: made, a record, or in the artifact's file.
struct PreparedPart {
  std::vector<uint32_t> parameters;
  std::vector<void *> storages;  // of those that calls read
  std::shared_ptr<const void> memory;
  uint64_t private_bytes = 0, mapped_bytes = 0;
  std::shared_ptr<const PreparedRecords::Mapped> record;  // null: it is none
  Outcome outcome = Outcome::bypass;                      // of the search for a record
  std::string reason;
  uint32_t steps = 0;  // that made it
};

// The parts of one binding: programs of an executable that make the same of the same parameters share it. And where to
// look for those that other processes made. One thread at a time.
class PreparedParts {
 public:
  // What a context gives its calls. Functions: on any thread, with no lock held that the host's code could take.
  struct Store {
    PreparedRecords *records = nullptr;  // null: there are none, for this reason
    std::string reason = "records are off";
    std::function<void(std::function<Status()>)> in_background = {};
    std::function<void(std::string)> warn = {};  // keeps what is to be told
    std::function<Status()> tell = {};           // tells the host, on this thread; code cancelled
    const std::atomic<bool> *stop = nullptr;     // what may be left undone is
  };
  // `weights` (may be null): those of the artifact's file.
  PreparedParts(Store store, const std::shared_ptr<const Weights> &weights);

  struct Search {
    std::shared_ptr<const PreparedPart> part = nullptr;  // null: it is to be made
    Digest name = {};                                    // of the part among these
    Digest key = {};                                     // of its record
    Outcome outcome = Outcome::bypass;
    std::string reason = {};
  };
  // What is there of the part, or is found now.
  Search find(const PreparePart &part, const Executable &executable, const Signature &signature,
              const ResolvedSizes &sizes, std::span<const ParameterArray> parameters);
  // It was made instead: what calls read lies in its memory from the first storage on. Written in the background.
  void made(const Search &search, PreparedPart part, uint64_t bytes, std::span<const ParameterArray> parameters);

  // The part that is there.
  std::shared_ptr<const PreparedPart> get(const Digest &name) const;

  void drop(uint32_t parameter);  // what was made of it
  void drop(const std::shared_ptr<const PreparedPart> &part);
  std::vector<std::shared_ptr<const PreparedPart>> all() const;
  const Store &store() const { return store_; }

 private:
  Search look_up(const PreparePart &part, const Digest &recipe, const Executable &executable,
                 const ResolvedSizes &sizes, std::span<const ParameterArray> parameters) const;

  // In the artifact's file. Null: it is not there, or not of these parameters.
  std::shared_ptr<const PreparedPart> stored(const Digest &name, const PreparePart &part, const Executable &executable,
                                             const ResolvedSizes &sizes,
                                             std::span<const ParameterArray> parameters) const;

  Store store_;
  std::shared_ptr<const Weights> weights_;
  std::map<Digest, const WeightsTable::Part *> in_file_;  // theirs
  std::map<Digest, std::shared_ptr<const PreparedPart>> parts_;
};

}  // namespace kiln
