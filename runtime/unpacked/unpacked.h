// An artifact as a folder that a person reads and edits.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jit/base/status.h"
#include "runtime/graph/graph.h"
#include "runtime/plan/artifact.h"

namespace kiln {

// Writes a folder with all of an artifact, or of several, each for a target of its own. `ops` reads the graph after
// passes. It appears whole or not at all. Errors: io, also where something is there already.
Status write_unpacked(const std::string &path, std::span<const std::shared_ptr<const Artifact>> artifacts,
                      const OpTable &ops);

// What a folder holds.
struct Unpacked {
  std::shared_ptr<Artifact> artifact;    // as its members say; where some are edited what is made of them is not yet
  std::vector<std::string> edited = {};  // members that are not as they were written, by their paths
  bool edited_graph = false;             // or a constant of it
  bool edited_plan = false;
  std::vector<uint32_t> edited_kernels = {};
  std::vector<Unpacked> entries = {};  // of the artifact's, which has their sizes
};

// What an artifact for several targets is for, a pair of backend and target each, and its folder below `path`. One for
// one target has the folder "".
struct UnpackedTarget {
  std::string backend, target, folder;
};
Result<std::vector<UnpackedTarget>> read_unpacked_targets(const std::string &path, std::string_view build_id);
// Errors name the member: io, it is missing or cannot be read; corrupt, and where in it; incompatible, of another
// build.
Result<Unpacked> read_unpacked(const std::string &path, const UnpackedTarget &target, std::string_view build_id);

}  // namespace kiln
