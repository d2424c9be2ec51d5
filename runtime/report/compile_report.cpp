#include "runtime/report/compile_report.h"

#include <algorithm>

#include "runtime/regions/backend.h"

namespace kiln {
namespace {

// "early passes" as "early_passes_ms".
std::string member_name(std::string phase) {
  std::replace(phase.begin(), phase.end(), ' ', '_');
  return phase + "_ms";
}

}  // namespace

std::vector<Image> device_kernels(const Artifact &artifact) {
  const Result<const BackendInfo *> backend = find_backend(artifact.backend);
  if (!backend.ok() || !(*backend)->on_device()) return {};
  std::vector<Image> images = artifact.images;
  for (Image &image : images) image.code = nullptr;
  return images;
}

void write_device_kernels(std::span<const Image> images, JsonWriter &json) {
  json.key("device_kernels").begin_list();
  for (const Image &image : images) {
    json.begin_object().member("entry", image.entry).member("compiler", image.compiler);
    json.member("registers", image.use.registers).member("spill_bytes", image.use.spill_bytes);
    json.member("shared_bytes", image.use.shared_bytes).member("group_threads", image.use.group_threads);
    json.member("whole_group", image.use.whole_group != 0).end_object();
  }
  json.end_list();
}

std::string to_json(const CompileReport &report) {
  JsonWriter json;
  json.begin_object().member("lookup", name_of(report.lookup)).member("reason", report.reason);
  json.member("key", report.key == Digest{} ? "" : report.key.hex());
  json.key("passes_run").begin_object();
  for (const PassRun &pass : report.passes) json.member(pass.name, pass.rewrites);
  json.end_object();
  json.member("kernels_compiled", report.kernels_compiled).member("kernels_from_cache", report.kernels_from_cache);
  json.member("kernels_distinct", report.kernels_distinct).member("launches", report.launches);
  json.member("materialised", report.materialised);
  json.member("llvm_loaded", report.llvm_loaded);
  json.key("phases").begin_object();
  for (const auto &[phase, ms] : report.phase_ms) json.member(member_name(phase), ms);
  json.end_object().member("total_ms", report.total_ms);
  json.member("backend", report.backend).member("target", report.target);
  write_device_kernels(report.device_kernels, json);
  json.key("passes").begin_list();
  for (const PassRun &pass : report.passes) {
    json.begin_object().member("name", pass.name).member("stage", pass.stage);
    json.member("rewrites", pass.rewrites).member("runs", pass.runs).member("ms", pass.ms);
    json.member("nodes_before", pass.nodes_before).member("nodes_after", pass.nodes_after).end_object();
  }
  json.end_list().end_object();
  return json.take();
}

std::string provenance_json(const CompileReport &report) {
  JsonWriter json;
  json.begin_object().key("passes").begin_list();
  for (const PassRun &pass : report.passes) {
    json.begin_object().member("name", pass.name).member("stage", pass.stage).member("rewrites", pass.rewrites);
    json.member("nodes_before", pass.nodes_before).member("nodes_after", pass.nodes_after).end_object();
  }
  json.end_list().end_object();
  return json.take();
}

}  // namespace kiln
