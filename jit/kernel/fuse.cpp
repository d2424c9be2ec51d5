#include "jit/kernel/fuse.h"

#include <algorithm>
#include <ranges>
#include <unordered_map>

#include "jit/base/hash.h"
#include "jit/kernel/fuse_steps.h"

namespace kiln::kernel {
namespace {

// A model repeats its layers: what follows fusion should cost as much as its distinct kernels, not as its launches.
class DistinctKernels {
 public:
  // The kernel with these bytes, and whether it had not been added before.
  std::pair<std::shared_ptr<const Kernel>, bool> add(Kernel kernel) {
    auto [found, is_new] = by_bytes_.try_emplace(serialize(kernel));
    if (is_new) found->second = std::make_shared<const Kernel>(std::move(kernel));
    return {found->second, is_new};
  }

 private:
  struct HashBytes {
    size_t operator()(const Bytes &bytes) const { return checksum_of(bytes); }
  };
  std::unordered_map<Bytes, std::shared_ptr<const Kernel>, HashBytes> by_bytes_;
};

// What is left to do when a kernel's stages stand.
void finish(Built &built, const Target &target, const FuseOptions &options) {
  collapse_axes(built.kernel);
  built.launch.symbols = rename_symbols(built.kernel);
  schedule(built.kernel, target, options);
}

struct Groups {
  std::vector<Group> groups;
  std::vector<uint32_t> group_of;  // of each tensor; UINT32_MAX: of none
  std::vector<bool> needed;        // a tensor outlives its group: it is an output, or another group reads it

  Groups(const std::vector<Item> &items, const std::vector<Tensor> &tensors, const Target &target,
         const FuseOptions &options)
      : groups(group_items(items, tensors, options)), group_of(tensors.size(), UINT32_MAX), needed(tensors.size()) {
    // A device's threads go through a contraction point by point.
    if (options.fuse && !target.on_device()) groups = join_row_tiles(std::move(groups), items, tensors);
    for (uint32_t g = 0; g < groups.size(); ++g) {
      for (uint32_t i : groups[g].items) {
        for (uint32_t tensor : items[i].results) group_of[tensor] = g;
      }
    }
    for (uint32_t g = 0; g < groups.size(); ++g) {
      for (uint32_t i : groups[g].items) {
        for (uint32_t tensor : items[i].results) {
          if (tensors[tensor].is_output) needed[tensor] = true;
        }
        for (uint32_t operand : items[i].operands) {
          if (group_of[operand] != g) needed[operand] = true;
        }
      }
    }
  }
};

// A scatter may keep a dim, and its kernel not show it: where strides are not known to be positive, say. Rows of such a
// one are not for several tasks. True: there was one, and its group is another now.
bool drop_rows_that_may_meet(const Groups &grouped, std::vector<Item> &items, const std::vector<Tensor> &tensors,
                             const Target &target, const FuseOptions &options) {
  bool dropped = false;
  for (const Group &group : grouped.groups) {
    const auto scatters = [&](uint32_t i) { return items[i].compute.scatter && items[i].row_axes() != 0; };
    if (std::ranges::none_of(group.items, scatters)) continue;
    Built built = build_launch(group, items, tensors, grouped.needed);
    finish(built, target, options);
    const Kernel &kernel = built.kernel;
    const auto apart = [&](const Stage &stage) {
      return std::ranges::all_of(stage.stores, [&](const Store &s) { return keeps_tasks_apart(kernel, stage, s); });
    };
    if (std::ranges::all_of(kernel.stages, apart)) continue;
    for (const uint32_t i : group.items)
      if (scatters(i)) drop_rows(items[i]);
    dropped = true;
  }
  return dropped;
}

Status verified(const Launch &launch, std::span<const Tensor> tensors, const Program &program) {
  const Status status = verify(*launch.kernel);
  if (status.ok()) return {};
  return error(Code::internal, "kernel made from ", nodes_of(launch, tensors, program), ": ", status.message());
}

}  // namespace

Result<Fused> fuse(const Program &program, const Target &target, const FuseOptions &options) {
  Fused fused;
  fused.tensors = program.tensors;
  std::vector<Item> items = inline_producers(program, options);
  items = split_packing(std::move(items), fused.tensors, target);
  items = split_borders(std::move(items), fused.tensors, target, options);
  items = split_sums(std::move(items), fused.tensors, target, options);
  // What is prepared comes first: between the others it would only keep them from meeting in one group.
  std::ranges::stable_partition(items, &Item::prepared);
  Groups grouped(items, fused.tensors, target, options);
  while (drop_rows_that_may_meet(grouped, items, fused.tensors, target, options))
    grouped = Groups(items, fused.tensors, target, options);
  auto &[groups, group_of, needed] = grouped;

  find_bases(items, fused.tensors, group_of, needed);
  std::vector<uint32_t> written;
  if (options.fuse) written = write_outputs(groups, items, fused.tensors, group_of);
  DistinctKernels kernels;
  for (const Group &group : groups) {
    if (group.items.empty()) continue;
    Built built = build_launch(group, items, fused.tensors, needed);
    if (!written.empty()) built.launch.go_to(written);
    finish(built, target, options);
    const auto [distinct, is_new] = kernels.add(std::move(built.kernel));
    built.launch.kernel = distinct;
    if (is_new) KILN_TRY(verified(built.launch, fused.tensors, program));
    fused.launches.push_back(std::move(built.launch));
  }
  fused.materialised = static_cast<uint32_t>(std::ranges::count_if(items, &Item::over_budget));
  return fused;
}

Result<std::optional<Fused>> fuse_turns(const Program &program, const Turns &turns, const Target &target,
                                        const FuseOptions &options) {
  if (!options.fuse) return std::optional<Fused>();
  std::vector<Item> items = inline_producers(program, options);
  Fused fused;
  fused.tensors = program.tensors;
  const std::vector<Item> columns = split_columns(items, fused.tensors, turns);
  const bool sums = std::ranges::any_of(items, [](const Item &item) { return item.compute.contract.has_value(); });
  // Where there are sums a processor takes all rows of a batch together: one after the other they wait for each sum and
  // function (0.5 to 1 of the rate of steps at batch 8 and 32). Large batches, and those of unknown size, are as fast
  // in steps.
  const Grouping grouping = sums && !target.on_device() ? Grouping::in_one_task : Grouping::in_rows;
  const std::vector<Group> groups = group_items(items, fused.tensors, options, grouping);
  if (groups.size() != 1) return std::optional<Fused>();
  if (std::ranges::any_of(items, [](const Item &item) { return item.sorts() || item.compute.scatter.has_value(); }))
    return std::optional<Fused>();
  std::vector<bool> needed(fused.tensors.size());
  for (size_t t = 0; t < needed.size(); ++t) needed[t] = t >= program.tensors.size() || fused.tensors[t].is_output;
  std::optional<Built> built =
      take_turns(build_launch(groups[0], items, fused.tensors, needed), fused.tensors, turns, target);
  if (!built) return std::optional<Fused>();
  const auto add = [&](Built each) -> Status {
    finish(each, target, options);
    each.launch.kernel = std::make_shared<const Kernel>(std::move(each.kernel));
    fused.launches.push_back(std::move(each.launch));
    const Status status = verify(*fused.launches.back().kernel);
    return status.ok() ? Status() : error(Code::internal, "kernel made of the turns of a scan: ", status.message());
  };
  for (const Group &group : group_items(columns, fused.tensors, options))
    KILN_TRY(add(build_launch(group, columns, fused.tensors, needed)));
  KILN_TRY(add(std::move(*built)));
  return std::optional(std::move(fused));
}

std::vector<std::vector<uint32_t>> defs_of(std::span<const Launch> launches, std::span<const Tensor> tensors,
                                           const Program &program) {
  constexpr uint32_t none = UINT32_MAX;
  std::vector<uint32_t> maker(program.tensors.size(), none);
  for (uint32_t d = 0; d < program.defs.size(); ++d)
    for (const uint32_t tensor : program.defs[d].results) maker[tensor] = d;
  std::vector<uint32_t> read(program.tensors.size(), none),
      seen(program.defs.size(), none);  // the last launch's number
  std::vector<std::vector<uint32_t>> all;
  for (uint32_t i = 0; i < launches.size(); ++i) {
    // Back from what it writes to what it reads.
    std::vector<uint32_t> open;
    for (size_t b = 0; b < launches[i].buffers.size(); ++b) {
      const uint32_t tensor = launches[i].buffers[b];
      const bool is_given = tensor < program.tensors.size();
      const std::optional<uint32_t> whole = tensors[tensor].part_of;
      if (!is_given && !whole) continue;
      if (launches[i].kernel->buffers[b].space == Buffer::Space::out)
        open.push_back(is_given ? tensor : *whole);
      else if (is_given)
        read[tensor] = i;
      else
        for (const uint32_t operand : program.defs[maker[*whole]].operands) read[operand] = i;
    }
    std::vector<uint32_t> &defs = all.emplace_back();
    while (!open.empty()) {
      const uint32_t def = maker[open.back()];
      open.pop_back();
      if (def == none || std::exchange(seen[def], i) == i) continue;
      defs.push_back(def);
      for (const uint32_t operand : program.defs[def].operands)
        if (read[operand] != i) open.push_back(operand);
    }
    std::ranges::sort(defs);
  }
  return all;
}

std::string nodes_of(const Launch &launch, std::span<const Tensor> tensors, const Program &program) {
  std::vector<std::string> names;
  const std::vector<std::vector<uint32_t>> defs = defs_of(std::span(&launch, 1), tensors, program);
  for (const uint32_t d : std::views::reverse(defs[0]))
    names.push_back(str_cat("'", program.defs[d].node, "' [", program.defs[d].op, "]"));
  if (names.empty()) return "the packing of weights";
  constexpr size_t most = 12;  // they may be thousands
  const size_t more = names.size() - std::min(names.size(), most);
  names.resize(names.size() - more);
  std::ranges::reverse(names);
  return str_cat(join(names, ", ", [](const std::string &name) { return name; }),
                 more ? str_cat(" and ", more, " before them") : "");
}

}  // namespace kiln::kernel
