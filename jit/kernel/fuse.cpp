#include "jit/kernel/fuse.h"

#include <algorithm>
#include <unordered_map>

#include "jit/base/hash.h"
#include "jit/kernel/fuse_steps.h"

namespace kiln::kernel {
namespace {

// A model repeats its layers: what follows fusion should cost as much as its distinct kernels, not as its launches.
class DistinctKernels {
 public:
  Result<std::shared_ptr<const Kernel>> add(Kernel kernel) {
    auto [found, is_new] = by_bytes_.try_emplace(serialize(kernel));
    if (!is_new) return found->second;
    if (Status status = verify(kernel); !status.ok())
      return error(Code::internal, "fusion made a kernel that is not well-formed: ", status.message(), "\n",
                   print(kernel));
    return found->second = std::make_shared<const Kernel>(std::move(kernel));
  }

 private:
  struct HashBytes {
    size_t operator()(const Bytes &bytes) const { return checksum_of(bytes); }
  };
  std::unordered_map<Bytes, std::shared_ptr<const Kernel>, HashBytes> by_bytes_;
};

}  // namespace

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

  DistinctKernels kernels;
  for (const Group &group : groups) {
    auto [kernel, launch] = build_launch(group, items, fused.tensors, needed);
    collapse_axes(kernel);
    launch.symbols = rename_symbols(kernel);
    schedule(kernel, target);
    KILN_ASSIGN(launch.kernel, kernels.add(std::move(kernel)));
    fused.launches.push_back(std::move(launch));
  }
  return fused;
}

}  // namespace kiln::kernel
