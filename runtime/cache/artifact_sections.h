// Parts of an artifact read alone, and the file of one kernel's image. For the cache; hosts see whole artifacts only.
#pragma once
#include <string>
#include <vector>

#include "runtime/cache/artifact.h"

namespace kiln {

// What says what an artifact is: its key and what the key was made of.
struct ArtifactIdentity {
  Digest key;
  std::vector<KeyComponent> components;
  std::string build_id, backend, target;
};
// Reads and checks the header and the components, and no other section. Errors are read_artifact's.
Result<ArtifactIdentity> read_identity(ByteSpan bytes);

// The same container with the section "images" alone; its key is the image's k2.
Bytes write_kernel_image(const Image &image);
Result<Image> read_kernel_image(ByteSpan bytes);

}  // namespace kiln
