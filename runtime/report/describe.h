// Descriptions: JSON, whose members kiln.h documents.
#pragma once
#include <string>

#include "runtime/exec/executable.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/op.h"
#include "runtime/regions/region.h"

namespace kiln {

// Samples are made for it, which takes far longer than the rest.
std::string describe(const Op &op, bool with_samples = true);
std::string describe(const Graph &graph);
// `targets`: those that its file has code for, where they are several.
std::string describe(const Executable &executable, std::span<const std::string> targets = {});
// How a part that was cut out of `whole` meets it: kiln_graph_extract documents it.
std::string describe_part(const Graph &whole, const Region &part);
std::string describe_options();  // of contexts and compiles

}  // namespace kiln
