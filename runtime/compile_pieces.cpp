#include <algorithm>
#include <iterator>
#include <map>

#include "runtime/cache/key.h"
#include "runtime/compile_steps.h"
#include "runtime/ops/nested.h"
#include "runtime/passes/builtin.h"
#include "runtime/plan/planner.h"
#include "runtime/plan/view_output.h"

namespace kiln {
namespace {

// One piece, found or made; `texts` are those of its kernels, if wanted.
struct MadePiece {
  ArtifactPtr program;
  std::vector<std::string> texts = {};
};

// While it is there, passes are told of the options that are in a piece's key, not of those of the whole: a piece is
// the same wherever it was cut from.
class AnswersOfPiece {
 public:
  AnswersOfPiece(const Work &outer, const CompileOptions &options, const Target &target)
      : questions_(*outer.questions), whole_(keyed_answers_of(outer.options, target)) {
    questions_.answer_compile_by(keyed_answers_of(options, target));
  }
  AnswersOfPiece(const AnswersOfPiece &) = delete;
  AnswersOfPiece &operator=(const AnswersOfPiece &) = delete;
  ~AnswersOfPiece() { questions_.answer_compile_by(whole_); }

 private:
  Questions &questions_;
  const std::function<AttrMap()> whole_;
};

// The way of a whole graph from its key on, but for the passes, which have run unless they are of stage lower.
Result<MadePiece> find_or_make(Work &work, const GraphPtr &graph, const Target &target) {
  const auto begin = [&](Work &part) -> Result<Artifact> {
    KILN_ASSIGN(Artifact begun, identify(part, *graph, part.lower, target));
    part.report.stages.back().stage = "piece";
    return begun;
  };
  KILN_ASSIGN(Artifact artifact, begin(work));
  MadePiece made;
  KILN_ASSIGN(made.program, find_artifact(work, *graph, artifact));
  if (made.program) {
    work.lead.found(made.program);
    if (work.options.verify)
      KILN_TRY(verify_found(work, *made.program, [&](Work &again) -> Result<Compiled> {
        KILN_ASSIGN(Artifact begun, begin(again));
        KILN_ASSIGN(Kernels kernels, make_code(again, *graph, graph, target, begun));
        KILN_ASSIGN(ExecutablePtr executable, finish(again, std::move(begun), kernels.fresh));
        return Compiled{std::move(executable), {}};
      }));
  } else {
    KILN_ASSIGN(Kernels kernels, make_code(work, *graph, graph, target, artifact));
    KILN_ASSIGN(made.program, seal(work, std::move(artifact), kernels.fresh));
    made.texts = std::move(kernels.texts);
  }
  return made;
}

// A piece is keyed as a graph by itself, wherever it was cut from.
Result<MadePiece> make_piece(Work &outer, const GraphPtr &graph, const Target &target, PieceReport &out) {
  CompileOptions options = outer.options;
  options.split_at.clear();
  options.strict = options.require_hit = false;  // of the whole
  CompileReport report;
  Work work{outer.env, options, report};
  work.lower = outer.lower;
  work.questions = outer.questions;
  const AnswersOfPiece answers(outer, options, target);
  work.dump = outer.dump;
  work.piece = str_cat("piece ", outer.report.pieces.size() - 1);
  Result<MadePiece> made = find_or_make(work, graph, target);
  // What passes did is told of what fails, too.
  out.passes = std::move(report.passes);
  std::ranges::move(report.warnings, std::back_inserter(outer.report.warnings));
  if (!made.ok()) return made;
  outer.asked.merge(work.asked);
  if (outer.uncacheable.empty()) outer.uncacheable = std::move(work.uncacheable);
  outer.report.kernels_compiled += report.kernels_compiled;
  outer.report.kernels_from_cache += report.kernels_from_cache;
  outer.report.materialised += report.materialised;
  out.lookup = report.lookup;
  out.reason = std::move(report.reason);
  out.key = report.key;
  out.made = made->program->report_json;
  return made;
}

std::vector<std::string> names_of_nodes(const Graph &graph) {
  std::vector<std::string> names;
  for (const Node &node : graph.nodes())
    if (node.kind == Node::Kind::op) names.push_back(node.name);
  return names;
}

}  // namespace

Result<Kernels> make_pieces(Work &work, const Graph &given, const GraphPtr &whole, const Target &target,
                            Artifact &artifact) {
  KILN_TRY(work.phases.begin("pieces"));
  KILN_ASSIGN(const Cuts cuts, cuts_of(work));
  // Sizes that a run tells have names in the whole graph, in which each call's get their own.
  const auto stays = [&](const Node &call) {
    const Graph &graph = called_graph(call);
    return !cuts.any_in(graph) && !resolves_sizes(graph);
  };
  KILN_ASSIGN(const GraphPtr without, without_views(whole));
  KILN_ASSIGN(const GraphPtr flat, inline_calls(without, work.ops, stays));
  KILN_ASSIGN(std::vector<Region> regions,
              partition(flat, work.backend(), work.options.modes(), pieces_of(*flat, cuts)));
  if (regions.size() < 2) return make_code(work, given, whole, target, artifact);

  Kernels kernels;
  std::vector<Piece> pieces;
  std::vector<MadePiece> made;
  std::map<Digest, size_t> known;
  for (Region &region : regions) {
    PieceReport &report = work.report.pieces.emplace_back(PieceReport{.nodes = names_of_nodes(*region.graph)});
    for (const ValueId input : region.inputs) report.inputs.push_back(text_of(*flat, input));
    const auto [first, is_new] = known.try_emplace(digest_of(*region.graph), pieces.size());
    if (is_new) {
      KILN_ASSIGN(made.emplace_back(), make_piece(work, region.graph, target, report));
    } else {
      report.same_as = first->second;
      report.key = work.report.pieces[first->second].key;
      made.push_back({made[first->second].program});
    }
    const GraphPtr named = is_new ? region.graph : pieces[first->second].named;
    pieces.push_back({std::move(region), made.back().program, named});
  }

  KILN_TRY(work.phases.begin("plan"));
  KILN_ASSIGN(Linked linked, link(given, flat, pieces, work.fixed));
  for (const MadePiece &piece : made) {
    work.ops.add(piece.program->uses);
    work.functions.add(piece.program->uses);
    work.add_backends(piece.program->uses);
    const std::vector<uint32_t> &numbers = linked.parts.add(piece.program).images;
    for (size_t i = 0; i < piece.texts.size(); ++i) {
      kernels.texts.resize(linked.parts.images.size());
      kernels.texts[numbers[i]] = piece.texts[i];
    }
  }
  share_equal_code(linked.parts.images);
  Planned planned{.plan = std::move(linked.plan),
                  .contracts = std::move(linked.parts.contracts),
                  .constants = std::move(linked.constants),
                  .graphs = std::move(linked.parts.graphs),
                  .programs = std::move(linked.parts.programs)};
  fill(artifact, work, given, *whole, std::move(planned), std::move(linked.parts.images),
       std::move(linked.parts.kernels));
  return kernels;
}

}  // namespace kiln
