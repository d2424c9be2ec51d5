// The steps of a compile that look up, run passes, compile kernels and load. compile.cpp says in which order they run;
// each takes what the steps before it made, and tells the report.
#pragma once
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/compile.h"
#include "runtime/dump.h"
#include "runtime/phases.h"
#include "runtime/plan/planner.h"
#include "runtime/regions/lower_graphs.h"
#include "runtime/regions/pieces.h"
#include "runtime/uses.h"

namespace kiln {

using PassPtrs = std::vector<std::shared_ptr<const Pass>>;

// What every step of one compile may ask and tell.
struct Work {
  const CompileEnvironment &env;
  const CompileOptions &options;
  CompileReport &report;
  RecordedOps ops{env.ops};  // what passes and lowering look names up in
  RecordedFunctions functions{*env.functions};
  Phases phases{env, report};
  InFlight::Lead lead = {};             // held from a lookup without a hit until there is an artifact
  std::optional<Lookup> record = {};    // of a hit that a record was read for
  FixedAs fixed = {};                   // of an entry
  PassPtrs lower = {};                  // Passes::lower, once they are selected
  std::set<std::string> backends = {};  // registered ones that it was made with
  // What passes may ask: one for all parts of a compile, so that they get the same answers.
  std::shared_ptr<Questions> questions = {};
  Asked asked = {};                 // what those of this part did ask, and was made after the answers
  std::string uncacheable = {};     // why what it makes is nobody else's; empty: it may be
  std::shared_ptr<Dump> dump = {};  // null: none is asked for
  std::string piece = {};           // "piece 3", of one; else empty

  Cache *cache() const { return options.use_cache ? env.cache : nullptr; }
  const BackendInfo &backend() const { return base_backend(options.backend); }  // Kiln's own
  PassHost host_of(const Pass &pass);                                           // compile_questions.cpp
  bool oracle() const { return !backend().makes_code(); }
  void add_backends(std::span<const Use> uses) { backends.merge(registered_backends(uses)); }
  uint32_t wanted_texts() const {
    return (options.want_ir ? KILN_CODEGEN_IR : 0) | (options.want_asm ? KILN_CODEGEN_ASM : 0);
  }
};

// Finds the functions that are to run nodes. Errors name node, function and place in its signature: it is not there, or
// does not fit.
Status bind_functions(const Work &work, LoweredGraphs &graphs);

// The registered backends that the graph and the options choose, with the options that they are given. Errors: one is
// not there; an option is none of its.
Result<ChosenBackends> chosen_backends(const Work &work, const Graph &graph);
// Has registered backends compile the programs among the regions, equal ones once.
Status compile_programs(Work &work, LoweredGraphs &graphs, const ChosenBackends &backends);

// Tells the report and the host what is likely not meant. Code cancelled: the host ends the compile there.
Status warn(Work &work, std::string text);

struct Passes {
  PassPtrs early, late;  // early: run before the key is made, on every compile
  PassPtrs lower;        // those of `late` that run on regions
};
using ExecutablePtr = std::shared_ptr<const Executable>;

// For the options `backend`, `cpu` and `arch`. A device's own arch is asked of it: no_device when there is none.
Result<Target> choose_target(const Work &work);
// Whether backend, modes and graph go together: device slots are those that the backend has, what falls back runs where
// the backend does, options of regions are for modes that make some, and ops to split at are ops.
Status check_request(const Work &work, const Graph &graph);
// The oracle runs the graph as it was given: no pass.
Result<Passes> select_passes(Work &work);
// Of those among them that change what is computed a context's host is told once, of each.
Status warn_of_numerics(Work &work, const Passes &passes);
Result<GraphPtr> run_passes(Work &work, std::string_view phase, const PassPtrs &passes, Stage stage, GraphPtr graph);
// What passes may ask of a compile for this target (compile_questions.cpp).
std::shared_ptr<Questions> questions_of(const Work &work, const Target &target);
// What answers compile.NAME by options that outlive it.
std::function<AttrMap()> keyed_answers_of(const CompileOptions &options, const Target &target);
// The first of the answers that an artifact was made after and that are others now: "question 'host.rank' is answered
// 1, ..."; empty: all are the same.
std::string differing_answer(std::span<const Answer> answers, Questions *questions);
// Warns of patterns that were found less often than they say, in passes that ran now, and in those that made `found`
// (null: nothing was found); in strict mode that is an error.
Status check_expected_matches(Work &work, const Artifact *found);
// Those of work.lower run on each region.
Result<LoweredGraphs> run_lowering(Work &work, const GraphPtr &graph, const LowerOptions &how);

// Why no record can be looked up or published for this compile; no reason: it can.
struct Bypass {
  std::string reason;
  std::string strict = {};  // what strict mode says of it; empty: it is as the host asked
};
Bypass bypass_of(const Work &work, const Graph &graph, const PassPtrs &late);
// Begins the artifact: what it is of and for, and its graph_key unless the lookup is bypassed.
Result<Artifact> identify(Work &work, const Graph &graph, const PassPtrs &late, const Target &target);
// A record of the artifact's key, which `graph` has, or what another compile of it makes, for which this one waits; or
// null: then the report says why there is none, and `work` leads.
using ArtifactPtr = std::shared_ptr<const Artifact>;
Result<ArtifactPtr> find_artifact(Work &work, const Graph &graph, const Artifact &artifact);
// The executable of that; null where there is none, or it does not load.
Result<ExecutablePtr> look_up(Work &work, const Graph &graph, const Artifact &artifact);

// The images that a compile's launches run, each distinct kernel once.
struct Kernels {
  std::vector<Bytes> bytes;         // serialised kernels
  std::vector<Image> images;        // one for each; empty under `code` = false
  std::vector<std::string> texts;   // one for each, if wanted
  std::vector<uint32_t> of_launch;  // in the order of graphs, regions and launches
  std::vector<uint32_t> fresh;      // numbers of those that were compiled now; the others were in the cache
};
// Where the options say that pieces end; unknown_name: no such op.
Result<Cuts> cuts_of(const Work &work);
// Takes each kernel's image from the cache or from the backend's module (compile_kernels.cpp). The graphs are fused.
Result<Kernels> compile_kernels(Work &work, const LoweredGraphs &graphs, const Target &target);
// Images that come from several records, or from the module and a record, may hold the same code.
void share_equal_code(std::vector<Image> &images);
// Makes code and a plan of what the pipeline left of `given`, and puts them into the artifact; `whole` has no more
// cuts. Returns the kernels, of which the artifact has images and bytes.
Result<Kernels> make_code(Work &work, const Graph &given, const GraphPtr &whole, const Target &target,
                          Artifact &artifact);
// The same, piece by piece, each looked up and compiled by itself (compile_pieces.cpp).
Result<Kernels> make_pieces(Work &work, const Graph &given, const GraphPtr &whole, const Target &target,
                            Artifact &artifact);
// What either of them puts there: the plan of `given`, which `whole` was made of, and all that its steps use.
void fill(Artifact &artifact, const Work &work, const Graph &given, const Graph &whole, Planned planned,
          std::vector<Image> images, std::vector<Bytes> kernels);
// Steps 5 to 8, by either of the two (compile.cpp). `whole` has the sizes of the work's entry, if it is one's.
Result<Compiled> build(Work &work, const Graph &given, const GraphPtr &whole, const Target &target, Artifact artifact);
// Cold executables go the way of warm ones: to bytes, and back from them. Publishes what no record has yet: the
// artifact, unless the lookup is bypassed, and those of its images that `fresh` numbers.
Result<ArtifactPtr> seal(Work &work, Artifact made, std::span<const uint32_t> fresh);
Result<ExecutablePtr> finish(Work &work, Artifact made, std::span<const uint32_t> fresh);
// Makes again what was found, by `make`, without the cache, and compares: passes, stages, kernels. Code invariant names
// the first pass that made another graph (compile_verify.cpp).
Status verify_found(Work &work, const Artifact &found, const std::function<Result<Compiled>(Work &again)> &make);
// All that is left to do for the oracle: an artifact of one step, which runs the graph.
Result<ExecutablePtr> finish_oracle(Work &work, const Graph &graph, Artifact artifact);

}  // namespace kiln
