// Parts of an artifact read alone, and the file of kernels' images. For the cache; hosts see whole artifacts only.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "jit/base/bytes.h"
#include "runtime/cache/artifact_bytes.h"

namespace kiln {

// The next bytes of `in`; where it ends before, zeros.
Digest get_digest(ByteReader &in);

// What says what an artifact is: its key and what the key was made of.
struct ArtifactIdentity {
  Digest graph_key;
  std::vector<KeyComponent> components;
  std::vector<Use> uses;
  std::vector<Answer> answers;
  std::string build_id, backend, target;
};
// Reads and checks the header and the components, and no other section. Errors are read_artifact's. `first` are the
// bytes of a file of `length` up to the end of its components, at least.
Result<ArtifactIdentity> read_identity(ByteSpan first, uint64_t length);

// The same container with the section "images" alone: images that share one code. The
// record's key is the first one's kernel_key.
Bytes write_kernel_images(std::span<const Image> images);
Result<std::vector<Image>> read_kernel_images(ByteSpan bytes);

}  // namespace kiln
