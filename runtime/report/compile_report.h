// What a compile did, for the host and for the artifact.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "jit/base/hash.h"
#include "jit/base/json_writer.h"
#include "runtime/cache/cache.h"
#include "runtime/passes/pipeline.h"
#include "runtime/passes/specialize.h"
#include "runtime/plan/artifact.h"
#include "runtime/regions/summary.h"

namespace kiln {

// A piece that was looked up and compiled by itself.
struct PieceReport {
  std::vector<std::string> nodes = {}, inputs = {};  // their names; values that it reads, "y" or "y:1"
  Outcome lookup = Outcome::miss;
  std::string reason = {}, made = {};  // made: as the compile's
  Digest key = {};
  std::optional<uint64_t> same_as = {};  // number of the piece before it that it is equal to: then nothing was asked
  std::vector<PassRun> passes = {};      // of stage lower, which run on each piece
};

struct DeviceKernel {
  Image image;        // without its code
  std::string nodes;  // that it computes: nodes_of_kernels()
};

struct CompileReport;
// What became of an entry by the end of its executable's compile.
struct EntryReport {
  std::string name;
  FixedSizes sizes;
  std::shared_ptr<CompileReport> made;  // null: later
};

// Of the graph behind a stage of passes; of stage lower of all that is made of it, once it is decomposed.
struct StageDigest {
  std::string stage;
  Digest digest;
};

class Dump;
struct CompileReport {
  Outcome lookup = Outcome::miss;
  std::string reason;
  Digest key;                                 // zero: bypassed or cache off
  std::vector<KeyComponent> components = {};  // of the key, where it was looked up and nothing was found
  std::vector<PassRun> passes;
  std::vector<std::string> warnings;  // that this compile gave rise to
  bool verified = false;              // a hit that was made again, likewise
  std::vector<Answer> answers;        // what passes asked that the artifact was made with
  std::vector<StageDigest> stages;    // those that the compile came through; "piece": of a piece as it was cut out
  uint32_t kernels_compiled = 0, kernels_from_cache = 0, kernels_distinct = 0, launches = 0;
  uint32_t materialised = 0;                             // kernel::Fused; on a HIT 0, for nothing is fused
  bool llvm_loaded = false;                              // in this process, by this compile or an earlier one
  std::vector<std::pair<std::string, double>> phase_ms;  // "verify", "early passes", "key", "lookup", ...
  std::string backend, target;
  std::vector<DeviceKernel> device_kernels;   // of a backend for a device
  std::string in_place;                       // in_place_json(); empty: there is no plan yet
  std::optional<PartitionSummary> partition;  // where the mode cuts the graph; on a HIT `made` has it
  std::vector<PieceReport> pieces;            // where the graph is cut into such; they have the partition, then
  std::string made;                           // provenance_json() of the compile that made the artifact; empty: none is
  std::vector<EntryReport> entries;           // those that were asked for
  std::string dump;                           // the folder (dump.h); empty: none
  std::shared_ptr<const Dump> passes_seen;    // what they made, for a page; null: none is wanted
  double total_ms = 0;
};
// {"lookup": "MISS", "reason": ..., "key": hex or "", "passes_run": {name: rewrites}, "kernels_compiled": n,
//  "kernels_from_cache": n, "kernels_distinct": n, "launches": n, "materialised": n, "llvm_loaded": bool, "phases":
//  {"lookup_ms": ms, ...}, "total_ms": ms, "backend": ..., "target": ..., "device_kernels": [...], "in_place":
//  in_place_json() once there is a plan, "passes": [{"name", "stage", "rewrites", ...; "clones", "notes", "warnings",
//  "patterns" where there are some}], "warnings" where there are some, "questions": [{"question", "answer"}] where
//  there are some, "stages": [{"stage", "digest"}], "pieces": [{"nodes", "inputs", "key", "same_as", or "lookup",
//  "reason" and "passes", as above}], "pieces_compiled", "entries": [{"name", "guards": [{"symbol", "value"}], "state":
//  "made" | "later", and of one that is made "lookup", "reason", "key", "kernels_compiled", "kernels_from_cache",
//  "total_ms"}], "dump" and "components": [{"name", "digest", "text"}] where there are some, "made":
//  provenance_json()}
std::string to_json(const CompileReport &report);
// The images of an artifact for a device, without their code; of any other, none.
std::vector<DeviceKernel> device_kernels(const Artifact &artifact);
// "device_kernels": [{"entry", "compiler", "nodes", "registers", "spill_bytes", "shared_bytes", "group_threads",
// "whole_group"}]. `json` is inside an object.
void write_device_kernels(std::span<const DeviceKernel> kernels, JsonWriter &json);
// "questions": [{"question", "answer"}], where there are some. `json` is inside an object.
void write_answers(std::span<const Answer> answers, JsonWriter &json);
// "components": [{"name", "digest", "text"}], of a key. `json` is inside an object.
void write_components(std::span<const KeyComponent> components, JsonWriter &json);
// "guards": [{"symbol", "value"}]. `json` is inside an object.
void write_guards(const FixedSizes &sizes, JsonWriter &json);
// What the artifact keeps of it: nothing that differs from run to run, so that equal inputs make equal artifacts.
// {"passes": [{"name", "stage", "rewrites", "runs", "nodes_before", "nodes_after", "patterns" (where it has
// some: [{"name", "matches", "expected" (if any are)}]), "digest"}], "options" (of the compile; as `options` has them,
// if any), "stages": [{"stage", "digest"}], "partition": {"mode", "regions": [{"name", "backend", "nodes", "inputs",
// "outputs", "kernels", "same_as"}], "splits": [{"region", "node", "why", "with", "op", "reason"}], "fallbacks":
// [{"node", "op", "inputs", "by", "why", "reason"}], "fallback_counts": {op: n}, "warnings"}, "pieces": [{"nodes",
// "inputs", "key", "same_as", or "made"}]}; of the partition runtime/regions/summary.h says what each is.
std::string provenance_json(const CompileReport &report, std::string_view options);

}  // namespace kiln
