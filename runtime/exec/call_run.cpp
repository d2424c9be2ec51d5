// The way of one run. On the hot path (shapes as in the last run) it compares descriptors, patches addresses that
// changed, and launches; it allocates nothing and handles no strings.
#include <cstdint>

#include "runtime/exec/call_state.h"

namespace kiln {

bool Call::Program::matches(std::span<const ArrayRef> arrays) const {
  for (uint32_t slot = 0; slot < signature.inputs().end; ++slot)
    if (!sizes.argument(slot).matches(arrays[slot])) return false;
  return true;
}

Status Call::State::run() {
  completed = false;
  KILN_TRY(provide_outputs());
  KILN_TRY(place_arrays());
  KILN_TRY(place_prepared());
  watch.begin_run();
  Status status = now->runner->run(now->addresses);
  // What an index out of range made is 0; all else is as it should be.
  completed = status.ok() || (status.code() == Code::out_of_range && now->sizes.is_complete());
  return status;
}

// Switching to a program that was at these sizes last costs a look at the guards, and at the shapes.
Status Call::State::choose() {
  seen = executable.entries().made_count();
  const size_t entry = executable.entries().pick({current.data(), programs[0]->signature.inputs().end});
  if (entry != Entries::none && (programs[entry + 1] || add_program(entry + 1).ok())) {
    now = programs[entry + 1].get();
    if (resolve(*now).ok()) return {};
  }
  // Which also tells, of sizes that do not fit, by which symbols.
  now = programs[0].get();
  return resolve(*now);
}

Status Call::State::add_program(size_t number) {
  const Executable &exe = number == 0 ? executable : *executable.entries()[number - 1].executable();
  if (number != 0) programs[number] = std::make_unique<Program>(exe);
  Program &program = *programs[number];
  Result<std::unique_ptr<Runner>> runner = exe.place().make_runner(exe, program.signature, program.sizes, watch);
  if (!runner.ok() && number != 0) programs[number] = nullptr;
  KILN_ASSIGN(program.runner, std::move(runner));
  return {};
}

Status Call::State::resolve(Program &program) {
  if (program.resolved && program.matches(current)) return {};
  program.resolved = completed = program.addresses_checked = false;
  const std::vector<Binding> &bound = parameters->bindings();
  const uint32_t first_parameter = program.signature.parameters().begin;
  for (uint32_t p = 0; unbound_parameters && p < bound.size(); ++p)
    if (!bound[p].bound()) return invalid("run: ", program.signature.describe(first_parameter + p), " is not bound");

  KILN_TRY(program.sizes.resolve({current.data(), program.signature.inputs().end}));
  for (uint32_t p = 0; p < bound.size(); ++p) KILN_TRY(program.sizes.check(first_parameter + p, bound[p].array()));
  KILN_TRY(program.sizes.check_bounds());
  KILN_TRY(program.runner->place());
  program.resolved = true;
  return {};
}

Status Call::State::provide_outputs() {
  Program &p = *now;
  for (uint32_t slot = p.signature.outputs().begin; slot < p.signature.outputs().end; ++slot) {
    const ResolvedArgument &a = p.sizes.argument(slot);
    ArrayRef &array = current[slot];
    if (a.late && array.data)
      return invalid(p.signature.describe(slot),
                     ": its size is known when the run has ended; leave its memory to Kiln");
    const uint64_t bytes = a.late ? a.most_bytes : a.span_bytes;
    if (array.data) {
      if (!a.matches(array)) return p.sizes.check(slot, array);
      owned[slot].reset();
      continue;
    }
    // What the last run left here nobody has taken: it is overwritten where it fits.
    if (!owned[slot] || owned[slot]->memory.size_bytes() < bytes) {
      owned[slot].reset();
      auto acquired = executable.outputs().acquire(bytes);
      if (!acquired.ok()) return acquired.take_status().with_prefix(str_cat(p.signature.describe(slot), ": "));
      owned[slot] = std::move(acquired).value();
    }
    array.data = owned[slot]->memory.data();
  }
  return {};
}

// Where the memory of an array begins, as kernels take it.
void *Call::State::lowest(uint32_t slot, void *first) const {
  return first ? static_cast<uint8_t *>(first) - now->sizes.argument(slot).below_bytes : nullptr;
}

Status Call::State::place_arrays() {
  Program &p = *now;
  const std::vector<Binding> &bound = parameters->bindings();
  const SlotRange parameter_slots = p.signature.parameters();
  bool changed = !p.addresses_checked;
  for (uint32_t slot = 0; slot < p.signature.count() && !changed; ++slot)
    changed = !parameter_slots.contains(slot) && lowest(slot, current[slot].data) != p.addresses[slot];
  if (!changed) return {};

  p.addresses_checked = false;
  for (uint32_t slot = 0; slot < p.signature.count(); ++slot) {
    void *address =
        lowest(slot, parameter_slots.contains(slot) ? bound[slot - parameter_slots.begin].data : current[slot].data);
    if (address == p.addresses[slot]) continue;
    p.addresses[slot] = address;
    if (!parameter_slots.contains(slot)) p.runner->set_array(slot, address);
  }
  for (uint32_t slot = 0; slot < p.signature.count(); ++slot) KILN_TRY(check_address(slot));
  for (uint32_t slot : p.written) KILN_TRY(check_overlap(slot));
  p.addresses_checked = true;
  return {};
}

Status Call::State::check_address(uint32_t slot) const {
  const Program &p = *now;
  const ResolvedArgument &a = p.sizes.argument(slot);
  if (a.span_bytes == 0 || a.late) return {};
  if (!p.addresses[slot]) return invalid(p.signature.describe(slot), ": data is null");
  if (reinterpret_cast<uintptr_t>(p.addresses[slot]) % size_of(a.dtype) != 0)
    return invalid(p.signature.describe(slot), ": data is not aligned to its element of ", size_of(a.dtype), " bytes");
  return {};
}

// A slot that is written shares no byte with any other.
Status Call::State::check_overlap(uint32_t slot) const {
  const Program &p = *now;
  // Memory of late ones is Kiln's, which overlaps nothing; their spans are of an earlier run.
  if (p.sizes.argument(slot).late) return {};
  const auto begin = reinterpret_cast<uintptr_t>(p.addresses[slot]);
  const uintptr_t end = begin + p.sizes.argument(slot).span_bytes;
  if (begin == end) return {};
  for (uint32_t other = 0; other < p.signature.count(); ++other) {
    if (other == slot || p.sizes.argument(other).late) continue;
    const auto other_begin = reinterpret_cast<uintptr_t>(p.addresses[other]);
    const uintptr_t other_end = other_begin + p.sizes.argument(other).span_bytes;
    if (begin < other_end && other_begin < end && other_begin != other_end)
      return invalid(p.signature.describe(slot), " overlaps ", p.signature.describe(other), "; a run writes it");
  }
  return {};
}

Status Call::State::place_prepared() {
  Program &p = *now;
  if (p.prepared_placed) return {};
  KILN_ASSIGN(const Prepared *prepared, parameters->prepare(p.executable, p.signature, p.sizes));
  p.runner->set_prepared(*prepared);
  p.prepared_placed = true;
  return {};
}

}  // namespace kiln
