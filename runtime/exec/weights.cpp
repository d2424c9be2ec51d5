#include "runtime/exec/weights.h"

#include <algorithm>
#include <map>
#include <set>

#include "runtime/exec/call_state.h"
#include "runtime/exec/layout.h"

namespace kiln {
namespace {

struct Made {
  const Executable *program;
  const Entries::Entry *entry = nullptr;  // null: the program for all sizes
};
// That one, then the entries that are made by now.
std::vector<Made> programs_of(const Executable &general) {
  std::vector<Made> programs = {{&general}};
  const Entries &entries = general.entries();
  for (size_t i = 0; i < entries.count(); ++i)
    if (entries[i].state() == Entries::State::made) programs.push_back({entries[i].executable().get(), &entries[i]});
  return programs;
}

// Adds the parameters that steps of a call read.
void add_read(const Plan &plan, std::vector<bool> &read) {
  for (const Plan::Step &step : plan.steps)
    for (const uint32_t number : step.slots)
      if (plan.slots[number].kind == Plan::Slot::Kind::parameter) read[plan.slots[number].index] = true;
}

// What is to be written, as it is put together. What lies at one address is there once.
class Writing {
 public:
  uint64_t add(const void *data, uint64_t bytes) {
    const auto [at, is_new] = places_.try_emplace({data, bytes}, 0);
    if (is_new) at->second = put(data, bytes);
    return at->second;
  }
  void add(const Digest &name, const PreparedPart &part, const KeptLayout &layout) {
    if (!parts_.insert(name).second) return;  // programs that prepare alike share it
    const uint64_t begin = layout_.add(layout.bytes);
    for (size_t i = 0; i < part.storages.size(); ++i)
      image_.pieces.push_back(
          {begin + layout.offsets[i], {static_cast<const uint8_t *>(part.storages[i]), layout.sizes[i]}});
    image_.memory.push_back(part.memory);
    image_.table.parts.push_back({name, part.parameters, begin, layout.bytes});
  }
  std::vector<WeightsTable::Parameter> &parameters() { return image_.table.parameters; }
  WeightsImage take() {
    image_.size = std::max(layout_.size_bytes(), weights_alignment);  // a file has data, though it be of no elements
    return std::move(image_);
  }

 private:
  uint64_t put(const void *data, uint64_t bytes) {
    const uint64_t begin = layout_.add(bytes);
    image_.pieces.push_back({begin, {static_cast<const uint8_t *>(data), bytes}});
    return begin;
  }

  Layout layout_{weights_alignment};
  std::map<std::pair<const void *, uint64_t>, uint64_t> places_;
  std::set<Digest> parts_;
  WeightsImage image_;
};

Status damaged(const WeightsTable::Parameter &parameter, std::string_view what) {
  return error(Code::corrupt, "section 'weights': parameter ", parameter.number, ": ", what);
}

}  // namespace

Status check_weights(const Weights &weights, const Executable &executable) {
  const Plan &plan = executable.plan();
  std::vector<bool> read(plan.parameters.size(), executable.on_device()), seen(plan.parameters.size());
  for (const Made &made : programs_of(executable)) add_read(made.program->plan(), read);
  for (const WeightsTable::Parameter &parameter : weights.table().parameters) {
    if (parameter.number >= seen.size() || seen[parameter.number])
      return damaged(parameter, "it is there twice, or the program has none");
    seen[parameter.number] = true;
    const Plan::Argument &declared = plan.parameters[parameter.number];
    if (parameter.dtype != declared.dtype || parameter.dims.size() != declared.dims.size())
      return damaged(parameter, "it is of another type than the program's");
    const std::optional<ArrayExtent> extent =
        extent_of({nullptr, parameter.dtype, static_cast<uint32_t>(parameter.dims.size()), parameter.dims.data(),
                   parameter.strides.data()});
    if (!extent || (parameter.has_values && extent->bytes != parameter.bytes))
      return damaged(parameter, "its bytes are not those of its type");
    if (!parameter.has_values && read[parameter.number])
      return damaged(parameter, "it has no values, which the program reads");
  }
  return {};
}

std::vector<uint32_t> Call::stored_parameters() const {
  const std::vector<Binding> &bindings = state_->parameters->bindings();
  std::vector<uint32_t> stored;
  for (uint32_t p = 0; p < bindings.size(); ++p)
    if (bindings[p].is_stored) stored.push_back(p);
  return stored;
}

Result<Call::Saved> Call::saved(const Use &use) const {
  const State &s = *state_;
  if (!use.held()) return use.status();
  KILN_TRY(check_landed());
  const std::vector<Binding> &bindings = s.parameters->bindings();
  Saved saved;
  Writing image;
  std::vector<bool> wanted(bindings.size(), executable_->on_device());  // their values: or else what is prepared is all
  for (const auto &[program, entry] : programs_of(*executable_)) {
    if (entry) saved.entries.push_back({entry->name(), program->shared_artifact()});
    const Plan &plan = program->plan();
    const Signature signature(plan);
    ResolvedSizes sizes(plan, signature, program->sizes());
    KILN_TRY(sizes.resolve_parameters());
    const uint32_t first = signature.parameters().begin;
    for (uint32_t p = 0; p < bindings.size(); ++p)
      if (bindings[p].bound() && is_static(plan.parameters[p])) KILN_TRY(sizes.check(first + p, bindings[p].array()));
    KILN_TRY(s.parameters->prepare_parts(*program, signature, sizes, s.device));
    add_read(plan, wanted);
    for (const PreparePart &part : prepare_parts(plan)) {
      const Digest name = name_of(part, recipe_of(part, *program, signature, sizes));
      if (const auto made = s.parameters->part(name))
        image.add(name, *made, KeptLayout(part, *program, sizes));
      else
        for (const uint32_t p : part.parameters) wanted[p] = true;
    }
  }
  for (uint32_t p = 0; p < bindings.size(); ++p) {
    const Binding &binding = bindings[p];
    if (!binding.bound()) continue;
    const std::string name = s.now->signature.describe(s.now->signature.parameters().begin + p);
    if (!binding.place.is_host())
      return error(Code::unimplemented, name, " is on ", text_of(binding.place), "; bind it in ", text_of(ArrayPlace()),
                   " to save it");
    if (wanted[p] && !binding.data)
      return invalid(name, " has to be bound, too: the artifact's file has only what was prepared of it");
    const std::optional<ArrayExtent> extent = extent_of(binding.array());
    if (!extent) return error(Code::type_mismatch, name, ": its size overflows");
    WeightsTable::Parameter &stored = image.parameters().emplace_back();
    stored = {p, wanted[p], binding.dtype, binding.shape, binding.strides};
    if (!binding.has_strides) {
      int64_t stride = 1;
      stored.strides.resize(binding.shape.size());
      for (size_t d = stored.strides.size(); d-- > 0; stride *= std::max<int64_t>(binding.shape[d], 1))
        stored.strides[d] = stride;
    }
    if (!wanted[p]) continue;
    stored.bytes = extent->bytes;
    stored.offset = image.add(static_cast<const uint8_t *>(binding.data) - extent->below, extent->bytes);
  }
  saved.weights = image.take();
  return saved;
}

}  // namespace kiln
