// What a call holds between runs. call.cpp is its public face, call_run.cpp the way of one run.
#pragma once
#include <memory>
#include <utility>
#include <vector>

#include "runtime/exec/executable.h"
#include "runtime/exec/loop_watch.h"
#include "runtime/exec/memory.h"
#include "runtime/exec/parameters.h"
#include "runtime/exec/place.h"
#include "runtime/exec/presented.h"
#include "runtime/exec/signature.h"

namespace kiln {

// One of the executable's programs, as the call runs it: the one for all sizes, or an entry that it met. Slots are the
// same in all of them.
struct Call::Program {
  explicit Program(const Executable &executable);

  // Null: an input, a parameter, or an output that is row-major.
  const PresentedOutput *presented_as(uint32_t slot) const {
    return presented.empty() ? nullptr : find_presented(slot);  // nearly always there are none
  }
  const PresentedOutput *find_presented(uint32_t slot) const;
  PresentedOutput *presented_as(uint32_t slot) {
    return const_cast<PresentedOutput *>(std::as_const(*this).presented_as(slot));
  }
  bool matches(std::span<const ArrayRef> arrays) const;  // the last run's sizes hold for these inputs

  const Executable &executable;
  const Signature signature;
  std::vector<uint32_t> written;  // slots that a run writes: outputs, inputs of a copy_ epilogue, donated ones
  ResolvedSizes sizes;
  std::vector<PresentedOutput> presented;
  std::unique_ptr<Runner> runner;            // set before the first run
  bool resolved = false;                     // the sizes, and what the runner placed, are those of one set of shapes
  std::shared_ptr<const Prepared> prepared;  // that the runner has
  uint64_t prepared_version = 0;             // of the parameters then; 0: it has none
  std::vector<void *> addresses;             // by slot; the runner has them
  std::vector<bool> on_device;               // by slot, likewise: the address is of its own place
  bool addresses_checked = false;            // at the current sizes
};

struct Call::State {
  State(const Executable &executable, TellHost tell, uint32_t device, PreparedParts::Store store);
  ~State();  // lands what is in flight

  // ---- one run of what is in `current`, in this order
  Status make_way(const RunRequest &how);  // for it: what is in flight lands, unless the run can come after it
  Status choose();                    // the program, with sizes and memory for them; only when shapes or entries differ
  Status run(const RunRequest &how);  // the following, then the steps
  Status provide_outputs();           // Kiln's memory for outputs that have none; the others' descriptors are checked
  Status place_arrays();              // their addresses, when one has changed: null, alignment, overlap
  Status place_prepared();
  Status end_run(Status status);  // which the steps came to: outputs are there, or not

  // Waits for what is in flight, and keeps what it came to for land().
  void touch_down();
  // The same; tells what runs in flight came to that was not told yet.
  Status land();

  // Whether the program is the one for the inputs in `current`, at their sizes.
  bool is_chosen() const { return now->resolved && seen == executable.entries().made_count() && now->matches(current); }
  Status add_program(size_t number);
  Status pick();                   // sets the program
  Status tell_entry();             // the host, which program it is, if that is another one than it knows
  std::string_view entry() const;  // the program's name
  Status resolve(Program &program);
  Status provide_output(uint32_t slot);
  void *place_of(uint32_t slot) const;  // where steps find it
  ArrayPlace array_place_of(uint32_t slot) const;
  Status check_place(uint32_t slot, const ArrayPlace &place) const;
  Status check_address(uint32_t slot) const;
  struct Memory {
    uintptr_t begin, end;
  };
  Memory memory_of(uint32_t slot) const;  // of the host's array; what is Kiln's, and views, have none
  Status check_overlap(uint32_t slot) const;
  // The parameters, copied first if a clone has them, too.
  Parameters &own_parameters();
  void list_open_slot(uint32_t slot);  // or takes it off the list, as it is bound now

  const Executable &executable;
  const uint32_t device;
  LoopWatch watch;
  // The general one, then those of the entries, by number; null: not met yet.
  std::vector<std::unique_ptr<Program>> programs;
  Program *now;                   // that the last run ran, or tried to
  const Program *told = nullptr;  // of which the host knows
  uint32_t seen = 0;              // how many entries there were when it was chosen
  bool completed = false;         // the last run came to its end: what outputs hold is its, late sizes too
  bool in_flight = false;         // a run of `now`'s runner
  uint64_t stream = 0;            // that it is on
  Status untold;                  // what a run in flight came to

  std::vector<Binding> bindings;     // by slot; of inputs and outputs
  std::vector<uint32_t> open_slots;  // inputs, then outputs, that are not bound: filled by run
  std::shared_ptr<Parameters> parameters;
  bool parameters_shared = false;
  uint32_t unbound_parameters = 0;

  std::vector<ArrayRef> current;  // by slot; of inputs and outputs. Descriptors given to run die with it
  std::vector<std::shared_ptr<OutputBuffer>> owned;  // by slot; of outputs that Kiln allocated
};

}  // namespace kiln
