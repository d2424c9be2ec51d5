// How a compiled graph was cut, as people read it.
#pragma once
#include <string>

#include "handles.h"

namespace kiln::cli {

// Of kiln_executable_describe's report.
std::string regions_text(const Report &description);
// For Graphviz: a cluster a region.
std::string regions_dot(const Report &description);

}  // namespace kiln::cli
