// Executables as bytes: saved, opened, and several of them, for as many targets, as one.
#include "abi/src/artifacts.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>

#include "abi/src/options.h"
#include "jit/base/file.h"
#include "jit/base/produce_file.h"
#include "runtime/exec/fitting.h"
#include "runtime/unpacked/unpacked.h"

namespace kiln::abi {

namespace {

// With what was made since it was loaded.
std::shared_ptr<const Artifact> whole(const Executable &general) {
  auto artifact = std::make_shared<Artifact>(general.artifact());
  artifact->entries = general.made_entries();
  return artifact;
}

// Of an executable whose parameters are in its file, which would get lost.
Status check_alone(const Executable &executable) {
  if (!executable.weights()) return {};
  return invalid("its parameters are in '", executable.weights()->path(),
                 "', which this would leave out; kiln_call_save writes a file that has them");
}

Status write_folder(const std::string &path, const kiln_executable &executable) {
  std::vector<std::shared_ptr<const Artifact>> artifacts;
  for (const std::shared_ptr<const Executable> &one : executable.joined) artifacts.push_back(whole(*one));
  if (artifacts.empty()) artifacts.push_back(whole(*executable.executable));
  return write_unpacked(path, artifacts, executable.live.context()->ops());
}

Bytes bytes_of(const Executable &general) { return write_artifact(general.artifact(), general.made_entries()); }

Bytes bytes_of(const kiln_executable &executable) {
  if (executable.joined.empty()) return bytes_of(*executable.executable);
  std::vector<Bytes> all;
  for (const std::shared_ptr<const Executable> &one : executable.joined) all.push_back(bytes_of(*one));
  return write_targets(all);
}

ArtifactTarget target_of(const Executable &executable) {
  return {executable.artifact().backend, executable.artifact().target};
}

// Which of the artifacts for these targets runs here.
Result<size_t> choose(Context &context, std::span<const ArtifactTarget> targets) {
  return choose_fitting(targets, [&](const BackendInfo &backend) { return context.modules()->device(backend, 0); });
}

std::vector<std::string> names_of(std::span<const ArtifactTarget> targets) {
  std::vector<std::string> names;
  for (const ArtifactTarget &target : targets) names.push_back(target.target);
  return names;
}

Status check_open(const Checks &check, const kiln_context *context, const kiln_options *options, const void *out) {
  KILN_TRY(check.handle(context, "context"));
  KILN_TRY(check.optional_handle(options, "options"));
  return check.pointer(out, "out");
}

Result<kiln_executable *> open_artifact(const std::shared_ptr<Context> &context, std::span<const uint8_t> bytes,
                                        const kiln_options *options, const std::shared_ptr<const MappedFile> &file = {},
                                        const std::string &path = {}) {
  KILN_ASSIGN(const AttrMap given, check_options("open", {{"expect_key", std::string()}}, values_of(options)));
  KILN_ASSIGN(const std::vector<TargetBytes> all, read_targets(bytes));
  std::vector<ArtifactTarget> targets;
  for (const TargetBytes &one : all) targets.push_back(one.target);
  size_t chosen = 0;
  if (all.size() > 1) {
    KILN_ASSIGN(chosen, choose(*context, targets));
  }
  KILN_ASSIGN(Artifact read, read_artifact(all[chosen].bytes));
  const auto artifact = std::make_shared<const Artifact>(std::move(read));
  if (!artifact->edited.empty())
    KILN_TRY(context->warn(str_cat("the artifact was edited: ",
                                   join(artifact->edited, ", ", [](const std::string &member) { return member; }))));
  const std::string &expected = given.find("expect_key")->second.text_value();
  const std::string key = artifact->components.empty() ? "" : artifact->graph_key.hex();
  if (!expected.empty() && expected != key)
    return error(Code::incompatible, "the artifact has ", key.empty() ? "no key" : str_cat("key ", key),
                 ", and option 'expect_key' is ", expected);
  std::shared_ptr<const Weights> weights;
  if (has_weights(all[chosen].bytes)) {
    if (!file) return invalid("it has parameters, which are mapped: open the file that it is in by its path");
    KILN_ASSIGN(weights, Weights::open(file, path));
  }
  KILN_ASSIGN(const BackendInfo *backend, find_backend(artifact->backend));
  KILN_ASSIGN(std::shared_ptr<const Executable> loaded,
              Executable::load(
                  artifact, context->ops(), context->pool(), build_id(),
                  [modules = context->modules(), backend](uint32_t index) { return modules->device(*backend, index); },
                  *context->functions(), *context->backends(), std::move(weights)));
  KILN_TRY(loaded->place().check());
  kiln_executable *opened = make_executable(context, std::move(loaded));
  if (all.size() > 1) opened->targets = names_of(targets);
  return opened;
}

// Of a target that is not the one to load. What is wrong there is told where it is loaded.
Status warn_of_edits(Context &context, const std::string &path, const UnpackedTarget &target) {
  const Result<Unpacked> read = read_unpacked(path, target, build_id());
  if (!read.ok() || read->edited.empty()) return {};
  return context.warn(str_cat("the artifact was edited for ", target.target, ", which is not loaded here: ",
                              join(read->edited, ", ", [](const std::string &member) { return member; })));
}

// Of several, the folder of the one that fits, whose edits are made. As one file has it.
Result<Bytes> pack_folder(const std::shared_ptr<Context> &context, const std::string &path,
                          std::vector<std::string> &names) {
  KILN_ASSIGN(const std::vector<UnpackedTarget> all, read_unpacked_targets(path, build_id()));
  std::vector<ArtifactTarget> targets;
  for (const UnpackedTarget &one : all) targets.push_back({one.backend, one.target});
  size_t chosen = 0;
  if (all.size() > 1) {
    KILN_ASSIGN(chosen, choose(*context, targets));
    names = names_of(targets);
  }
  KILN_ASSIGN(const Unpacked unpacked, read_unpacked(path, all[chosen], build_id()));
  for (size_t i = 0; i < all.size(); ++i)
    if (i != chosen) KILN_TRY(warn_of_edits(*context, path, all[i]));
  Result<Artifact> artifact = context->make_edited(unpacked);
  if (!artifact.ok()) return artifact.take_status().with_prefix(all[chosen].folder);
  return write_artifact(*artifact);
}

// What is wrong with what lies there.
Status in_file(const std::string &path, Status status) { return std::move(status).with_prefix(str_cat(path, ": ")); }

Result<kiln_executable *> open_folder(const std::shared_ptr<Context> &context, const std::string &path,
                                      const kiln_options *options) {
  std::vector<std::string> names;
  const Result<Bytes> packed = pack_folder(context, path, names);
  if (!packed.ok()) return in_file(path, packed.status());
  Result<kiln_executable *> opened = open_artifact(context, *packed, options);
  if (!opened.ok()) return in_file(path, opened.take_status());
  (*opened)->targets = std::move(names);
  return opened;
}

Result<kiln_executable *> open_packed(const std::shared_ptr<Context> &context, const std::string &path,
                                      const kiln_options *options) {
  KILN_ASSIGN(MappedFile mapped, MappedFile::open(path));
  const auto file = std::make_shared<const MappedFile>(std::move(mapped));
  Result<kiln_executable *> opened = open_artifact(context, file->bytes(), options, file, path);
  return opened.ok() ? std::move(opened) : in_file(path, opened.take_status());
}

bool is_folder(const std::string &path) {
  struct stat there{};
  return ::stat(path.c_str(), &there) == 0 && S_ISDIR(there.st_mode);
}

// Why the second cannot stand beside the first; "": it can.
std::string differ(const Executable &first, const Executable &other) {
  const Plan &a = first.plan(), &b = other.plan();
  if (target_of(first).backend != target_of(other).backend) return "they are of different backends";
  if (a.inputs != b.inputs || a.parameters != b.parameters || a.outputs != b.outputs || a.presented != b.presented)
    return "their inputs, parameters or outputs differ";
  return "";
}

}  // namespace
}  // namespace kiln::abi

using namespace kiln;
using namespace kiln::abi;

kiln_error *kiln_executable_save(const kiln_executable *executable, const char *path, uint64_t path_size,
                                 const kiln_options *options) {
  return deep_entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(executable, "executable"));
    KILN_ASSIGN(const std::string file, check.path(path, path_size, "path"));
    KILN_TRY(check.optional_handle(options, "options"));
    KILN_ASSIGN(const AttrMap given, check_options("save", {{"packed", true}}, values_of(options)));
    KILN_TRY(check_alone(*executable->executable));
    if (!given.find("packed")->second.boolean()) return write_folder(file, *executable);
    return write_file(file, bytes_of(*executable));
  });
}

kiln_error *kiln_call_save(const kiln_call *call, const char *path, uint64_t path_size, const kiln_options *options) {
  return deep_entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(call, "call"));
    KILN_ASSIGN(const std::string file, check.path(path, path_size, "path"));
    KILN_TRY(check.optional_handle(options, "options"));
    KILN_TRY(no_options("save", options));
    const Call::Use use(*call->call);
    KILN_ASSIGN(const Call::Saved saved, call->call->saved(use));
    const Artifact &artifact = call->call->executable().artifact();
    const WeightsImage &weights = saved.weights;
    if (weights.table.parameters.empty()) return write_file(file, write_artifact(artifact, saved.entries));
    const Bytes head = write_artifact(artifact, saved.entries, weights);
    // What a link leads to is replaced, too, and not written in place: it may be what is mapped here.
    const std::unique_ptr<char, void (*)(void *)> real(::realpath(file.c_str(), nullptr), &std::free);
    return produce_file(real ? real.get() : file, [&](const WriteBytes &write) {
      return write(head) && for_each_block(weights.pieces, weights.size, write);
    });
  });
}

kiln_error *kiln_executable_bytes(const kiln_executable *executable, const kiln_options *options, kiln_blob **out) {
  return deep_entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(executable, "executable"));
    KILN_TRY(check.optional_handle(options, "options"));
    KILN_TRY(check.pointer(out, "out"));
    KILN_TRY(no_options("bytes", options));
    KILN_TRY(check_alone(*executable->executable));
    const Bytes bytes = bytes_of(*executable);
    *out = make_blob(std::string(bytes.begin(), bytes.end()));
    return {};
  });
}

kiln_error *kiln_executable_open(kiln_context *context, const char *path, uint64_t path_size,
                                 const kiln_options *options, kiln_executable **out) {
  return deep_entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check_open(check, context, options, out));
    KILN_ASSIGN(const std::string file, check.path(path, path_size, "path"));
    const auto open = is_folder(file) ? open_folder : open_packed;
    KILN_ASSIGN(*out, open(share(context), file, options));
    return {};
  });
}

kiln_error *kiln_executable_open_bytes(kiln_context *context, const void *bytes, uint64_t size,
                                       const kiln_options *options, kiln_executable **out) {
  return deep_entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check_open(check, context, options, out));
    KILN_TRY(check.pointer(bytes, "bytes"));
    KILN_ASSIGN(*out, open_artifact(share(context), {static_cast<const uint8_t *>(bytes), size}, options));
    return {};
  });
}

kiln_error *kiln_executable_join(const kiln_executable *const *executables, uint64_t count, kiln_executable **out) {
  return deep_entry(__func__, [&](const Checks &check) -> Status {
    KILN_ASSIGN(const std::span<const kiln_executable *const> given, check.array(executables, count, "executables"));
    KILN_TRY(check.pointer(out, "out"));
    if (given.empty()) return check.fail("count is 0; expected an executable for each target");
    std::vector<std::shared_ptr<const Executable>> joined;
    std::vector<ArtifactTarget> targets;
    for (size_t i = 0; i < given.size(); ++i) {
      const std::string name = str_cat("executables[", i, "]");
      KILN_TRY(check.handle(given[i], name.c_str()));
      if (!given[i]->joined.empty()) return check.fail(name, " is of several targets already");
      const std::shared_ptr<const Executable> &one = given[i]->executable;
      KILN_TRY(check_alone(*one));
      ArtifactTarget target = target_of(*one);
      if (std::ranges::find(targets, target.target, &ArtifactTarget::target) != targets.end())
        return check.fail(name, " is for ", target.target, ", as one before it is");
      if (const std::string why = joined.empty() ? "" : differ(*joined[0], *one); !why.empty())
        return check.fail(name, " and executables[0] are not of one graph: ", why);
      joined.push_back(one);
      targets.push_back(std::move(target));
    }
    const std::shared_ptr<Context> &context = given[0]->live.context();
    const Result<size_t> fitting = choose(*context, targets);
    if (!fitting.ok() && fitting.status().code() != Code::incompatible) return fitting.status();
    // Where none of them runs they are made for elsewhere; a call says what this machine lacks.
    *out = make_executable(context, joined[fitting.ok() ? *fitting : 0]);
    (*out)->joined = std::move(joined);
    (*out)->targets = names_of(targets);
    return {};
  });
}
