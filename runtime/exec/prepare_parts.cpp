#include "runtime/exec/prepare_parts.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "jit/base/env.h"
#include "runtime/exec/executable.h"
#include "runtime/exec/layout.h"
#include "runtime/exec/signature.h"

namespace kiln {
namespace {

using Kind = Plan::Slot::Kind;

// Made in less time than it takes to open a file.
constexpr uint64_t least_bytes = 4096;

// Sets of prepared storages that steps join.
class Joined {
 public:
  explicit Joined(size_t count) : above_(count) { std::iota(above_.begin(), above_.end(), uint32_t{0}); }
  uint32_t root(uint32_t of) {
    while (above_[of] != of) of = above_[of] = above_[above_[of]];
    return of;
  }
  void join(uint32_t a, uint32_t b) { above_[std::max(root(a), root(b))] = std::min(root(a), root(b)); }

 private:
  std::vector<uint32_t> above_;
};

void add_once(std::vector<uint32_t> &list, uint32_t number) {
  if (std::ranges::find(list, number) == list.end()) list.push_back(number);
}

std::vector<bool> read_by_calls(const Plan &plan) {
  std::vector<bool> read(plan.prepared.size());
  for (const Plan::Step &step : plan.steps)
    for (const uint32_t slot : step.slots)
      if (plan.slots[slot].kind == Kind::prepared) read[plan.slots[slot].index] = true;
  return read;
}

void put_numbers(ByteWriter &out, std::span<const int64_t> numbers) {
  out.put<uint64_t>(numbers.size());
  for (const int64_t number : numbers) out.put(number);
}

}  // namespace

std::vector<PreparePart> prepare_parts(const Plan &plan) {
  Joined joined(plan.prepared.size());
  constexpr uint32_t none = UINT32_MAX;
  std::vector<uint32_t> storage_of;  // by step: one that it uses
  for (const Plan::Step &step : plan.prepare) {
    uint32_t first = none;
    for (const uint32_t number : step.slots) {
      const Plan::Slot &slot = plan.slots[number];
      if (slot.kind != Kind::prepared) continue;
      if (first == none) first = slot.index;
      joined.join(first, slot.index);
    }
    storage_of.push_back(first);
  }
  std::vector<PreparePart> parts;
  std::map<uint32_t, size_t> by_root;
  const auto part_of = [&](uint32_t storage) -> PreparePart & {
    const auto [at, is_new] = by_root.try_emplace(joined.root(storage), parts.size());
    if (is_new) parts.emplace_back();
    return parts[at->second];
  };
  for (uint32_t step = 0; step < plan.prepare.size(); ++step) {
    if (storage_of[step] == none) continue;  // it writes nothing that anybody reads
    PreparePart &part = part_of(storage_of[step]);
    part.steps.push_back(step);
    for (const uint32_t number : plan.prepare[step].slots)
      if (plan.slots[number].kind == Kind::parameter) add_once(part.parameters, plan.slots[number].index);
  }
  const std::vector<bool> is_read = read_by_calls(plan);
  for (const bool read : {true, false})
    for (uint32_t storage = 0; storage < plan.prepared.size(); ++storage) {
      if (is_read[storage] != read) continue;
      PreparePart &part = part_of(storage);
      part.storages.push_back(storage);
      part.kept += read;
    }
  return parts;
}

Digest recipe_of(const PreparePart &part, const Executable &executable, const Signature &signature,
                 const ResolvedSizes &sizes) {
  const Artifact &artifact = executable.artifact();
  const Plan &plan = executable.plan();
  const PlanSizes &numbers = executable.sizes();
  const auto place_in = [](const std::vector<uint32_t> &list, uint32_t number) {
    return static_cast<uint64_t>(std::ranges::find(list, number) - list.begin());
  };
  ByteWriter out;
  out.text(artifact.build_id);
  out.text(artifact.target);
  out.put(part.kept);
  out.put<uint64_t>(part.storages.size());
  for (const uint32_t storage : part.storages) out.put(sizes[numbers.prepared[storage]]);
  out.put<uint64_t>(part.parameters.size());
  for (const uint32_t parameter : part.parameters) {
    const ResolvedArgument &argument = sizes.argument(signature.parameters().begin + parameter);
    out.put(static_cast<uint32_t>(argument.dtype));
    put_numbers(out, argument.dims);
    put_numbers(out, argument.strides);
  }
  for (const uint32_t number : part.steps) {
    const Plan::Step &step = plan.prepare[number];
    out.put(static_cast<uint32_t>(step.kind));
    if (step.kind == Plan::Step::Kind::launch) {
      const Image &image = artifact.images[step.kernel];
      out.raw(image.kernel_key.bytes);
      out.put(sizes[numbers.prepare[number].tasks]);
      for (const uint32_t symbol : step.symbols) out.put(sizes.symbols()[symbol]);
    }
    out.put<uint64_t>(step.slots.size());
    for (const uint32_t slot_number : step.slots) {
      const Plan::Slot &slot = plan.slots[slot_number];
      out.put(static_cast<uint32_t>(slot.kind));
      out.put(sizes[numbers.slots[slot_number]]);
      if (slot.kind == Kind::parameter) out.put(place_in(part.parameters, slot.index));
      if (slot.kind == Kind::prepared) out.put(place_in(part.storages, slot.index));
      if (slot.kind == Kind::constant) out.raw(digest_of(artifact.constants[slot.index].bytes).bytes);
    }
  }
  return digest_of(out.bytes());
}

Digest name_of(const PreparePart &part, const Digest &recipe) {
  ByteWriter own;
  own.raw(recipe.bytes);
  for (const uint32_t number : part.parameters) own.put(number);
  return digest_of(own.bytes());
}

namespace {

// Why there is no record of the part, and none is to be; empty: there may be one.
std::string reason_to_bypass(const PreparePart &part, const Executable &executable, uint64_t bytes,
                             std::span<const ParameterArray> parameters) {
  if (!executable.artifact().edited.empty()) return "the artifact was edited";
  if (env_text(Env::KILN_GUARD_PAGES)) return "KILN_GUARD_PAGES is set";
  if (bytes < least_bytes) return str_cat("its ", bytes, " bytes are made sooner than found");
  for (const uint32_t number : part.parameters) {
    const std::optional<FileSource> &source = *parameters[number].source;
    const std::string reason = source ? source->reason_not_to_keep() : "it is bound to memory, not to a file";
    if (!reason.empty()) return str_cat("parameter '", executable.plan().parameters[number].name, "': ", reason);
  }
  return "";
}

// A part whose bytes somebody keeps mapped.
PreparedPart mapped_part(const PreparePart &part, const KeptLayout &layout, const uint8_t *bytes,
                         std::shared_ptr<const void> memory) {
  PreparedPart is;
  is.parameters = part.parameters;
  is.mapped_bytes = layout.bytes;
  for (const uint64_t offset : layout.offsets)
    is.storages.push_back(const_cast<uint8_t *>(bytes) + offset);  // calls only read them
  is.memory = std::move(memory);
  is.outcome = Outcome::hit;
  return is;
}

}  // namespace

KeptLayout::KeptLayout(const PreparePart &part, const Executable &executable, const ResolvedSizes &resolved) {
  std::vector<uint32_t> kept;
  for (const uint32_t storage : std::span(part.storages).first(part.kept))
    kept.push_back(executable.sizes().prepared[storage]);
  sizes = resolved.bytes(kept);
  offsets = Layout(64).add(sizes);
  if (!offsets.empty()) bytes = offsets.back() + sizes.back();
}

PreparedParts::PreparedParts(Store store, const std::shared_ptr<const Weights> &weights)
    : store_(std::move(store)), weights_(weights) {
  if (!weights) return;
  for (const WeightsTable::Part &part : weights->table().parts) in_file_.emplace(part.name, &part);
}

std::shared_ptr<const PreparedPart> PreparedParts::stored(const Digest &name, const PreparePart &part,
                                                          const Executable &executable, const ResolvedSizes &sizes,
                                                          std::span<const ParameterArray> parameters) const {
  const auto found = in_file_.find(name);
  const auto is_stored = [&](uint32_t number) { return parameters[number].is_stored; };
  if (found == in_file_.end() || !std::ranges::all_of(part.parameters, is_stored)) return nullptr;
  const KeptLayout layout(part, executable, sizes);
  if (found->second->bytes != layout.bytes) return nullptr;
  PreparedPart is = mapped_part(part, layout, weights_->bytes().data() + found->second->offset, weights_);
  is.reason = "in the artifact's file";
  return std::make_shared<const PreparedPart>(std::move(is));
}

PreparedParts::Search PreparedParts::look_up(const PreparePart &part, const Digest &recipe,
                                             const Executable &executable, const ResolvedSizes &sizes,
                                             std::span<const ParameterArray> parameters) const {
  const KeptLayout layout(part, executable, sizes);
  if (!store_.records) return {.reason = store_.reason};
  std::string why = reason_to_bypass(part, executable, layout.bytes, parameters);
  if (!why.empty()) return {.reason = std::move(why)};
  ByteWriter key;
  key.raw(recipe.bytes);
  for (const uint32_t number : part.parameters) key.raw((*parameters[number].source)->name().bytes);
  Search search{.key = digest_of(key.bytes())};
  PreparedRecords::Found found = store_.records->find(search.key, layout.bytes);
  search.outcome = found.outcome;
  search.reason = std::move(found.reason);
  if (!found.record) return search;
  PreparedPart is = mapped_part(part, layout, found.record->bytes().data(), found.record);
  is.record = found.record;
  is.reason = search.reason;
  search.part = std::make_shared<const PreparedPart>(std::move(is));
  return search;
}

PreparedParts::Search PreparedParts::find(const PreparePart &part, const Executable &executable,
                                          const Signature &signature, const ResolvedSizes &sizes,
                                          std::span<const ParameterArray> parameters) {
  const Digest recipe = recipe_of(part, executable, signature, sizes);
  const Digest name = name_of(part, recipe);
  if (const auto known = parts_.find(name); known != parts_.end()) return {.part = known->second, .name = name};
  Search search{.part = stored(name, part, executable, sizes, parameters)};
  if (!search.part) search = look_up(part, recipe, executable, sizes, parameters);
  search.name = name;
  if (search.part) parts_[name] = search.part;
  return search;
}

void PreparedParts::made(const Search &search, PreparedPart part, uint64_t bytes,
                         std::span<const ParameterArray> parameters) {
  part.outcome = search.outcome;
  part.reason = search.reason;
  const auto shared = std::make_shared<const PreparedPart>(std::move(part));
  parts_[search.name] = shared;
  if (search.outcome == Outcome::bypass) return;
  std::vector<FileSource> sources;
  for (const uint32_t number : shared->parameters) sources.push_back(**parameters[number].source);
  store_.in_background([shared, bytes, key = search.key, sources = std::move(sources), records = store_.records] {
    // Else it is no failure: the host may rename and unlink the file, and nobody would look for the record again.
    if (!std::ranges::all_of(sources, &FileSource::is_as_it_was)) return Status();
    return records->publish(key, {static_cast<const uint8_t *>(shared->storages[0]), bytes});
  });
}

std::shared_ptr<const PreparedPart> PreparedParts::get(const Digest &name) const {
  const auto known = parts_.find(name);
  return known == parts_.end() ? nullptr : known->second;
}

void PreparedParts::drop(uint32_t parameter) {
  std::erase_if(parts_, [&](const auto &known) {
    return std::ranges::find(known.second->parameters, parameter) != known.second->parameters.end();
  });
}

void PreparedParts::drop(const std::shared_ptr<const PreparedPart> &part) {
  std::erase_if(parts_, [&](const auto &known) { return known.second == part; });
}

std::vector<std::shared_ptr<const PreparedPart>> PreparedParts::all() const {
  std::vector<std::shared_ptr<const PreparedPart>> all;
  for (const auto &[name, part] : parts_) all.push_back(part);
  return all;
}

}  // namespace kiln
