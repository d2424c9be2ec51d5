// What a call holds between runs. call.cpp is its public face, call_run.cpp the way of one run.
#pragma once
#include <memory>
#include <vector>

#include "runtime/exec/device_call.h"
#include "runtime/exec/executable.h"
#include "runtime/exec/memory.h"
#include "runtime/exec/parameters.h"
#include "runtime/exec/signature.h"
#include "runtime/exec/steps.h"

namespace kiln {

struct Call::State {
  explicit State(const Executable &executable);
  Status open_device();  // of an executable on a device, before the first run

  // ---- one run, in this order
  Status run();              // what is in `current`
  Status resolve();          // sizes, steps and arena, when the shapes of inputs differ from the last run's
  Status provide_outputs();  // Kiln's memory for outputs that have none; the others' descriptors are checked
  Status check_arena() const;
  Status place_arena();
  Status place_arrays();  // null, alignment, overlap; then the addresses into the steps
  Status place_prepared();

  bool inputs_match() const;  // the last run's sizes hold for the inputs in `current`
  Status check_address(uint32_t slot) const;
  Status check_overlap(uint32_t slot) const;
  // The parameters, copied first if a clone has them, too.
  Parameters &own_parameters();
  void list_open_slot(uint32_t slot);  // or takes it off the list, as it is bound now

  const Executable &executable;
  const Signature signature;
  std::vector<std::vector<uint32_t>> plan_slots;  // of each slot of the signature
  std::vector<uint32_t> written;                  // slots that a run writes: outputs, and inputs of a copy_ epilogue

  ResolvedSizes sizes;
  ReadySteps steps;
  Areas arena;
  std::unique_ptr<DeviceCall> device;  // null: this processor runs the kernels
  bool resolved = false;               // sizes, steps and arena are those of one set of shapes

  std::vector<Binding> bindings;     // by slot; of inputs and outputs
  std::vector<uint32_t> open_slots;  // inputs, then outputs, that are not bound: filled by run
  std::shared_ptr<Parameters> parameters;
  bool parameters_shared = false;
  uint32_t unbound_parameters = 0;
  bool prepared_placed = false;

  std::vector<ArrayRef> current;   // by slot; of inputs and outputs. Descriptors given to run die with it
  std::vector<void *> addresses;   // by slot; in the steps now
  bool addresses_checked = false;  // at the current sizes
  std::vector<std::shared_ptr<OutputBuffer>> owned;  // by slot; of outputs that Kiln allocated
};

}  // namespace kiln
