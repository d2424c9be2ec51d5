// An artifact: one compiled graph, as data: a plan and all that its steps use. Nothing in it is a pointer, so that it
// can be kept as bytes (runtime/cache/artifact.h), and what was just compiled is loaded exactly as what was read.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "jit/base/bytes.h"
#include "jit/base/hash.h"
#include "jit/base/target.h"
#include "runtime/graph/attr.h"
#include "runtime/plan/plan.h"

namespace kiln {

struct Image {
  Bytes code;  // position-independent, loaded at a 64-byte aligned address
  uint64_t entry_offset = 0;
  Digest k2;  // key of the kernel that it was compiled from
};

// One component of K1: its name ("graph", "options", "pass fuse_rms_norm", "target", "build") and its digest, so that a
// miss can say which one differs. `text` is for people.
struct KeyComponent {
  std::string name;
  Digest digest;
  std::string text;
};

struct Artifact {
  Digest key;  // K1; zero when none was computed (cache off or bypassed)
  std::vector<KeyComponent> components;
  std::string build_id, backend;  // backend: "cpu", "reference"
  std::string target;             // Target::name() that the images need
  Plan plan;
  std::vector<Image> images;
  std::vector<Bytes> kernels;  // serialised kernel IR, one an image: for inspection
  std::vector<TensorData> constants;
  std::string graph_json;  // what steps of kind reference run; empty when there are none
  std::string
      report_json;  // of the compile that made it: the passes that ran; no times, so that bytes are reproducible
};

}  // namespace kiln
