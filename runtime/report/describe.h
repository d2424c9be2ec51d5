// Descriptions: JSON, whose members kiln.h documents.
#pragma once
#include <string>

#include "runtime/exec/executable.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/op.h"

namespace kiln {

std::string describe(const Op &op);
std::string describe(const Graph &graph);
std::string describe(const Executable &executable);
std::string describe_options();  // of contexts and compiles

}  // namespace kiln
