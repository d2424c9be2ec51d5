#include "jit/kernel/fuse.h"

#include <algorithm>

#include "jit/kernel/fuse_steps.h"

namespace kiln::kernel {

Result<Fused> fuse(const Program &program, const Target &target, const FuseOptions &options) {
  Fused fused;
  fused.tensors = program.tensors;
  std::vector<Item> items = inline_producers(program, options);
  items = split_packing(std::move(items), fused.tensors, target);
  // What is prepared comes first: between the others it would only keep them from meeting in one group.
  std::ranges::stable_partition(items, &Item::prepared);
  const std::vector<Group> groups = group_items(items, fused.tensors, options);

  // A tensor outlives its group when it is an output, or when another group reads it.
  std::vector<uint32_t> group_of(fused.tensors.size(), UINT32_MAX);
  std::vector<bool> needed(fused.tensors.size());
  for (uint32_t g = 0; g < groups.size(); ++g) {
    for (uint32_t i : groups[g].items) group_of[items[i].result] = g;
  }
  for (uint32_t g = 0; g < groups.size(); ++g) {
    for (uint32_t i : groups[g].items) {
      if (fused.tensors[items[i].result].is_output) needed[items[i].result] = true;
      for (uint32_t operand : items[i].operands) {
        if (group_of[operand] != g) needed[operand] = true;
      }
    }
  }

  for (const Group &group : groups) {
    Launch launch = build_launch(group, items, fused.tensors, needed);
    collapse_axes(launch.kernel);
    launch.symbols = rename_symbols(launch.kernel);
    schedule(launch.kernel, target);
    if (Status status = verify(launch.kernel); !status.ok()) {
      return error(Code::internal, "fusion made a kernel that is not well-formed: ", status.message(), "\n",
                   print(launch.kernel));
    }
    fused.launches.push_back(std::move(launch));
  }
  return fused;
}

}  // namespace kiln::kernel
