// A folder's members back to an artifact; those that somebody edited are found by their digests.
#include <algorithm>
#include <map>

#include "jit/base/utf8.h"
#include "runtime/backends/backend.h"
#include "runtime/io/tensor_file.h"
#include "runtime/unpacked/constants.h"
#include "runtime/unpacked/manifest.h"
#include "runtime/unpacked/member_files.h"
#include "runtime/unpacked/texts.h"
#include "runtime/unpacked/unpacked.h"

namespace kiln {
namespace unpacked {
namespace {

// Bytes: of a text; and by how much another header may make a file of NumPy's larger than it was written.
constexpr uint64_t longest_text = uint64_t{1} << 30, longest_header = uint64_t{1} << 16;

std::string_view text_of(const Bytes &bytes) { return {reinterpret_cast<const char *>(bytes.data()), bytes.size()}; }

// What is wrong with a member.
Status in_member(const std::string &path, Status status) {
  if (status.code() == Code::out_of_memory || status.code() == Code::incompatible)
    return std::move(status).with_prefix(str_cat(path, ": "));
  return error(Code::corrupt, path, ": ", status.message());
}

Result<Manifest> read_manifest_of(const OldFolder &folder, const std::string &within, std::string_view build_id) {
  const std::string path = within + "artifact.json";
  KILN_ASSIGN(const Bytes bytes, folder.read(path, longest_text));
  Result<Manifest> manifest = read_manifest(text_of(bytes), build_id);
  if (!manifest.ok()) return in_member(path, manifest.take_status());
  return manifest;
}

// Reads one artifact's members.
class Reader {
 public:
  Reader(const OldFolder &folder, std::string within, std::string_view build_id)
      : folder_(folder), within_(std::move(within)), build_id_(build_id) {}

  Result<Unpacked> read(bool is_entry) {
    KILN_ASSIGN(manifest_, read_manifest_of(folder_, within_, build_id_));
    if (Status status = check_manifest(is_entry); !status.ok())
      return in_member(within_ + "artifact.json", std::move(status));
    take_manifest();
    for (const MemberName &name : member_names(manifest_)) KILN_TRY(read_member(name));
    KILN_TRY(take_images());
    for (size_t i = 0; i < manifest_.entries.size(); ++i) {
      Reader entry(folder_, str_cat(within_, folder_of_entry(i), "/"), build_id_);
      KILN_ASSIGN(Unpacked read, entry.read(true));
      for (const std::string &path : read.edited) unpacked_.edited.push_back(str_cat(folder_of_entry(i), "/", path));
      artifact_->entries.push_back({manifest_.entries[i], read.artifact});
      unpacked_.entries.push_back(std::move(read));
    }
    return std::move(unpacked_);
  }

 private:
  // That numbers are of what is there, and the members those that there have to be.
  Status check_manifest(bool is_entry) {
    const Manifest &m = manifest_;
    if (!m.targets.empty()) return error(Code::corrupt, "it is of several targets, within one of them");
    if (is_entry && !m.entries.empty()) return error(Code::corrupt, "it has entries of its own");
    KILN_TRY(find_backend(m.backend).status());
    if (m.graph_constants > m.constants.size()) return error(Code::corrupt, "it has fewer constants than its graph");
    for (const Manifest::CodeImage &image : m.images)
      if (image.code >= m.codes) return error(Code::corrupt, "code ", image.code, ", expected below ", m.codes);
    const uint64_t count =
        uint64_t{2} + m.has_graph + m.images.size() + m.codes + m.constants.size() + m.graphs + m.programs.size();
    if (count != m.members.size()) return error(Code::corrupt, m.members.size(), " members, expected ", count);
    for (const Manifest::Member &member : m.members)
      if (!members_.emplace(member.path, member).second)
        return error(Code::corrupt, "member '", member.path, "' is there twice");
    for (const MemberName &name : member_names(m))
      if (!members_.contains(name.path)) return error(Code::corrupt, "it does not tell of member '", name.path, "'");
    return {};
  }

  void take_manifest() {
    Artifact &a = *artifact_;
    a.graph_key = manifest_.key;
    a.components = std::move(manifest_.components);
    a.uses = std::move(manifest_.uses);
    a.answers = std::move(manifest_.answers);
    a.build_id = manifest_.build_id;
    a.backend = manifest_.backend;
    a.target = manifest_.target;
    a.edited = std::move(manifest_.edited);
    codes_.resize(manifest_.codes);
  }

  Status read_member(const MemberName &name) {
    const Manifest::Member &told = members_.at(name.path);
    const uint64_t longer = name.role == Role::constant ? longest_header : 0;
    const uint64_t most = name.path.ends_with(".json") ? longest_text : told.size + std::min(longer, ~told.size);
    KILN_ASSIGN(Bytes bytes, folder_.read(within_ + name.path, most));
    const bool is_edited = digest_of(bytes) != told.digest;
    if (is_edited) {
      if (Status status = edit(name); !status.ok()) return in_member(within_ + name.path, std::move(status));
      unpacked_.edited.push_back(name.path);
    }
    if (Status status = take(name, std::move(bytes)); !status.ok())
      return in_member(within_ + name.path, std::move(status));
    return {};
  }

  // What an edit of it asks for; an error where it is nobody's to edit.
  Status edit(const MemberName &name) {
    const auto made_of = [](std::string_view other) {
      return error(Code::corrupt, "damaged, or edited: it is made of ", other, ", which can be edited instead");
    };
    switch (name.role) {
      case Role::graph:
        unpacked_.edited_graph = true;
        return {};
      case Role::constant:
        if (!manifest_.has_graph) return error(Code::corrupt, "damaged, or edited: no graph is here to make code of");
        unpacked_.edited_graph = true;
        return {};
      case Role::plan:
        unpacked_.edited_plan = true;
        return {};
      case Role::kernel:
        unpacked_.edited_kernels.push_back(name.number);
        return {};
      case Role::code:
        return made_of("the kernels");
      case Role::step_graph:
      case Role::program:
        return made_of("graph.json");
      case Role::report:
        return error(Code::corrupt, "damaged, or edited: it tells of a compile that has been");
    }
    return {};
  }

  Status take(const MemberName &name, Bytes bytes) {
    Artifact &a = *artifact_;
    switch (name.role) {
      case Role::graph:
        return take_graph(text_of(bytes));
      case Role::plan: {
        KILN_ASSIGN(a.plan, read_plan(text_of(bytes)));
        a.plan.written_inputs = manifest_.written_inputs;
        a.plan.donated_inputs = manifest_.donated_inputs;
        return {};
      }
      case Role::kernel: {
        KILN_ASSIGN(const kernel::Kernel kernel, read_kernel(text_of(bytes)));
        a.kernels.push_back(kernel::serialize(kernel));
        return {};
      }
      case Role::code:
        codes_[name.number] = std::make_shared<const Bytes>(std::move(bytes));
        return {};
      case Role::constant:
        return take_constant(name.number, bytes);
      case Role::step_graph:
        a.graphs.emplace_back(text_of(bytes));
        return {};
      case Role::program:
        return take_program(manifest_.programs[name.number], std::move(bytes));
      case Role::report:
        a.report_json = text_of(bytes);
        return is_utf8(a.report_json) ? Status() : error(Code::corrupt, "the text is not UTF-8");
    }
    return {};
  }

  // Names are in the text. Where steps run no graph after passes, it is the one that they run.
  Status take_graph(std::string_view text) {
    KILN_ASSIGN(const BackendInfo *backend, find_backend(manifest_.backend));
    if (backend->makes_code())
      artifact_->source.json = text;
    else
      artifact_->graphs.emplace_back(text);
    return {};
  }

  Status take_constant(uint32_t number, const Bytes &bytes) {
    const Manifest::Constant &type = manifest_.constants[number];
    KILN_ASSIGN(const StoredTensor stored, parse_npy(bytes));
    if (stored.dtype != stored_as(type.dtype) || stored.shape != type.shape || !stored.strides.empty())
      return error(Code::corrupt, "another type, shape or order of elements than ", name_of(type.dtype),
                   " in row-major order had: [", join(type.shape, ", ", [](int64_t dim) { return str_cat(dim); }), "]");
    const bool is_of_plan = number < manifest_.constants.size() - manifest_.graph_constants;
    std::vector<TensorData> &constants = is_of_plan ? artifact_->constants : artifact_->source.constants;
    constants.push_back({type.dtype, type.shape, Bytes(stored.bytes.begin(), stored.bytes.end())});
    return check_tensor(constants.back());
  }

  Status take_program(const Manifest::GraphProgram &program, Bytes bytes) {
    if (program.graph >= artifact_->graphs.size())
      return error(Code::corrupt, "of graph ", program.graph, ", expected below ", artifact_->graphs.size());
    artifact_->programs[program.graph] = {program.backend, std::make_shared<const Bytes>(std::move(bytes)),
                                          program.parameters};
    return {};
  }

  Status take_images() {
    for (Manifest::CodeImage &image : manifest_.images) {
      artifact_->images.push_back({codes_[image.code], image.entry_offset, std::move(image.entry), image.use,
                                   std::move(image.compiler), image.kernel_key});
      artifact_->contracts.push_back(std::move(image.contract));
    }
    return {};
  }

  const OldFolder &folder_;
  const std::string within_;  // with a '/', or empty
  const std::string_view build_id_;
  Manifest manifest_;
  std::map<std::string, Manifest::Member> members_;  // by path
  std::vector<std::shared_ptr<const Bytes>> codes_;
  std::shared_ptr<Artifact> artifact_ = std::make_shared<Artifact>();
  Unpacked unpacked_{artifact_};
};

}  // namespace
}  // namespace unpacked

using namespace unpacked;

Result<std::vector<UnpackedTarget>> read_unpacked_targets(const std::string &path, std::string_view build_id) {
  KILN_ASSIGN(const OldFolder folder, OldFolder::open(path));
  KILN_ASSIGN(const Manifest manifest, read_manifest_of(folder, "", build_id));
  if (manifest.targets.empty()) return std::vector{UnpackedTarget{manifest.backend, manifest.target, ""}};
  std::vector<UnpackedTarget> targets;
  for (const Manifest::Target &one : manifest.targets)
    targets.push_back({one.backend, one.target, folder_of_target(targets.size()) + "/"});
  return targets;
}

Result<Unpacked> read_unpacked(const std::string &path, const UnpackedTarget &target, std::string_view build_id) {
  KILN_ASSIGN(const OldFolder folder, OldFolder::open(path));
  KILN_ASSIGN(Unpacked read, Reader(folder, target.folder, build_id).read(false));
  for (std::string &edited : read.edited) edited.insert(0, target.folder);
  if (read.artifact->backend == target.backend && read.artifact->target == target.target) return read;
  return error(Code::corrupt, target.folder, "artifact.json: it is for another target than the folder says");
}

}  // namespace kiln
