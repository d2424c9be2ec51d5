// What a call holds between runs. call.cpp is its public face, call_run.cpp the way of one run.
#pragma once
#include <memory>
#include <vector>

#include "runtime/exec/executable.h"
#include "runtime/exec/loop_watch.h"
#include "runtime/exec/memory.h"
#include "runtime/exec/parameters.h"
#include "runtime/exec/place.h"
#include "runtime/exec/signature.h"

namespace kiln {

struct Call::State {
  State(const Executable &executable, AskHost ask);

  // ---- one run of what is in `current`, in this order
  Status resolve();          // sizes and memory for them; only when the shapes of inputs differ from the last run's
  Status run();              // the following, then the steps
  Status provide_outputs();  // Kiln's memory for outputs that have none; the others' descriptors are checked
  Status place_arrays();     // their addresses, when one has changed: null, alignment, overlap
  Status place_prepared();

  bool inputs_match() const;  // the last run's sizes hold for the inputs in `current`
  Status check_address(uint32_t slot) const;
  Status check_overlap(uint32_t slot) const;
  // The parameters, copied first if a clone has them, too.
  Parameters &own_parameters();
  void list_open_slot(uint32_t slot);  // or takes it off the list, as it is bound now

  const Executable &executable;
  const Signature signature;
  std::vector<uint32_t> written;  // slots that a run writes: outputs, and inputs of a copy_ epilogue

  ResolvedSizes sizes;
  LoopWatch watch;
  std::unique_ptr<Runner> runner;  // set before the first run
  bool resolved = false;           // the sizes, and what the runner placed, are those of one set of shapes
  bool completed = false;  // and of the last run, which came to its end: what outputs hold is its, late sizes too

  std::vector<Binding> bindings;     // by slot; of inputs and outputs
  std::vector<uint32_t> open_slots;  // inputs, then outputs, that are not bound: filled by run
  std::shared_ptr<Parameters> parameters;
  bool parameters_shared = false;
  uint32_t unbound_parameters = 0;
  bool prepared_placed = false;

  std::vector<ArrayRef> current;   // by slot; of inputs and outputs. Descriptors given to run die with it
  std::vector<void *> addresses;   // by slot; the runner has them
  bool addresses_checked = false;  // at the current sizes
  std::vector<std::shared_ptr<OutputBuffer>> owned;  // by slot; of outputs that Kiln allocated
};

}  // namespace kiln
