// A row to copy: rename it, declare it in rows.h, list it in backend.cpp, and write its module. What it refuses here is
// an example, which tests of how graphs are cut use.
#include "runtime/backends/rows.h"

namespace kiln {
namespace {

// What a person may see of its kernels: `kiln inspect --beads`, from what its module returns for these bits
// (jit/base/codegen.h). A heading begins with two slashes.
constexpr BackendInfo::Listing skeleton_listings[] = {{"beads", 1, "//"}};

// Asked for each node of a graph before it is cut, with types that may have symbols. A node that is refused falls back
// to its reference kernel, and splits the region that it is marked for; the text tells the user why. Ops are asked for
// whole: of one that is taken by its decomposition, no part is asked for.
std::optional<std::string> refuses(const Graph &graph, const Node &node) {
  if (std::optional<std::string> why = refuse_kept_composites(graph, node)) return why;
  for (const TensorType &type : node.results)
    if (type.dtype == DType::bf16) return "it is bf16, of which there are no beads";
  return {};
}

}  // namespace

// `module` makes code that this processor runs (jit/base/codegen.h). One that makes code for a device names in `archs`
// the kinds of it that users choose from (`--arch`), in `device_type` whose arrays its kernels take where they are, and
// runs the code, too (jit/base/device_table.h).
constexpr BackendInfo skeleton_backend{
    .name = "skeleton", .module = "libkiln_skeleton.so", .listings = skeleton_listings, .refuses = refuses};

}  // namespace kiln
