// An artifact: one compiled graph, as data: a plan and all that its steps use. Nothing in it is a pointer, so that it
// can be kept as bytes (runtime/cache/artifact_bytes.h), and what was just compiled is loaded exactly as what was read.
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "jit/base/bytes.h"
#include "jit/base/codegen.h"
#include "jit/base/hash.h"
#include "jit/base/target.h"
#include "runtime/graph/attr.h"
#include "runtime/passes/questions.h"
#include "runtime/plan/contract.h"
#include "runtime/plan/plan.h"

namespace kiln {

// The code of one kernel. Kernels that a module compiled together share their code: it is loaded and kept once.
struct Image {
  // Position-independent, loaded at a 64-byte aligned address; of a device, what its module loads. Never null; empty:
  // the kernel was not compiled, it is here to be looked at.
  std::shared_ptr<const Bytes> code = std::make_shared<const Bytes>();
  uint64_t entry_offset = 0;
  std::string entry;         // of a device: the kernel's name in the code
  kiln_kernel_use use = {};  // of a device
  std::string compiler;      // other than Kiln's own: its name and version
  Digest kernel_key;         // of the kernel that it was compiled from
};

// One component of a graph_key: its name ("graph", "options", "pass fuse_rms_norm", "target", "build") and its digest,
// so that a miss can say which one differs. `text` is for people.
struct KeyComponent {
  std::string name;
  Digest digest;
  std::string text;
};

// An op, function or backend that an artifact was made with, or that a pass asked for: another one would have made
// another.
struct Use {
  std::string kind, name;  // "op", "backend", ...
  std::string identity;    // empty: there was none of that name
  bool operator==(const Use &) const = default;
};

// The graph after all passes, which programs for some sizes are made of (source.h). Unread until somebody wants it.
// Names of nodes are those of whichever graph it was last given, as in the plan; what passes made has none.
struct Source {
  std::string json, mark;             // see Apart in runtime/graph/json.h
  std::vector<Plan::NodeRef> names;   // a node's own
  std::vector<TensorData> constants;  // the tensors are the artifact's constants, then these
};

// What runs a graph of the artifact in place of reference kernels.
struct Program {
  std::string backend;  // a registered one
  // What it made of the graph, of which so many inputs, the last ones, are parameters. Empty: nothing, it is here to be
  // looked at.
  std::shared_ptr<const Bytes> blob = std::make_shared<const Bytes>();
  uint32_t parameters = 0;
  bool operator==(const Program &other) const {
    return backend == other.backend && parameters == other.parameters && *blob == *other.blob;
  }
};

struct Artifact {
  Digest graph_key;  // zero when the lookup was bypassed, or the artifact was edited
  std::vector<KeyComponent> components;
  std::vector<Use> uses;          // by kind and name
  std::vector<Answer> answers;    // to what its passes asked, by question
  std::string build_id, backend;  // backend: its name in runtime/backends/backend.h
  std::string target;             // Target::name() that the images need
  Plan plan;
  std::vector<Image> images;
  std::vector<Contract> contracts;  // what each image relies on
  std::vector<Bytes> kernels;       // serialised kernel IR, one an image: for inspection
  std::vector<TensorData> constants;
  std::vector<std::string> graphs;       // as JSON: what steps of kind reference run
  std::map<uint32_t, Program> programs;  // by the number of their graph
  Source source;                         // empty: of the reference backend, which runs no pass
  struct Entry {
    std::string sizes;  // "batch=1,length=128"
    std::shared_ptr<const Artifact> artifact;
  };
  std::vector<Entry> entries;  // programs for some sizes, where they are packed together
  // Members of an unpacked one that somebody edited (runtime/unpacked), of which this one was made: no compile would
  // have made it, so no cache may have it.
  std::vector<std::string> edited;
  std::string report_json;  // the passes that ran in the compile that made it; no times: equal inputs, equal bytes
};

// Whether its kernels and programs were compiled, rather than made to be looked at.
inline bool has_code(const Artifact &artifact) {
  return std::ranges::none_of(artifact.images, [](const Image &image) { return image.code->empty(); }) &&
         std::ranges::none_of(artifact.programs, [](const auto &program) { return program.second.blob->empty(); });
}

}  // namespace kiln
