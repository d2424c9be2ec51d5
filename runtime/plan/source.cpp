#include "runtime/plan/source.h"

#include <set>
#include <unordered_map>

#include "runtime/graph/json.h"
#include "runtime/ops/nested.h"

namespace kiln {
namespace {

// Numbers the op nodes and constants of a graph and of those nested in it, and says which of the keyed graph's, or of
// its twin there, each is by its name.
class Namer {
 public:
  void visit(const Graph &graph, const Graph *twin, const std::vector<uint32_t> &path) {
    if (!seen_.insert(&graph).second) return;
    for (const Node &node : graph.nodes()) {
      if (node.kind == Node::Kind::input || node.kind == Node::Kind::parameter) {
        while (node.name.starts_with(mark_)) mark_ += '%';
        continue;
      }
      const Node *known = twin ? twin->find(node.name) : nullptr;
      std::vector<uint32_t> at = path;
      if (known) at.push_back(static_cast<uint32_t>(twin->position(known->id)));
      if (numbers_.try_emplace(&node, names_.size()).second)
        names_.push_back(known ? Plan::NodeRef{at, node.name} : Plan::NodeRef());
      visit_nested(node, known, std::move(at));
    }
  }
  const std::string &mark() const { return mark_; }  // no input's name begins so
  size_t number_of(const Node &node) const { return numbers_.at(&node); }
  std::vector<Plan::NodeRef> names() && { return std::move(names_); }

 private:
  void visit_nested(const Node &node, const Node *known, std::vector<uint32_t> path) {
    const auto graphs = nested_graphs(node);
    if (graphs.empty()) return;
    const auto twins =
        known && known->op ? nested_graphs(*known) : std::vector<std::pair<std::string_view, GraphPtr>>();
    path.push_back(0);
    for (uint32_t i = 0; i < graphs.size(); ++i) {
      path.back() = i;
      visit(*graphs[i].second, i < twins.size() ? twins[i].second.get() : nullptr, path);
    }
  }

  std::string mark_ = "%";
  std::set<const Graph *> seen_;
  std::unordered_map<const Node *, size_t> numbers_;
  std::vector<Plan::NodeRef> names_;
};

}  // namespace

Source source_of(const Graph &graph, const Graph &keyed, std::span<const TensorPtr> constants) {
  Namer namer;
  namer.visit(graph, &keyed, {});
  Apart apart{.tensors = {constants.begin(), constants.end()}, .mark = namer.mark(), .names = {}};
  Source source;
  source.json = write_json(graph, apart, [&](const Node &node) { return namer.number_of(node); });
  source.mark = apart.mark;
  source.names = std::move(namer).names();
  for (size_t i = constants.size(); i < apart.tensors.size(); ++i) source.constants.push_back(*apart.tensors[i]);
  return source;
}

Result<GraphPtr> read_source(const std::shared_ptr<const Artifact> &artifact, const OpTable &ops,
                             std::vector<TensorPtr> *tensors) {
  const Source &source = artifact->source;
  const bool is_as_given = source.json.empty() && !artifact->graphs.empty();  // and a step runs it
  Apart apart{.tensors = {}, .mark = source.mark, .names = {}};
  for (const auto *constants : {&artifact->constants, &source.constants})
    for (const TensorData &constant : *constants) apart.tensors.emplace_back(artifact, &constant);
  for (size_t i = 0; i < source.names.size(); ++i)
    apart.names.push_back(source.names[i].path.empty() ? str_cat(source.mark, i) : source.names[i].name);
  Result<GraphPtr> graph = read_json(is_as_given ? artifact->graphs.front() : source.json, ops, apart);
  if (tensors) *tensors = std::move(apart.tensors);
  if (graph.ok() || graph.status().code() == Code::out_of_memory) return graph;
  return unreadable(graph.status(), "the artifact's graph after passes cannot be read", *artifact, ops);
}

Status unreadable(const Status &failure, std::string_view what, const Artifact &artifact, const OpTable &ops) {
  if (failure.code() != Code::unknown_name) return error(Code::corrupt, what, ": ", failure.message());
  std::string lacking;  // what is to be registered, or loaded
  for (const Use &use : artifact.uses)
    if (use.kind == "op" && !use.identity.empty() && ops.identity(use.name).empty())
      str_append(lacking, str_cat("; it was made with op '", use.name, "', ", use.identity));
  return error(Code::incompatible, what, ", for an op is not there: ", failure.message(), lacking);
}

}  // namespace kiln
