// The way of one run. On the hot path (shapes as in the last run) it compares descriptors, patches addresses that
// changed, and launches; it allocates nothing and handles no strings.
#include <algorithm>
#include <cstdint>

#include "runtime/exec/call_state.h"

namespace kiln {

const PresentedOutput *Call::Program::find_presented(uint32_t slot) const {
  const auto found = std::ranges::find(presented, slot, &PresentedOutput::slot);
  return found == presented.end() ? nullptr : &*found;
}

bool Call::Program::matches(std::span<const ArrayRef> arrays) const {
  for (uint32_t slot = 0; slot < signature.inputs().end; ++slot)
    if (!sizes.argument(slot).matches(arrays[slot])) return false;
  return true;
}

// Runs in flight share sizes and working memory, which a device uses in their order; what the host does when a run has
// ended is done for one alone.
Status Call::State::make_way(const RunRequest &how) {
  if (!in_flight) return {};
  if (how.stream != stream) {
    const auto name = [](uint64_t of) { return of ? str_cat("stream ", of) : "Kiln's own stream"; };
    return error(Code::busy, "run: a run of the call is in flight on ", name(stream), ", and this one is for ",
                 name(how.stream), "; wait for it first");
  }
  const auto is_owned = [](const std::shared_ptr<OutputBuffer> &output) { return output != nullptr; };
  if (how.returns_early() && now->runner->queues() && now->presented.empty() && std::ranges::none_of(owned, is_owned))
    return {};
  touch_down();
  return {};
}

void Call::State::touch_down() {
  if (!std::exchange(in_flight, false)) return;
  Status status = end_run(now->runner->finish());
  if (untold.ok()) untold = std::move(status);
}

Status Call::State::land() {
  touch_down();
  return std::exchange(untold, Status());
}

Call::State::~State() {
  try {
    touch_down();
  } catch (...) {  // no memory for its errors, which nobody asks for
  }
}

Status Call::State::run(const RunRequest &how) {
  completed = false;
  KILN_TRY(provide_outputs());
  KILN_TRY(place_arrays());
  KILN_TRY(place_prepared());
  if (how.steps || watch.times_steps()) watch.time_steps(how.steps, now->executable.plan());
  watch.renew();
  if (!how.returns_early()) return end_run(now->runner->run(now->addresses));
  Status started = now->runner->start(now->addresses, how.stream);
  if (started.ok()) {
    in_flight = true;
    stream = how.stream;
  } else if (!in_flight) {
    (void)now->runner->finish();  // what a part of a run came to is nobody's
  }
  return started;
}

Status Call::State::end_run(Status status) {
  if (status.ok()) parameters->verify_later();
  // What a kernel made by an index out of range is 0; all else is as it should be.
  completed = status.ok() || (status.code() == Code::out_of_range && now->sizes.is_complete() && !watch.stopped());
  if (completed)
    for (PresentedOutput &output : now->presented) output.present(executable.pool(), current[output.input()].data);
  return status;
}

Status Call::State::choose() {
  touch_down();
  KILN_TRY(pick());
  return tell_entry();
}

// Switching to a program that was at these sizes last costs a look at the guards, and at the shapes.
Status Call::State::pick() {
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

std::string_view Call::State::entry() const {
  const auto at = std::ranges::find(programs, now, &std::unique_ptr<Program>::get);
  if (at == programs.begin()) return "general";
  return executable.entries()[at - programs.begin() - 1].name();
}

Status Call::State::tell_entry() {
  if (programs.size() == 1 || told == now || !watch.tell()) return {};
  told = now;
  if (!watch.tell()(Event::entry, str_cat("entry '", entry(), "'"))) return {};
  told = nullptr;
  now->resolved = false;  // so that the next run of these sizes chooses, and tells, again
  return error(Code::cancelled, "the host cancelled the run of entry '", entry(), "'");
}

Status Call::State::add_program(size_t number) {
  const Executable &exe = number == 0 ? executable : *executable.entries()[number - 1].executable();
  if (number != 0) programs[number] = std::make_unique<Program>(exe);
  Program &program = *programs[number];
  Result<std::unique_ptr<Runner>> runner =
      exe.place().make_runner(exe, program.signature, program.sizes, watch, device);
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
  for (const uint32_t input : program.executable.plan().written_inputs)
    KILN_TRY(program.sizes.check_written(input, program.sizes.argument(input).strides));
  for (PresentedOutput &output : program.presented) KILN_TRY(output.resolve());
  KILN_TRY(program.runner->place());
  program.resolved = true;
  return {};
}

inline Status Call::State::provide_output(uint32_t slot) {
  Program &p = *now;
  const ResolvedArgument &a = p.sizes.argument(slot);
  ArrayRef &array = current[slot];
  PresentedOutput *const as = p.presented_as(slot);
  if (as && as->is_view()) return {};
  if (a.late && array.data)
    return invalid(p.signature.describe(slot), ": its size is known when the run has ended; leave its memory to Kiln");
  if (as) KILN_TRY(as->set_array(array));
  const uint64_t bytes = a.late ? a.most_bytes : as ? as->span_bytes() : a.span_bytes;
  if (array.data) {
    if (!as && !a.matches(array)) return p.sizes.check(slot, array);
    owned[slot].reset();
  } else {
    // What the last run left here nobody has taken: it is overwritten where it fits.
    if (!owned[slot] || owned[slot]->memory.size_bytes() < bytes) {
      owned[slot].reset();
      auto acquired = executable.outputs().acquire(bytes);
      if (!acquired.ok()) return acquired.take_status().with_prefix(str_cat(p.signature.describe(slot), ": "));
      owned[slot] = std::move(acquired).value();
    }
    array.data = owned[slot]->memory.data() + (as && !a.late ? as->below_bytes() : 0);
  }
  if (!as) return {};
  if (as->move_to(array.data)) p.addresses_checked = false;
  KILN_TRY(as->make_room(executable.outputs()));
  if (as->is_apart() && !array.place.is_host())
    return error(Code::unimplemented, p.signature.describe(slot), " is on ", text_of(array.place),
                 ", where outputs are row-major; it has other strides");
  return {};
}

Status Call::State::provide_outputs() {
  const SlotRange outputs = now->signature.outputs();
  for (uint32_t slot = outputs.begin; slot < outputs.end; ++slot) KILN_TRY(provide_output(slot));
  return {};
}

// Of an array: where its memory begins, as kernels take it.
inline void *Call::State::place_of(uint32_t slot) const {
  const Program &p = *now;
  if (const PresentedOutput *const as = p.presented_as(slot)) return as->room();
  const SlotRange parameters_of = p.signature.parameters();
  void *const first =
      parameters_of.contains(slot) ? parameters->bindings()[slot - parameters_of.begin].data : current[slot].data;
  return first ? static_cast<uint8_t *>(first) - p.sizes.argument(slot).below_bytes : nullptr;
}

// Of the array of an input or output, as steps take it.
inline ArrayPlace Call::State::array_place_of(uint32_t slot) const {
  const PresentedOutput *const as = now->presented_as(slot);
  return as && as->is_apart() ? ArrayPlace() : current[slot].place;
}

Status Call::State::check_place(uint32_t slot, const ArrayPlace &place) const {
  if (place.is_host()) return {};
  const ArrayPlace own = now->runner->own_place();
  if (place == own) return {};
  return error(Code::no_device, now->signature.describe(slot), " is on ", text_of(place), ", expected ",
               own.is_host() ? str_cat(text_of(own), ", for backend ", executable.artifact().backend)
                             : str_cat(text_of(own), ", or ", text_of(ArrayPlace())));
}

Status Call::State::place_arrays() {
  Program &p = *now;
  const SlotRange parameter_slots = p.signature.parameters();
  bool changed = !p.addresses_checked;
  for (uint32_t slot = 0; slot < p.signature.count() && !changed; ++slot) {
    if (parameter_slots.contains(slot)) continue;
    const bool on_device = !array_place_of(slot).is_host();
    changed = place_of(slot) != p.addresses[slot] || on_device != p.on_device[slot] ||
              (on_device && !check_place(slot, current[slot].place).ok());
  }
  if (!changed) return {};

  p.addresses_checked = false;
  for (uint32_t slot = 0; slot < p.signature.count(); ++slot) {
    void *const address = place_of(slot);
    if (parameter_slots.contains(slot)) {
      p.addresses[slot] = address;
      continue;
    }
    KILN_TRY(check_place(slot, current[slot].place));
    const bool on_device = !array_place_of(slot).is_host();
    if (address == p.addresses[slot] && on_device == p.on_device[slot]) continue;
    p.addresses[slot] = address;
    p.on_device[slot] = on_device;
    p.runner->set_array(slot, address, on_device);
  }
  for (uint32_t slot = 0; slot < p.signature.count(); ++slot) KILN_TRY(check_address(slot));
  for (uint32_t slot : p.written) KILN_TRY(check_overlap(slot));
  p.addresses_checked = true;
  return {};
}

Call::State::Memory Call::State::memory_of(uint32_t slot) const {
  const Program &p = *now;
  const ResolvedArgument &a = p.sizes.argument(slot);
  // Memory of late ones is Kiln's, which overlaps nothing; their spans are of an earlier run.
  const SlotRange parameter_slots = p.signature.parameters();
  const bool is_apart =
      parameter_slots.contains(slot) && parameters->bindings()[slot - parameter_slots.begin].is_stored;
  if (a.late || !a.made || is_apart) return {0, 0};
  const PresentedOutput *const as = p.presented_as(slot);
  const auto begin =
      as ? reinterpret_cast<uintptr_t>(as->data()) - as->below_bytes() : reinterpret_cast<uintptr_t>(p.addresses[slot]);
  return {begin, begin + (as ? as->span_bytes() : a.span_bytes)};
}

Status Call::State::check_address(uint32_t slot) const {
  const Program &p = *now;
  const auto [begin, end] = memory_of(slot);
  const uint32_t element = size_of(p.sizes.argument(slot).dtype);
  if (begin == end) return {};
  if (!p.addresses[slot]) return invalid(p.signature.describe(slot), ": data is null");
  if (begin % element != 0)
    return invalid(p.signature.describe(slot), ": data is not aligned to its element of ", element, " bytes");
  return {};
}

// A slot that is written shares no byte with any other.
Status Call::State::check_overlap(uint32_t slot) const {
  const Program &p = *now;
  const auto [begin, end] = memory_of(slot);
  if (begin == end) return {};
  for (uint32_t other = 0; other < p.signature.count(); ++other) {
    if (other == slot) continue;
    const auto [other_begin, other_end] = memory_of(other);
    if (begin < other_end && other_begin < end && other_begin != other_end)
      return invalid(p.signature.describe(slot), " overlaps ", p.signature.describe(other), "; a run writes it");
  }
  return {};
}

Status Call::State::place_prepared() {
  Program &p = *now;
  while (p.prepared_version != parameters->version()) {
    const uint64_t version = parameters->version();
    Result<std::shared_ptr<const Prepared>> prepared = parameters->prepare(p.executable, p.signature, p.sizes, device);
    KILN_TRY(parameters->tell());  // first: it may be why they are not to be had
    KILN_ASSIGN(p.prepared, std::move(prepared));
    p.runner->set_prepared(*p.prepared);
    p.prepared_version = version;
  }
  return {};
}

}  // namespace kiln
