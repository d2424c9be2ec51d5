#include "runtime/report/compile_report.h"

#include <algorithm>
#include <map>

#include "runtime/backends/backend.h"
#include "runtime/report/step_report.h"

namespace kiln {
namespace {

// "early passes" as "early_passes_ms".
std::string member_name(std::string phase) {
  std::replace(phase.begin(), phase.end(), ' ', '_');
  return phase + "_ms";
}

void write_texts(std::string_view name, std::span<const std::string> texts, JsonWriter &json) {
  json.key(name).begin_list();
  for (const std::string &text : texts) json.value(text);
  json.end_list();
}

// Left out where there are none.
void write_any_texts(std::string_view name, std::span<const std::string> texts, JsonWriter &json) {
  if (!texts.empty()) write_texts(name, texts, json);
}

// "" for a pass that ran on nothing.
std::string hex_of(const Digest &digest) { return digest == Digest() ? std::string() : digest.hex(); }

void write_stages(std::span<const StageDigest> stages, JsonWriter &json) {
  json.key("stages").begin_list();
  for (const StageDigest &stage : stages)
    json.begin_object().member("stage", stage.stage).member("digest", hex_of(stage.digest)).end_object();
  json.end_list();
}

void write_partition(const PartitionSummary &partition, JsonWriter &json) {
  json.key("partition").begin_object().member("mode", partition.mode);
  json.key("regions").begin_list();
  for (const PartitionSummary::Part &part : partition.parts) {
    json.begin_object().member("name", part.region).member("backend", part.backend);
    if (!part.options.empty()) write_texts("options", part.options, json);
    write_texts("nodes", part.nodes, json);
    write_texts("inputs", part.inputs, json);
    write_texts("outputs", part.outputs, json);
    json.member("kernels", part.kernels);
    if (part.same_as) json.member("same_as", *part.same_as);
    json.end_object();
  }
  json.end_list().key("splits").begin_list();
  for (const PartitionSummary::Split &split : partition.splits) {
    json.begin_object().member("region", split.region).member("node", split.node);
    json.member("why", split.why).member("with", split.with);
    if (!split.reason.empty()) json.member("op", split.op).member("reason", split.reason);
    json.end_object();
  }
  json.end_list().key("fallbacks").begin_list();
  std::map<std::string, uint64_t> counts;
  for (const PartitionSummary::Fallback &fallback : partition.fallbacks) {
    ++counts[fallback.op];
    json.begin_object().member("node", fallback.node).member("op", fallback.op);
    write_texts("inputs", fallback.inputs, json);
    json.member("by", fallback.by).member("why", fallback.why);
    if (!fallback.reason.empty()) json.member("reason", fallback.reason);
    json.end_object();
  }
  json.end_list().key("fallback_counts").begin_object();
  for (const auto &[op, count] : counts) json.member(op, count);
  json.end_object();
  json.key("declined").begin_list();
  for (const PartitionSummary::Declined &declined : partition.declined) {
    json.begin_object().member("node", declined.node).member("op", declined.op);
    json.member("backend", declined.backend).member("reason", declined.reason).end_object();
  }
  json.end_list();
  write_texts("warnings", partition.warnings, json);
  json.end_object();
}

// Of a pass that has some.
void write_patterns(std::span<const PatternRun> patterns, JsonWriter &json) {
  if (patterns.empty()) return;
  json.key("patterns").begin_list();
  for (const PatternRun &pattern : patterns) {
    json.begin_object().member("name", pattern.name).member("matches", pattern.matches);
    if (pattern.expected) json.member("expected", pattern.expected);
    json.end_object();
  }
  json.end_list();
}

void write_passes(std::span<const PassRun> passes, JsonWriter &json) {
  json.key("passes").begin_list();
  for (const PassRun &pass : passes) {
    json.begin_object().member("name", pass.name).member("stage", pass.stage);
    json.member("rewrites", pass.rewrites).member("runs", pass.runs).member("ms", pass.ms);
    json.member("nodes_before", pass.nodes_before).member("nodes_after", pass.nodes_after);
    if (pass.clones) json.member("clones", pass.clones);
    if (pass.numerics) json.member("numerics", true);
    if (!pass.failed_by.empty()) json.member("failed_by", pass.failed_by);
    if (!pass.skipped.empty()) json.member("skipped", pass.skipped);
    write_any_texts("notes", pass.notes, json);
    write_any_texts("warnings", pass.warnings, json);
    write_patterns(pass.patterns, json);
    json.member("digest", hex_of(pass.digest)).end_object();
  }
  json.end_list();
}

// A piece's beginning, which the compile and the artifact tell alike.
void begin_piece(const PieceReport &piece, JsonWriter &json) {
  json.begin_object();
  write_texts("nodes", piece.nodes, json);
  write_texts("inputs", piece.inputs, json);
  json.member("key", piece.key == Digest{} ? "" : piece.key.hex());
  if (piece.same_as) json.member("same_as", *piece.same_as);
}

}  // namespace

std::vector<DeviceKernel> device_kernels(const Artifact &artifact) {
  const Result<const BackendInfo *> backend = find_backend(artifact.backend);
  if (!backend.ok() || !(*backend)->on_device()) return {};
  std::vector<std::string> nodes = nodes_of_kernels(artifact);
  std::vector<DeviceKernel> kernels;
  for (size_t i = 0; i < artifact.images.size(); ++i) {
    kernels.push_back({artifact.images[i], i < nodes.size() ? std::move(nodes[i]) : std::string()});
    kernels.back().image.code = nullptr;
  }
  return kernels;
}

void write_device_kernels(std::span<const DeviceKernel> kernels, JsonWriter &json) {
  json.key("device_kernels").begin_list();
  for (const auto &[image, nodes] : kernels) {
    json.begin_object().member("entry", image.entry).member("compiler", image.compiler).member("nodes", nodes);
    json.member("registers", image.use.registers).member("spill_bytes", image.use.spill_bytes);
    json.member("shared_bytes", image.use.shared_bytes).member("group_threads", image.use.group_threads);
    json.member("whole_group", image.use.whole_group != 0).end_object();
  }
  json.end_list();
}

void write_answers(std::span<const Answer> answers, JsonWriter &json) {
  if (answers.empty()) return;
  json.key("questions").begin_list();
  for (const Answer &answer : answers)
    json.begin_object().member("question", answer.question).member("answer", answer.text).end_object();
  json.end_list();
}

void write_components(std::span<const KeyComponent> components, JsonWriter &json) {
  json.key("components").begin_list();
  for (const KeyComponent &component : components) {
    json.begin_object().member("name", component.name).member("digest", component.digest.hex());
    json.member("text", component.text).end_object();
  }
  json.end_list();
}

void write_guards(const FixedSizes &sizes, JsonWriter &json) {
  json.key("guards").begin_list();
  for (const auto &[symbol, size] : sizes)
    json.begin_object().member("symbol", symbol).member("value", size).end_object();
  json.end_list();
}

std::string to_json(const CompileReport &report) {
  JsonWriter json;
  json.begin_object().member("lookup", name_of(report.lookup)).member("reason", report.reason);
  json.member("key", hex_of(report.key));
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
  if (!report.in_place.empty()) json.key("in_place").raw(report.in_place);
  write_passes(report.passes, json);
  write_any_texts("warnings", report.warnings, json);
  if (report.verified) json.member("verified", true);
  write_answers(report.answers, json);
  write_stages(report.stages, json);
  json.key("pieces").begin_list();
  uint64_t compiled = 0;
  for (const PieceReport &piece : report.pieces) {
    begin_piece(piece, json);
    if (!piece.same_as) {
      json.member("lookup", name_of(piece.lookup)).member("reason", piece.reason);
      write_passes(piece.passes, json);
      compiled += piece.lookup != Outcome::hit;
    }
    json.end_object();
  }
  json.end_list().member("pieces_compiled", compiled);
  json.key("entries").begin_list();
  for (const EntryReport &entry : report.entries) {
    json.begin_object().member("name", entry.name);
    write_guards(entry.sizes, json);
    json.member("state", entry.made ? "made" : "later");
    if (entry.made) {
      const CompileReport &made = *entry.made;
      json.member("lookup", name_of(made.lookup)).member("reason", made.reason);
      json.member("key", made.key == Digest{} ? "" : made.key.hex());
      json.member("kernels_compiled", made.kernels_compiled).member("kernels_from_cache", made.kernels_from_cache);
      json.member("total_ms", made.total_ms);
    }
    json.end_object();
  }
  json.end_list();
  if (!report.dump.empty()) json.member("dump", report.dump);
  if (!report.components.empty()) write_components(report.components, json);
  json.key("made").raw(report.made.empty() ? "{}" : report.made).end_object();
  return json.take();
}

std::string provenance_json(const CompileReport &report, std::string_view options) {
  JsonWriter json;
  json.begin_object().key("passes").begin_list();
  for (const PassRun &pass : report.passes) {
    json.begin_object().member("name", pass.name).member("stage", pass.stage).member("rewrites", pass.rewrites);
    json.member("runs", pass.runs).member("nodes_before", pass.nodes_before).member("nodes_after", pass.nodes_after);
    if (pass.numerics) json.member("numerics", true);
    if (!pass.skipped.empty()) json.member("skipped", pass.skipped);
    write_patterns(pass.patterns, json);
    json.member("digest", hex_of(pass.digest)).end_object();
  }
  json.end_list();
  if (options != "{}") json.key("options").raw(options);
  write_stages(report.stages, json);
  if (report.partition) write_partition(*report.partition, json);
  if (report.pieces.empty()) return json.end_object().take();
  json.key("pieces").begin_list();
  for (const PieceReport &piece : report.pieces) {
    begin_piece(piece, json);
    if (!piece.same_as) json.key("made").raw(piece.made);
    json.end_object();
  }
  json.end_list();
  return json.end_object().take();
}

}  // namespace kiln
