// The graph after all passes, as an artifact keeps it.
#pragma once
#include <memory>
#include <span>

#include "jit/base/status.h"
#include "runtime/graph/graph.h"
#include "runtime/plan/artifact.h"

namespace kiln {

// `keyed` is the graph that passes made `graph` of; `constants` are those of the artifact.
Source source_of(const Graph &graph, const Graph &keyed, std::span<const TensorPtr> constants);
// Of the reference backend the graph as it was given. corrupt, incompatible: it cannot be read.
// `tensors`, if given, gets the artifact's constants and the source's, as the graph has them.
Result<GraphPtr> read_source(const std::shared_ptr<const Artifact> &artifact, const OpTable &ops,
                             std::vector<TensorPtr> *tensors = nullptr);
// Why a graph of the artifact's cannot be read: incompatible if for an op that is not there, with what the artifact was
// made with; else corrupt. `what`: the message's begin.
Status unreadable(const Status &failure, std::string_view what, const Artifact &artifact, const OpTable &ops);

}  // namespace kiln
