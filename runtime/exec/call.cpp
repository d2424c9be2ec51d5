#include <algorithm>
#include <map>
#include <optional>

#include "jit/base/file.h"
#include "jit/kernel/estimate.h"
#include "runtime/exec/call_state.h"

namespace kiln {

Call::Program::Program(const Executable &exe)
    : executable(exe),
      signature(exe.plan()),
      written(exe.plan().written_inputs),
      sizes(exe.plan(), signature, exe.sizes()),
      addresses(signature.count()),
      on_device(signature.count()) {
  written.insert(written.end(), exe.plan().donated_inputs.begin(), exe.plan().donated_inputs.end());
  for (uint32_t slot = signature.outputs().begin; slot < signature.outputs().end; ++slot) written.push_back(slot);
  for (size_t i = 0; i < exe.plan().presented.size(); ++i)
    presented.emplace_back(exe.plan(), signature, exe.sizes(), sizes, i);
}

Call::State::State(const Executable &exe, TellHost tell, uint32_t of_device, PreparedParts::Store store)
    : executable(exe),
      device(of_device),
      watch(std::move(tell)),
      programs(1 + exe.entries().count()),
      parameters(std::make_shared<Parameters>(exe, std::move(store))) {
  unbound_parameters = static_cast<uint32_t>(
      std::ranges::count_if(parameters->bindings(), [](const Binding &binding) { return !binding.bound(); }));
  programs[0] = std::make_unique<Program>(exe);
  now = programs[0].get();
  const Signature &signature = now->signature;
  bindings.resize(signature.count());
  current.resize(signature.count());
  owned.resize(signature.count());
  for (uint32_t slot = 0; slot < signature.count(); ++slot) {
    if (!signature.parameters().contains(slot) && now->sizes.argument(slot).made) open_slots.push_back(slot);
  }
}

void Call::State::list_open_slot(uint32_t slot) {
  const auto at = std::ranges::lower_bound(open_slots, slot);
  const bool listed = at != open_slots.end() && *at == slot, open = !bindings[slot].bound();
  if (open && !listed) open_slots.insert(at, slot);
  if (listed && !open) open_slots.erase(at);
}

Parameters &Call::State::own_parameters() {
  if (parameters_shared) parameters = std::make_shared<Parameters>(*parameters);
  parameters_shared = false;
  return *parameters;
}

Call::Call(std::shared_ptr<const Executable> executable, TellHost tell, uint32_t device, PreparedParts::Store store)
    : executable_(std::move(executable)),
      state_(std::make_unique<State>(*executable_, std::move(tell), device, std::move(store))) {}
Call::~Call() = default;

Result<std::unique_ptr<Call>> Call::create(std::shared_ptr<const Executable> executable, TellHost tell, uint32_t device,
                                           PreparedParts::Store store) {
  KILN_TRY(executable->check_callable());
  std::unique_ptr<Call> call(new Call(std::move(executable), std::move(tell), device, std::move(store)));
  KILN_TRY(call->state_->add_program(0));
  return call;
}

Result<std::unique_ptr<Call>> Call::clone() const {
  const Use use(*this);
  if (!use.held()) return use.status();
  KILN_ASSIGN(std::unique_ptr<Call> copy, create(executable_, state_->watch.tell(), state_->device, {}));
  copy->state_->parameters = state_->parameters;
  copy->state_->unbound_parameters = state_->unbound_parameters;
  copy->state_->parameters_shared = state_->parameters_shared = true;
  return copy;
}

Result<uint32_t> Call::slot(std::string_view name) const {
  const Signature &signature = state_->now->signature;
  for (uint32_t slot = 0; slot < signature.count(); ++slot)
    if (signature.argument(slot).name == name) return slot;
  std::string known;
  for (uint32_t slot = 0; slot < signature.count(); ++slot)
    str_append(known, (slot ? ", " : "") + signature.describe(slot));
  return error(Code::unknown_name, "no slot '", name, "'; the signature has ", known);
}

Status Call::bind(uint32_t slot, const ArrayRef &array, std::shared_ptr<void> keep, std::optional<FileSource> source) {
  State &s = *state_;
  const Use use(*this);
  if (!use.held()) return use.status();
  KILN_TRY(check_landed());
  if (slot >= s.now->signature.count())
    return invalid("there is no slot ", slot, "; the signature has ", s.now->signature.count());
  if (!s.now->sizes.argument(slot).made)
    return invalid(s.now->presented_as(slot)->describe(), ", where it is found after a run; it cannot be bound");
  const Plan::Argument &declared = s.now->signature.argument(slot);
  Binding binding;
  if (array.data) {
    const auto fail = [&](const auto &...what) {
      return error(Code::type_mismatch, s.now->signature.describe(slot), ": ", what...);
    };
    if (array.dtype != declared.dtype)
      return fail("dtype is ", name_of(array.dtype), ", expected ", name_of(declared.dtype));
    if (array.rank != declared.dims.size() || (array.rank && !array.shape))
      return fail("rank is ", array.rank, ", expected ", declared.dims.size());
    KILN_TRY(s.check_place(slot, array.place));
    binding = Binding(array, std::move(keep));
  }
  if (s.now->signature.parameters().contains(slot)) {
    Parameters &parameters = s.own_parameters();
    const uint32_t parameter = slot - s.now->signature.parameters().begin;
    s.unbound_parameters += parameters.bindings()[parameter].bound();
    if (binding.bound() && binding.place.is_host())
      binding.source = source ? std::move(source) : source_of(binding.data);
    parameters.bind(parameter, std::move(binding));
    s.unbound_parameters -= parameters.bindings()[parameter].bound();
    for (const auto &program : s.programs) {
      if (!program) continue;
      program->resolved = false;
      program->prepared_version = 0;
    }
    return {};
  }
  for (const auto &program : s.programs)
    for (size_t i = 0; program && i < program->presented.size(); ++i)
      if (PresentedOutput &output = program->presented[i]; output.is_view() && output.input() == slot) output.let_go();
  s.bindings[slot] = std::move(binding);
  s.current[slot] = s.bindings[slot].array();
  s.list_open_slot(slot);
  return {};
}

Status Call::bind_source(uint32_t slot, ArrayRef type, const std::string &path, uint64_t offset,
                         std::optional<Digest> digest) {
  const Signature &signature = state_->now->signature;
  if (slot < signature.count() && !signature.parameters().contains(slot))
    return invalid(signature.describe(slot), ": a source is for parameters");
  if (slot >= signature.count()) return bind(slot, type, nullptr);  // which tells it
  const std::string name = signature.describe(slot);
  const std::optional<ArrayExtent> extent = extent_of(type);
  if (!extent) return error(Code::type_mismatch, name, ": its size overflows");
  const auto [bytes, below] = *extent;
  const uint32_t element = size_of(type.dtype);
  if (offset % element != 0)
    return invalid(name, ": source->offset is ", offset, ", expected a multiple of its element's ", element, " bytes");
  if (below > offset)
    return invalid(name, ": source->offset is ", offset, ", and its strides reach ", below, " bytes below that");
  Result<MappedFile> mapped = MappedFile::open(path, offset - below, bytes);
  if (!mapped.ok()) return mapped.take_status().with_prefix(name + ": ");
  const auto keep = std::make_shared<MappedFile>(std::move(mapped).value());
  static const uint64_t no_elements = 0;  // an address for arrays that need none
  type.data = bytes ? const_cast<uint8_t *>(keep->bytes().data()) + below
                    : reinterpret_cast<uint8_t *>(const_cast<uint64_t *>(&no_elements));
  return bind(slot, type, keep,
              FileSource{.stamp = keep->stamp(),
                         .path = path,
                         .offset = offset,
                         .is_settled = keep->stamp().is_settled(),
                         .digest = digest});
}

Status Call::Use::status() const {
  return held_
             ? Status()
             : error(
                   Code::busy,
                   "the call is in use, on another thread or by the run that asks; a clone made before runs beside it");
}

Status Call::run(std::span<const ArrayRef> args) { return run(Use(*this), args); }

Status Call::run(const Use &use, std::span<const ArrayRef> args, const RunRequest &how) {
  State &s = *state_;
  if (!use.held()) return use.status();
  KILN_TRY(s.make_way(how));
  if (args.size() > s.open_slots.size())
    return invalid("run: ", args.size(), " arrays given, expected at most ", s.open_slots.size(),
                   ": the inputs and outputs that are not bound");
  for (size_t i = 0; i < s.open_slots.size(); ++i) {
    const uint32_t slot = s.open_slots[i];
    s.current[slot] = i < args.size() ? args[i] : ArrayRef();
    const bool given = s.current[slot].data || s.current[slot].shape;
    if (!given && s.now->signature.inputs().contains(slot))
      return invalid("run: ", s.now->signature.describe(slot), " is neither bound nor given");
  }
  if (!s.is_chosen()) KILN_TRY(s.choose());
  return s.run(how);
}

std::string Call::describe_argument(size_t index) const {
  const State &s = *state_;
  return index < s.open_slots.size() ? s.now->signature.describe(s.open_slots[index]) : str_cat("argument ", index);
}

Status Call::wait() {
  const Use use(*this);
  return use.held() ? state_->land() : use.status();
}

Result<bool> Call::poll() {
  State &s = *state_;
  const Use use(*this);
  if (!use.held()) return use.status();
  if (s.in_flight) {
    s.watch.pass_on();
    Result<bool> is_over = s.now->runner->is_over();
    if (is_over.ok() && !*is_over) return false;
    if (!is_over.ok()) {
      s.touch_down();  // an error means that nothing is in flight
      return is_over.take_status();
    }
  }
  KILN_TRY(s.land());
  return true;
}

void Call::cancel() { state_->watch.cancel(); }

Status Call::check_landed() const {
  return state_->in_flight ? error(Code::busy, "a run of the call is in flight; wait for it first") : Status();
}

Status Call::run_data(std::span<void *const> data, const RunRequest &how) {
  State &s = *state_;
  const Use use(*this);
  if (!use.held()) return use.status();
  KILN_TRY(s.make_way(how));
  if (!s.now->resolved) return invalid("run_data: there was no run since the call was made or a parameter bound");
  if (data.size() != s.open_slots.size())
    return invalid("run_data: ", data.size(), " addresses given, expected ", s.open_slots.size(),
                   ": the inputs and outputs that are not bound");
  // The descriptors of the last run are gone; the shapes that they had are those of the sizes.
  for (size_t i = 0; i < data.size(); ++i) {
    const uint32_t slot = s.open_slots[i];
    const ResolvedArgument &a = s.now->sizes.argument(slot);
    const PresentedOutput *const as = s.now->presented_as(slot);
    const std::vector<int64_t> &strides = as ? as->strides() : a.strides;
    const ArrayPlace place = data[i] ? s.current[slot].place : ArrayPlace();
    s.current[slot] = {data[i], a.dtype, static_cast<uint32_t>(a.dims.size()), a.dims.data(), strides.data(), place};
  }
  // What was bound since the last run may be of other shapes.
  for (uint32_t slot = 0; slot < s.now->signature.inputs().end; ++slot)
    KILN_TRY(s.now->sizes.check(slot, s.current[slot]));
  if (!s.is_chosen()) KILN_TRY(s.choose());
  return s.run(how);
}

Result<std::span<const int64_t>> Call::dims(uint32_t slot) const {
  const State &s = *state_;
  const Use use(*this);
  if (!use.held()) return use.status();
  KILN_TRY(check_landed());
  if (slot >= s.now->signature.count())
    return invalid("there is no slot ", slot, "; the signature has ", s.now->signature.count());
  if (s.now->signature.parameters().contains(slot)) {
    const Binding &binding = s.parameters->bindings()[slot - s.now->signature.parameters().begin];
    if (!binding.bound()) return invalid(s.now->signature.describe(slot), " is not bound");
    return std::span<const int64_t>(binding.shape);
  }
  const ResolvedArgument &a = s.now->sizes.argument(slot);
  if (!s.completed && !s.now->resolved)
    return invalid("dims of ", s.now->signature.describe(slot), ": there was no run yet");
  if (!s.completed && a.late)
    return invalid("dims of ", s.now->signature.describe(slot), ": the last run failed before its size was known");
  return std::span<const int64_t>(a.dims);
}

Status Call::check_output(uint32_t slot) const {
  const Signature &signature = state_->now->signature;
  if (signature.outputs().contains(slot)) return {};
  return invalid("slot ", slot, " is not an output; outputs are ", signature.outputs().begin, " to ",
                 signature.outputs().end, ", exclusive");
}

Result<ArrayRef> Call::output(const Use &use, uint32_t slot) const {
  State &s = *state_;
  if (!use.held()) return use.status();
  KILN_TRY(check_landed());
  KILN_TRY(check_output(slot));
  const PresentedOutput *const as = s.now->presented_as(slot);
  void *const data = as ? as->data() : s.current[slot].data;
  if (!s.completed || !data)
    return invalid(s.now->signature.describe(slot),
                   " holds nothing: it was taken, or not computed, or what it is a view of was bound anew");
  const ResolvedArgument &a = s.now->sizes.argument(slot);
  return ArrayRef{data,
                  a.dtype,
                  static_cast<uint32_t>(a.dims.size()),
                  a.dims.data(),
                  as ? as->strides().data() : a.strides.data(),
                  s.current[as && as->is_view() ? as->input() : slot].place};
}

Result<Call::Taken> Call::take(uint32_t slot) {
  State &s = *state_;
  const Use use(*this);
  if (!use.held()) return use.status();
  KILN_TRY(check_landed());
  KILN_TRY(check_output(slot));
  const ResolvedArgument &a = s.now->sizes.argument(slot);
  const PresentedOutput *const as = s.now->presented_as(slot);
  if (as && as->is_view()) {
    KILN_ASSIGN(const ArrayRef array, output(use, slot));
    const Binding &root = s.bindings[as->input()];
    if (!root.keep) return invalid(as->describe(), ", which is not bound as an owned tensor that could be kept for it");
    return Taken{array.data, a.dtype, a.dims, as->strides(), root.keep, array.place};
  }
  if (!s.owned[slot] || !s.completed)
    return invalid(s.now->signature.describe(slot),
                   " holds nothing that Kiln allocated: it was given, taken, or not computed");
  Taken taken{s.current[slot].data, a.dtype, a.dims, as ? as->strides() : a.strides, s.owned[slot], {}};
  s.owned[slot].reset();
  s.current[slot] = {};
  s.now->addresses[slot] = nullptr;
  return taken;
}

std::vector<std::shared_ptr<const PreparedPart>> Call::prepared_parts() const { return state_->parameters->parts(); }

uint64_t Call::arena_bytes() const {
  uint64_t bytes = state_->parameters->prepared_bytes();
  for (const auto &program : state_->programs)
    if (program) {
      bytes += program->runner->size_bytes();
      for (const PresentedOutput &output : program->presented) bytes += output.held_bytes();
    }
  return bytes;
}

std::string_view Call::ran() const {
  const Use use(*this);
  return use.held() && !state_->in_flight && state_->completed ? state_->entry() : "";
}

namespace {

// What kernels come to at the sizes of the run; nothing of one that does not read.
void add_estimates(const Artifact &artifact, std::span<StepTimes::Row> rows) {
  struct Known {
    kernel::Estimate estimate;
    std::vector<std::string> symbols;
  };
  std::map<uint32_t, Known> known;
  for (StepTimes::Row &row : rows) {
    const Plan::Step &step = *row.planned;
    if (step.kind != Plan::Step::Kind::launch || step.kernel >= artifact.kernels.size()) continue;
    const auto [at, is_new] = known.try_emplace(step.kernel);
    auto &[estimate, symbols] = at->second;
    if (is_new)
      if (Result<kernel::Kernel> kernel = kernel::parse(artifact.kernels[step.kernel]); kernel.ok()) {
        estimate = kernel::estimate(*kernel);
        symbols = std::move(kernel->symbols);
      }
    const auto size_of = [&](const std::string &name) -> int64_t {
      const auto number = static_cast<size_t>(std::ranges::find(symbols, name) - symbols.begin());
      const bool is_known = number < step.symbols.size() && step.symbols[number] < row.symbols.size();
      return is_known ? row.symbols[step.symbols[number]] : 0;
    };
    row.bytes = estimate.bytes.evaluate(size_of) * row.runs;
    row.flops = estimate.flops.evaluate(size_of) * row.runs;
  }
}

}  // namespace

std::vector<StepTimes::Row> Call::step_times() const {
  const Use use(*this);
  if (!use.held() || !state_->watch.times_steps()) return {};
  std::vector<StepTimes::Row> rows = state_->watch.times().rows();
  // Not `now`'s: the next run may have taken another program, and failed before it ran.
  for (const auto &program : state_->programs)
    if (program && &program->executable.plan() == state_->watch.times().root())
      add_estimates(program->executable.artifact(), rows);
  return rows;
}

}  // namespace kiln
