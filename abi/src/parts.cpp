// The planner of regions, for graphs of a host's own.
#include <algorithm>

#include "abi/src/entry.h"
#include "runtime/regions/grouping.h"

using namespace kiln;
using namespace kiln::abi;

kiln_error *kiln_parts_plan(uint64_t count, const uint32_t *colors, const uint64_t *use_begins, const uint32_t *uses,
                            uint32_t *out_parts, uint32_t *out_count) {
  return entry(__func__, [&](const Checks &check) -> Status {
    if (count >= UINT32_MAX) return check.fail(count, " nodes; there may be ", UINT32_MAX - 1);
    KILN_ASSIGN(const std::span<const uint32_t> color_of, check.array(colors, count, "colors"));
    KILN_ASSIGN(const std::span<const uint64_t> begins, check.array(use_begins, count + 1, "use_begins"));
    if (begins[0] != 0) return check.fail("use_begins[0] is ", begins[0], ", expected 0");
    if (begins[count] >= UINT32_MAX) return check.fail(begins[count], " uses; there may be ", UINT32_MAX - 1);
    for (uint32_t node = 0; node < count; ++node) {
      if (color_of[node] > count) return check.fail("colors[", node, "] is ", color_of[node], ", of ", count, " nodes");
      if (begins[node] > begins[node + 1])
        return check.fail("use_begins[", node + 1, "] is ", begins[node + 1], ", below the one before it");
    }
    KILN_ASSIGN(const std::span<const uint32_t> used, check.array(uses, begins[count], "uses"));
    Lists lists;
    for (uint32_t node = 0; node < count; ++node) {
      const std::span<const uint32_t> of_node = used.subspan(begins[node], begins[node + 1] - begins[node]);
      for (const uint32_t other : of_node)
        if (other >= node) return check.fail("node ", node, " comes after node ", other, ", which is not before it");
      lists.add(of_node);
    }
    if (count) KILN_TRY(check.pointer(out_parts, "out_parts"));
    KILN_TRY(check.pointer(out_count, "out_count"));
    const Grouping grouping = group(lists, color_of);
    std::ranges::copy(grouping.group_of, out_parts);
    *out_count = grouping.count;
    return {};
  });
}
