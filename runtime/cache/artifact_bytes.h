// An artifact's bytes: the same in the cache and in a file that a host saved.
#pragma once
#include <span>

#include "jit/base/bytes.h"
#include "jit/base/status.h"
#include "runtime/plan/artifact.h"

namespace kiln {

struct WeightsImage;

Bytes write_artifact(const Artifact &artifact);
// With these entries instead of its own.
Bytes write_artifact(const Artifact &artifact, std::span<const Artifact::Entry> entries);
// With the parameters behind it: the data is to follow these bytes.
Bytes write_artifact(const Artifact &artifact, std::span<const Artifact::Entry> entries, const WeightsImage &weights);
// Checks magic, format version, length, header and section checksums and bounds, and every index inside. code corrupt:
// damaged, with the section and offset; code incompatible: another format version or build.
Result<Artifact> read_artifact(ByteSpan bytes);

}  // namespace kiln
