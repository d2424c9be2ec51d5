#include "runtime/unpacked/manifest.h"

#include <algorithm>

#include "runtime/unpacked/pretty.h"
#include "runtime/unpacked/text_reader.h"
#include "runtime/unpacked/text_writer.h"

namespace kiln::unpacked {

template <class V, class T>
void walk(V &v, T &x, const KeyComponent *) {
  v.field("name", x, &KeyComponent::name);
  v.field("digest", x, &KeyComponent::digest);
  v.field("text", x, &KeyComponent::text);
}
template <class V, class T>
void walk(V &v, T &x, const Use *) {
  v.field("kind", x, &Use::kind);
  v.field("name", x, &Use::name);
  v.field("identity", x, &Use::identity);
}
template <class V, class T>
void walk(V &v, T &x, const Answer *) {
  v.field("question", x, &Answer::question);
  v.field("digest", x, &Answer::digest);
  v.field("text", x, &Answer::text);
}
template <class V, class T>
void walk(V &v, T &x, const kiln_kernel_use *) {
  v.field("group_threads", x, &kiln_kernel_use::group_threads);
  v.field("whole_group", x, &kiln_kernel_use::whole_group);
  v.field("registers", x, &kiln_kernel_use::registers);
  v.field("spill_bytes", x, &kiln_kernel_use::spill_bytes);
  v.field("shared_bytes", x, &kiln_kernel_use::shared_bytes);
}
template <class V, class T>
void walk(V &v, T &x, const Manifest::CodeImage *) {
  v.field("code", x, &Manifest::CodeImage::code);
  v.field("entry_offset", x, &Manifest::CodeImage::entry_offset);
  v.field("entry", x, &Manifest::CodeImage::entry);
  v.field("use", x, &Manifest::CodeImage::use);
  v.field("compiler", x, &Manifest::CodeImage::compiler);
  v.field("kernel_key", x, &Manifest::CodeImage::kernel_key);
  v.field("contract", x, &Manifest::CodeImage::contract);
}
template <class V, class T>
void walk(V &v, T &x, const Manifest::Constant *) {
  v.field("dtype", x, &Manifest::Constant::dtype);
  v.field("shape", x, &Manifest::Constant::shape);
}
template <class V, class T>
void walk(V &v, T &x, const Manifest::GraphProgram *) {
  v.field("graph", x, &Manifest::GraphProgram::graph);
  v.field("parameters", x, &Manifest::GraphProgram::parameters);
  v.field("backend", x, &Manifest::GraphProgram::backend);
}
template <class V, class T>
void walk(V &v, T &x, const Manifest::Target *) {
  v.field("backend", x, &Manifest::Target::backend);
  v.field("target", x, &Manifest::Target::target);
}
template <class V, class T>
void walk(V &v, T &x, const Manifest::Member *) {
  v.field("path", x, &Manifest::Member::path);
  v.field("size", x, &Manifest::Member::size);
  v.field("digest", x, &Manifest::Member::digest);
}
template <class V, class T>
void walk(V &v, T &x, const Manifest *) {
  v.field("format", x, &Manifest::format);
  v.field("build_id", x, &Manifest::build_id);
  v.field("targets", x, &Manifest::targets);
  v.field("backend", x, &Manifest::backend);
  v.field("target", x, &Manifest::target);
  v.field("key", x, &Manifest::key);
  v.field("components", x, &Manifest::components);
  v.field("uses", x, &Manifest::uses);
  v.field("answers", x, &Manifest::answers);
  v.field("edited", x, &Manifest::edited);
  v.field("written_inputs", x, &Manifest::written_inputs);
  v.field("donated_inputs", x, &Manifest::donated_inputs);
  v.field("codes", x, &Manifest::codes);
  v.field("images", x, &Manifest::images);
  v.field("has_graph", x, &Manifest::has_graph);
  v.field("constants", x, &Manifest::constants);
  v.field("graph_constants", x, &Manifest::graph_constants);
  v.field("graphs", x, &Manifest::graphs);
  v.field("programs", x, &Manifest::programs);
  v.field("entries", x, &Manifest::entries);
  v.field("members", x, &Manifest::members);
}

namespace {

constexpr std::string_view digest_key = ",\n  \"digest\": \"";

// The manifest without its digest, or nothing, where it was not written so.
std::string_view body_of(std::string_view text) {
  const size_t at = text.rfind(digest_key);
  if (at == text.npos) return {};
  const std::string_view body = text.substr(0, at);
  return text.substr(at + digest_key.size()) == str_cat(digest_of(body).hex(), "\"\n}\n") ? body : std::string_view();
}

// What says whether the rest can be read.
Status check_version(const json::View &top, std::string_view build_id) {
  KILN_ASSIGN(const json::View format, top.required("format"));
  KILN_ASSIGN(const int64_t number, format.as_integer());
  if (number != manifest_format)
    return error(Code::incompatible, "the artifact has format ", number, ", expected ", manifest_format);
  KILN_ASSIGN(const json::View build, top.required("build_id"));
  KILN_ASSIGN(const std::string_view made_by, build.as_text());
  if (made_by == build_id) return {};
  return error(Code::incompatible, "the artifact is of build ", made_by, ", this is build ", build_id);
}

}  // namespace

std::string text_of(const Manifest &manifest) {
  std::string body = pretty(TextWriter().text_of_item(manifest));
  body.resize(body.rfind("\n}"));
  const std::string digest = digest_of(body).hex();
  return str_cat(body, digest_key, digest, "\"\n}\n");
}

Result<Manifest> read_manifest(std::string_view text, std::string_view build_id) {
  KILN_ASSIGN(const json::Document document, json::parse(text));
  KILN_TRY(check_version(json::View(document.get(), ""), build_id));
  const std::string_view body = body_of(text);
  if (body.empty())
    return error(Code::corrupt, "edited or damaged: what it says is not to be edited, but for other members");
  KILN_ASSIGN(const json::Document own, json::parse(str_cat(body, "}")));
  Manifest manifest;
  KILN_TRY(TextReader().read(json::View(own.get(), ""), manifest));
  return manifest;
}

std::string folder_of_entry(size_t number) { return str_cat("entries/", number); }
std::string folder_of_target(size_t number) { return str_cat("targets/", number); }

std::vector<MemberName> member_names(const Manifest &manifest) {
  std::vector<MemberName> names;
  if (!manifest.targets.empty()) return names;
  if (manifest.has_graph) names.push_back({"graph.json", Role::graph});
  names.push_back({"plan.json", Role::plan});
  const auto add = [&](size_t count, std::string_view folder, std::string_view ending, Role role) {
    for (uint32_t i = 0; i < count; ++i) names.push_back({str_cat(folder, "/", i, ending), role, i});
  };
  add(manifest.images.size(), "kernels", ".json", Role::kernel);
  add(manifest.codes, "images", ".bin", Role::code);
  add(manifest.constants.size(), "constants", ".npy", Role::constant);
  add(manifest.graphs, "graphs", ".json", Role::step_graph);
  add(manifest.programs.size(), "programs", ".bin", Role::program);
  names.push_back({"report.json", Role::report});
  return names;
}

}  // namespace kiln::unpacked
