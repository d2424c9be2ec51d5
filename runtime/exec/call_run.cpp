// The way of one run. On the hot path (shapes as in the last run) it compares descriptors, patches addresses that
// changed, and launches; it allocates nothing and handles no strings.
#include <cstdint>

#include "runtime/exec/call_state.h"

namespace kiln {

bool Call::State::inputs_match() const {
  for (uint32_t slot = 0; slot < signature.inputs().end; ++slot)
    if (!sizes.argument(slot).matches(current[slot])) return false;
  return true;
}

Status Call::State::run() {
  completed = false;
  KILN_TRY(provide_outputs());
  KILN_TRY(place_arrays());
  KILN_TRY(place_prepared());
  watch.begin_run();
  Status status = runner->run(addresses);
  // What an index out of range made is 0; all else is as it should be.
  completed = status.ok() || (status.code() == Code::out_of_range && sizes.is_complete());
  return status;
}

Status Call::State::resolve() {
  resolved = completed = addresses_checked = false;
  const std::vector<Binding> &bound = parameters->bindings();
  const uint32_t first_parameter = signature.parameters().begin;
  for (uint32_t p = 0; unbound_parameters && p < bound.size(); ++p)
    if (!bound[p].bound()) return invalid("run: ", signature.describe(first_parameter + p), " is not bound");

  KILN_TRY(sizes.resolve({current.data(), signature.inputs().end}));
  for (uint32_t p = 0; p < bound.size(); ++p) KILN_TRY(sizes.check(first_parameter + p, bound[p].array()));
  KILN_TRY(sizes.check_bounds());
  KILN_TRY(runner->place());
  resolved = true;
  return {};
}

Status Call::State::provide_outputs() {
  for (uint32_t slot = signature.outputs().begin; slot < signature.outputs().end; ++slot) {
    const ResolvedArgument &a = sizes.argument(slot);
    ArrayRef &array = current[slot];
    if (a.late && array.data)
      return invalid(signature.describe(slot), ": its size is known when the run has ended; leave its memory to Kiln");
    const uint64_t bytes = a.late ? a.most_bytes : a.span_bytes;
    if (array.data) {
      if (!a.matches(array)) return sizes.check(slot, array);
      owned[slot].reset();
      continue;
    }
    // What the last run left here nobody has taken: it is overwritten where it fits.
    if (!owned[slot] || owned[slot]->memory.size_bytes() < bytes) {
      owned[slot].reset();
      auto acquired = executable.outputs().acquire(bytes);
      if (!acquired.ok()) return acquired.take_status().with_prefix(str_cat(signature.describe(slot), ": "));
      owned[slot] = std::move(acquired).value();
    }
    array.data = owned[slot]->memory.data();
  }
  return {};
}

Status Call::State::place_arrays() {
  const std::vector<Binding> &bound = parameters->bindings();
  const SlotRange parameter_slots = signature.parameters();
  bool changed = !addresses_checked;
  for (uint32_t slot = 0; slot < signature.count() && !changed; ++slot)
    changed = !parameter_slots.contains(slot) && current[slot].data != addresses[slot];
  if (!changed) return {};

  addresses_checked = false;
  for (uint32_t slot = 0; slot < signature.count(); ++slot) {
    void *address = parameter_slots.contains(slot) ? bound[slot - parameter_slots.begin].data : current[slot].data;
    if (address == addresses[slot]) continue;
    addresses[slot] = address;
    if (!parameter_slots.contains(slot)) runner->set_array(slot, address);
  }
  for (uint32_t slot = 0; slot < signature.count(); ++slot) KILN_TRY(check_address(slot));
  for (uint32_t slot : written) KILN_TRY(check_overlap(slot));
  addresses_checked = true;
  return {};
}

Status Call::State::check_address(uint32_t slot) const {
  const ResolvedArgument &a = sizes.argument(slot);
  if (a.span_bytes == 0 || a.late) return {};
  if (!addresses[slot]) return invalid(signature.describe(slot), ": data is null");
  if (reinterpret_cast<uintptr_t>(addresses[slot]) % size_of(a.dtype) != 0)
    return invalid(signature.describe(slot), ": data is not aligned to its element of ", size_of(a.dtype), " bytes");
  return {};
}

// A slot that is written shares no byte with any other.
Status Call::State::check_overlap(uint32_t slot) const {
  // Memory of late ones is Kiln's, which overlaps nothing; their spans are of an earlier run.
  if (sizes.argument(slot).late) return {};
  const auto begin = reinterpret_cast<uintptr_t>(addresses[slot]);
  const uintptr_t end = begin + sizes.argument(slot).span_bytes;
  if (begin == end) return {};
  for (uint32_t other = 0; other < signature.count(); ++other) {
    if (other == slot || sizes.argument(other).late) continue;
    const auto other_begin = reinterpret_cast<uintptr_t>(addresses[other]);
    const uintptr_t other_end = other_begin + sizes.argument(other).span_bytes;
    if (begin < other_end && other_begin < end && other_begin != other_end)
      return invalid(signature.describe(slot), " overlaps ", signature.describe(other), "; a run writes it");
  }
  return {};
}

Status Call::State::place_prepared() {
  if (prepared_placed) return {};
  KILN_TRY(parameters->prepare(executable, signature, sizes));
  runner->set_prepared(parameters->prepared());
  prepared_placed = true;
  return {};
}

}  // namespace kiln
