// A region's graph to the program that runs it.
#pragma once
#include "ops.h"

namespace onednn {

Program build(const Taker &taker, const Reader &graph);

}  // namespace onednn
