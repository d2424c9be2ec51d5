// Shapes of samples as texts, of which a table takes far less code than of lists of dims. For the files of this folder.
#pragma once
#include "runtime/graph/type.h"

namespace kiln::ops {

// "2, n, w + 1" as a graph's JSON has them; "" is a scalar's.
Shape shape_from(std::string_view text);

}  // namespace kiln::ops
