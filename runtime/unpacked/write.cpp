// An artifact's members as files, and the manifest that tells of them.
#include <algorithm>
#include <map>

#include "jit/base/build_id.h"
#include "runtime/backends/backend.h"
#include "runtime/graph/json.h"
#include "runtime/io/tensor_file.h"
#include "runtime/plan/source.h"
#include "runtime/unpacked/constants.h"
#include "runtime/unpacked/manifest.h"
#include "runtime/unpacked/member_files.h"
#include "runtime/unpacked/texts.h"
#include "runtime/unpacked/unpacked.h"

namespace kiln {
namespace unpacked {
namespace {

ByteSpan bytes_of(std::string_view text) { return {reinterpret_cast<const uint8_t *>(text.data()), text.size()}; }

// Writes one artifact's members, and tells the manifest of them.
class Writer {
 public:
  Writer(NewFolder &folder, std::string_view within, std::shared_ptr<const Artifact> artifact, const OpTable &ops)
      : folder_(folder), within_(within), artifact_(std::move(artifact)), ops_(ops) {}

  Status write() {
    const Artifact &a = *artifact_;
    manifest_.format = manifest_format;
    manifest_.build_id = a.build_id;
    manifest_.backend = a.backend;
    manifest_.target = a.target;
    manifest_.key = a.graph_key;
    manifest_.components = a.components;
    manifest_.uses = a.uses;
    manifest_.answers = a.answers;
    manifest_.edited = a.edited;
    manifest_.written_inputs = a.plan.written_inputs;
    manifest_.donated_inputs = a.plan.donated_inputs;
    KILN_TRY(write_graph());
    KILN_TRY(text("plan.json", unpacked::text_of(a.plan)));
    KILN_TRY(write_kernels());
    for (const TensorData &constant : a.constants) KILN_TRY(write_constant(constant));
    for (const TensorPtr &constant : graph_constants_) KILN_TRY(write_constant(*constant));
    for (const auto &[graph, program] : a.programs) {
      KILN_TRY(member(str_cat("programs/", manifest_.programs.size(), ".bin"), *program.blob));
      manifest_.programs.push_back({graph, program.parameters, program.backend});
    }
    KILN_TRY(text("report.json", a.report_json));
    for (size_t i = 0; i < a.entries.size(); ++i) {
      manifest_.entries.push_back(a.entries[i].sizes);
      Writer entry(folder_, str_cat(within_, folder_of_entry(i), "/"), a.entries[i].artifact, ops_);
      KILN_TRY(entry.write());
    }
    return folder_.write(within_ + "artifact.json", bytes_of(unpacked::text_of(manifest_)));
  }

 private:
  Status member(const std::string &path, ByteSpan bytes) {
    manifest_.members.push_back({path, bytes.size(), digest_of(bytes)});
    return folder_.write(within_ + path, bytes);
  }
  Status text(const std::string &path, std::string_view text) { return member(path, bytes_of(text)); }

  // After passes, with the nodes' names. What the oracle runs is the graph as it was given.
  Status write_graph() {
    KILN_ASSIGN(const BackendInfo *backend, find_backend(artifact_->backend));
    const std::vector<std::string> &graphs = artifact_->graphs;
    manifest_.has_graph = !artifact_->source.json.empty() || (!backend->makes_code() && graphs.size() == 1);
    if (manifest_.has_graph && artifact_->source.json.empty()) return text("graph.json", graphs.front());
    if (manifest_.has_graph) {
      Apart apart;
      KILN_ASSIGN(const GraphPtr graph, read_source(artifact_, ops_, &apart.tensors));
      const std::string json = write_json(*graph, apart, [](const Node &) { return size_t{0}; });
      graph_constants_.assign(apart.tensors.begin() + static_cast<std::ptrdiff_t>(artifact_->constants.size()),
                              apart.tensors.end());
      manifest_.graph_constants = static_cast<uint32_t>(graph_constants_.size());
      KILN_TRY(text("graph.json", json));
    }
    manifest_.graphs = static_cast<uint32_t>(graphs.size());
    for (size_t i = 0; i < graphs.size(); ++i) KILN_TRY(text(str_cat("graphs/", i, ".json"), graphs[i]));
    return {};
  }

  Status write_kernels() {
    const Artifact &a = *artifact_;
    std::map<const Bytes *, uint32_t> numbers;
    for (size_t i = 0; i < a.images.size(); ++i) {
      const Image &image = a.images[i];
      KILN_ASSIGN(const kernel::Kernel kernel, kernel::parse(a.kernels[i]));
      KILN_TRY(text(str_cat("kernels/", i, ".json"), unpacked::text_of(kernel)));
      const auto [code, is_new] = numbers.try_emplace(image.code.get(), manifest_.codes);
      if (is_new) KILN_TRY(member(str_cat("images/", manifest_.codes++, ".bin"), *image.code));
      manifest_.images.push_back(
          {code->second, image.entry_offset, image.entry, image.use, image.compiler, image.kernel_key, a.contracts[i]});
    }
    return {};
  }

  Status write_constant(const TensorData &constant) {
    KILN_ASSIGN(const Bytes file, write_npy({"", stored_as(constant.dtype), constant.shape, {}, constant.bytes}));
    KILN_TRY(member(str_cat("constants/", manifest_.constants.size(), ".npy"), file));
    manifest_.constants.push_back({constant.dtype, constant.shape});
    return {};
  }

  NewFolder &folder_;
  const std::string within_;  // with a '/', or empty
  const std::shared_ptr<const Artifact> artifact_;
  const OpTable &ops_;
  std::vector<TensorPtr> graph_constants_;
  Manifest manifest_;
};

}  // namespace
}  // namespace unpacked

using namespace unpacked;

Status write_unpacked(const std::string &path, std::span<const std::shared_ptr<const Artifact>> artifacts,
                      const OpTable &ops) {
  NewFolder folder(path);
  KILN_TRY(folder.make());
  if (artifacts.size() == 1) {
    KILN_TRY(Writer(folder, "", artifacts.front(), ops).write());
    return folder.finish();
  }
  Manifest all;
  all.format = manifest_format;
  all.build_id = artifacts.front()->build_id;
  for (size_t i = 0; i < artifacts.size(); ++i) {
    KILN_TRY(Writer(folder, folder_of_target(i) + "/", artifacts[i], ops).write());
    all.targets.push_back({artifacts[i]->backend, artifacts[i]->target});
  }
  KILN_TRY(folder.write("artifact.json", bytes_of(unpacked::text_of(all))));
  return folder.finish();
}

}  // namespace kiln
