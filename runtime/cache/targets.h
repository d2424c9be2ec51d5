// The artifacts of one graph for several targets as one file: a record with each of them whole.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "runtime/cache/artifact_bytes.h"

namespace kiln {

// What an artifact is for.
struct ArtifactTarget {
  std::string backend, target;
};
struct TargetBytes {
  ArtifactTarget target;
  ByteSpan bytes;  // of the file; as read_artifact takes them
};

// In this order.
Bytes write_targets(std::span<const Bytes> artifacts);
// The artifacts that a file holds: several, or itself, where it is not one of several. Only what says what they are for
// is checked. Errors: corrupt, incompatible.
Result<std::vector<TargetBytes>> read_targets(ByteSpan file);

}  // namespace kiln
